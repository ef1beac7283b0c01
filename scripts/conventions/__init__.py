"""The rules of the house that no linter knows: names, English, and the shape of modules and folders.

    python -m scripts.conventions    prints what breaks a rule

Each rule is a pure function over parsed modules (`scripts.python_sources`): `names` (classes and functions), `english`
(docstrings, citations), `structure` (folders, helpers, records, calls) and `suite` (what tests must not do).
Nothing is excused.
"""
