"""Runs the migrations in the transaction that `schema` has begun."""

from alembic import context

from denizen.adapters.store.dialect import REVISION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=REVISION_TABLE)
context.run_migrations()
