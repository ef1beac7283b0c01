"""The code that runs inside an isolated worker process. It uses the standard library and nothing else of Denizen, since
the worker's interpreter sees no installed packages.

From text to result: `grammar.py` parses a text into lists, pipelines and loops, with words read by `words.py`.
`evaluation.py` walks through them: words are expanded (`expansion.py`, `braces.py`, `globs.py`), `rg` becomes grep
(`ripgrep.py`), and every final command is checked by `policy.py` against the rules in `programs.py`, `scripts.py`,
`conditions.py` and `paths.py`. `capture.py` runs what passed with `pipeline.py`; `xargs.py` is our own xargs.
`isolation.py` isolates the process, with the system calls in `kernel.py`; `worker.py` is the main program.
"""
