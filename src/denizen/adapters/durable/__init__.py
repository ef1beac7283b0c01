"""Durable execution on DBOS: runs that survive the process, on SQLite or on Postgres.

Read `durable` first: it is the port as this package implements it. `settings` is what the application decides; `run` a
run while it lives here; `outcome` values and errors as JSON text. The rest imports DBOS and SQLAlchemy, and is imported
when a log is opened: `opened` (what exists meanwhile), `log` (everything that touches DBOS) with `vendor` (the manners
it has to learn), `database` and `faults`, `lease` with `place` (which processes live) and `rescue` (taking over the
runs of those that died).
"""
