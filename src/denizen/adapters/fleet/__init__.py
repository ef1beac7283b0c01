"""A fleet of processes on one Postgres.

Read `bus` first: messages between processes by LISTEN and NOTIFY, and calls with an answer on top of them. `nodes` are
the tables of who lives and who has what; `relay` carries live events of turns; `remote_channel` lets a process use an
account that another one holds. `wire` writes records as JSON.
"""
