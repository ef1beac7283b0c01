"""Words of any script, and parts of German compounds, are found.

The column `words` gets the terms of `denizen.domain.terms` as they are now, in messages and posts that have others. A
later change of these terms needs such a migration, too. Documents are indexed again from the library when the server
starts, and keep their embeddings.

Revision ID: 1003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.domain.terms import index_terms

revision = "1003"
down_revision = "1002"
branch_labels = None
depends_on = None

ROWS_AT_ONCE = 2000


def upgrade() -> None:
    renew_terms("messages", "words")
    renew_terms("posts", "text")
    op.execute("UPDATE documents SET digest = ''")
    op.execute("UPDATE index_progress SET state = '' WHERE collection = 'passage'")


def renew_terms(table: str, source: str) -> None:
    """Reads the terms out of the column `source`. Rows without words stay so: they are not searched."""
    rows = sa.table(table, sa.column("position"), sa.column("words"), sa.column(source))
    some = (
        sa.select(rows.c.position, rows.c.words, rows.c[source].label("source"))
        .where(rows.c.position > sa.bindparam("after"), rows.c.words != "")
        .order_by(rows.c.position)
        .limit(ROWS_AT_ONCE)
    )
    renew = sa.update(rows).where(rows.c.position == sa.bindparam("which")).values(words=sa.bindparam("terms"))
    connection, after = op.get_bind(), 0
    while found := connection.execute(some, {"after": after}).all():
        after = found[-1].position
        terms = [(row, " ".join(index_terms(row.source))) for row in found]
        changed = [{"which": row.position, "terms": text} for row, text in terms if text != row.words]
        if changed:
            connection.execute(renew, changed)
