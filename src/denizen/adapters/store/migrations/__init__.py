"""The history of the schema, one line for SQLite and Postgres. `schema` runs it; nothing here imports `tables`, which
moves on while a migration stays as it was.
"""
