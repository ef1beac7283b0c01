"""The code that runs inside an isolated worker process. It uses the standard library and nothing else of Denizen, since
the worker's interpreter sees no installed packages.

From text to result: `words.py` parses a line, `expansion.py` expands braces and patterns and checks paths, `policy.py`
checks every final command against the rules in `programs.py`, `plan.py` puts these together, `pipeline.py` runs what
passed, `xargs.py` is our own xargs. `isolation.py` isolates the process, with the system calls in `kernel.py`;
`worker.py` is the main program.
"""
