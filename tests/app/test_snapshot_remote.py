"""Changing where snapshots are pushed to while Denizen runs: in the file, and for everybody who looked at something."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen.app.build import OpenOptions, open_denizen
from denizen.app.reload import Reloader, RemoteSwitch
from denizen.domain.errors import Conflict
from denizen.domain.snapshot import RemoteRepository
from denizen.domain.source import SourceChange
from denizen.ports.sandbox import ShellView
from tests.app.home_folder import LAB, Home, open_home
from tests.repository import create_repository

pytestmark = pytest.mark.anyio

TEXT = f"""{LAB}
knowledge:
  # Every hour.
  sync_every_minutes: 60  # not too often
  remote:
    branch: kept  # of our own
"""


@pytest.mark.proves("S30")
async def test_a_change_is_written_with_all_comments_and_clears_snapshot_status_and_sessions(
    home: Home, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("A")
    home.write(TEXT)
    async with open_denizen(home.path, OpenOptions()) as denizen:
        knowledge, sandbox = denizen.knowledge, denizen.generation_deps.skills.sandbox
        await knowledge.catalog.add(str(notes), SourceChange())
        read = await knowledge.sync.wait(await knowledge.sync.start())
        assert (await knowledge.snapshots.status()).current == read.snapshot != ""
        view = ShellView((("", notes),))
        session = (await sandbox.run(["ls"], view, owner="a")).session_id
        switch = RemoteSwitch(denizen, Reloader(denizen).reload)
        await switch.change(RemoteRepository("", "kept"))
        assert (await knowledge.snapshots.status()).current == read.snapshot, "nothing was changed"
        assert (await sandbox.run(["ls"], view, owner="a", session_id=session)).session_id == session
        mirror = str(tmp_path / "mirror")
        await switch.change(RemoteRepository(mirror, "kept"))
        assert denizen.runtime.current.knowledge.snapshot_remote == RemoteRepository(mirror, "kept")
        status = await knowledge.snapshots.status()
        assert (status.current, status.latest, status.needs_sync) == ("", read.snapshot, True)
        assert (await sandbox.run(["ls"], view, owner="a", session_id=session)).session_id != session
        await switch.change(RemoteRepository("", "other", allow_existing=True))
        assert denizen.runtime.current.knowledge.snapshot_remote == RemoteRepository("", "other", allow_existing=True)
    text = home.config.read_text()
    assert "  # Every hour.\n  sync_every_minutes: 60  # not too often\n" in text
    assert "branch: other  # of our own" in text


@pytest.mark.proves("S30")
async def test_a_repository_of_somebody_else_changes_nothing(home: Home, tmp_path: Path) -> None:
    other = create_repository(tmp_path / "other", {"precious.txt": "x"})
    async with open_home(home, TEXT) as denizen:
        switch = RemoteSwitch(denizen, Reloader(denizen).reload)
        with pytest.raises(Conflict):
            await switch.change(RemoteRepository(str(other.folder), "kept"))
        assert home.config.read_text() == TEXT
        await switch.change(RemoteRepository(str(other.folder), "kept", allow_existing=True))
    assert "allow_existing: true" in home.config.read_text()
