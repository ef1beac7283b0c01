"""What Denizen promises, as data: one module per source of promises, read through `tests.requirements`."""
