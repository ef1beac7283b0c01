"""The read-only shell (`ports/sandbox`): GNU programs over a folder of documents.

`inside/` parses, checks and runs lines in isolated worker processes. Out here, `process.py` starts one worker and finds
the programs that it needs, `sessions.py` knows who looks at what and whose turn it is, and `pool.py` keeps workers for
the life of the process. Made by the composition root.

Nothing is imported here: a worker's interpreter passes through this file on its way to `inside` and has the standard
library only.
"""
