"""The rules of the house that no linter knows: names, English, and the shape of modules and folders.

    python -m scripts.conventions                     prints what breaks a rule and is not excused
    python -m scripts.conventions --all               prints everything that breaks a rule
    python -m scripts.conventions --write-baseline    excuses what breaks a rule today

Each rule is a pure function over parsed modules (`scripts.python_sources`): `names` (classes and functions), `english`
(docstrings, citations), `structure` (folders, helpers, records, calls) and `suite` (what tests must not do).
`baseline.txt` lists what is excused. It only ever shrinks: a new offence fails, and so does an entry that is gone.
"""
