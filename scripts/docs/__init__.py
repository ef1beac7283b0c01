"""The generated reference in `docs/reference`, and the checks that keep the other pages true.

    python -m scripts.docs            writes the reference, then checks
    python -m scripts.docs --check    writes nothing; a reference that is out of date is a problem too

Read `__main__` first. `pages` makes the reference with one module per page; `glossary` fills the
lists of the glossary; `links` and `snippets` check what people
wrote; `commands` knows what `denizen` and `make` understand; `markdown` reads pages.
"""
