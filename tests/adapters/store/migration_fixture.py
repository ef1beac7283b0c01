"""A store that holds something, and a history with one migration more than the program has."""

import shutil
from pathlib import Path

from denizen.adapters.store import open_store
from denizen.adapters.store.migrator import HEAD, HISTORY, MigrationHistory
from denizen.domain.clock import SystemClock
from tests.contracts.store.records import make_message, open_conversation

NEXT = '''
"""One column more."""
import sqlalchemy as sa
from alembic import op

revision, down_revision = "9999", "{head}"

def upgrade():
    op.add_column("conversations", sa.Column("topic", sa.Text(), nullable=False, server_default="-"))
    {more}
'''


def make_next_history(folder: Path, more: str = "pass") -> MigrationHistory:
    """Returns the history with one migration more, 9999, which also does `more`."""
    shutil.copytree(HISTORY.folder, folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    (folder / "versions" / "9999_next.py").write_text(NEXT.format(head=HEAD, more=more))
    return MigrationHistory(folder, "9999")


async def fill_store(url: str) -> None:
    """Makes a store with one message."""
    store = await open_store(url, clock=SystemClock())
    _, session = await open_conversation(store)
    async with store.work() as work:
        await work.messages.add(make_message(session, "kept", "needle"))
    await store.aclose()
