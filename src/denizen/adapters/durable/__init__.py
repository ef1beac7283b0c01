"""Durable execution on DBOS: runs that survive the process, on SQLite or on Postgres.

Read `durable` first: it implements the port. `settings` is the configuration; `run` is a run while it lives here, with
its values and errors as JSON text. The other modules import DBOS and SQLAlchemy, and are imported when a log is opened:
`log` (everything that touches DBOS), `database`, `lease` (which processes live) and `recovery` (taking over the runs of
dead processes).
"""
