"""What runs inside a worker, a process of its own that shut itself in. Standard library only, and nothing else of
Denizen: the worker's interpreter sees no installed packages.

From text to result: `words.py` reads a line, `expansion.py` opens braces and patterns, `policy.py` judges every final
command with the tables `programs.py` and the expression of `find.py`, `plan.py` puts these together, `pipeline.py` runs
what passed, `xargs.py` is our own xargs. `isolation.py` shuts the process in, with `mounts.py`, `landlock.py`,
`seccomp.py` and `kernel.py`; `worker.py` is the main program.
"""
