"""The read-only shell (`ports/sandbox`): GNU programs over a folder of documents (inventory S16-S23).

`inside/` reads, judges and runs lines in worker processes that shut themselves in. Out here: `machine.py` finds the
programs and what they need, `process.py` is one worker, `sessions.py` knows who looks at what, and `pool.py` keeps
workers for the life of the process. Made by the composition root.

Nothing is imported here: a worker's interpreter, which comes by on its way to `inside`, sees the standard library only.
"""
