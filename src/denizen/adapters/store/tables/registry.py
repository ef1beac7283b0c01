"""What all tables share: where they are registered, how their keys are named, and columns that several have."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import Usd

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

PositionType = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def position() -> sa.Column[int]:
    """The order of arrival."""
    return sa.Column("position", PositionType, primary_key=True)


def usage() -> list[sa.Column[int] | sa.Column[object]]:
    """Tokens and money."""
    counts = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "requests")
    return [*(sa.Column(name, sa.BigInteger(), nullable=False) for name in counts), sa.Column("cost_usd", Usd())]
