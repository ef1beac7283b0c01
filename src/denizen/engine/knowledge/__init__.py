"""Knowledge: sources, reading them, and the snapshots that agents look things up in.

`sources` says what there is to read, `sync` reads it as a durable run, `reading` is what that does to one source, and
`snapshots` publishes what was read. The command line and the web call them.
"""
