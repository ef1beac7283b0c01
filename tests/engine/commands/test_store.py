"""/migrate: owners see what the store holds, and move it, with the progress in one message."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace

import pytest

from denizen.domain.attention import AccountPolicy, AccountStaff
from denizen.domain.errors import Conflict, DenizenError
from denizen.domain.store_move import MoveProgress, MoveStage, StoreStatus, TableRows
from denizen.engine.commands.dispatch import CommandDispatcher
from denizen.engine.commands.store import describe_progress, describe_store
from tests.engine.commands.command_fixture import ANA, BEN, ZOE, CommandFixture, open_commands

pytestmark = pytest.mark.anyio

PLACE = "postgresql://denizen:***@db/denizen"
COPYING = MoveProgress(stage=MoveStage.COPYING, target=PLACE, table="posts", done=250, total=1000)
DONE = MoveProgress(stage=MoveStage.DONE, target=PLACE, pause_s=0.1)


@dataclass
class ScriptedMove:
    """A move that goes through the given steps; implements `ports/store_move.py`."""

    steps: list[MoveProgress] = field(default_factory=lambda: [COPYING, DONE])
    progress: MoveProgress = field(default_factory=MoveProgress)
    started: int = 0
    unusable: DenizenError | None = None
    """Why the configured target cannot be used."""

    async def status(self) -> StoreStatus:
        tables = (TableRows("turns", 0), TableRows("posts", 12_345))
        return StoreStatus(backend="sqlite", place="sqlite:////srv/denizen.db", tables=tables, move=self.progress)

    async def find_target(self) -> str:
        if self.unusable:
            raise self.unusable
        return PLACE

    async def start(self) -> None:
        self.started += 1
        self.progress = self.steps[0]

    def cancel(self) -> None:
        if not self.progress.is_running:
            raise Conflict("No move is under way.", code="move_none")
        self.progress = MoveProgress(stage=MoveStage.CANCELLED, problem="The move was cancelled.")

    async def follow(self) -> AsyncGenerator[MoveProgress]:
        for step in self.steps:
            self.progress = step
            yield step


def give_move(engine: CommandFixture, move: ScriptedMove) -> None:
    deps = engine.commands._deps
    engine.commands = CommandDispatcher(replace(deps, services=replace(deps.services, store_move=move)))


@pytest.mark.proves("V25")
async def test_an_owner_sees_the_backend_and_the_rows_and_moves_with_a_bar_that_grows() -> None:
    async with open_commands() as engine:
        move = ScriptedMove()
        give_move(engine, move)
        told = (await engine.give("/migrate status", ZOE)).text
        assert "The store is in SQLite: `sqlite:////srv/denizen.db`" in told
        assert "12,345  posts" in told
        assert "Empty: turns" in told
        unsure = await engine.give("/migrate to-postgres", ZOE)
        assert unsure.is_failure
        assert PLACE in unsure.text
        assert move.started == 0
        begun = await engine.give("/migrate to-postgres confirm: yes", ZOE)
        assert "`█████░░░░░░░░░░░░░░░` 25%, 250 of 1,000 rows" in begun.text
        assert "/migrate cancel stops it" in begun.text
        assert begun.updates is not None
        assert [text async for text in begun.updates] == [describe_progress(COPYING), describe_progress(DONE)]
        assert "has moved" in (await engine.give("/migrate status", ZOE)).text
        assert (await engine.give("/migrate cancel", ZOE)).is_failure
        async with engine.store.work(write=False) as work:
            written = [(each.event.subject, each.event.details) for each in await work.audit.list_entries()]
        assert written == [("store", {"to": "to-postgres"}), ("store", {"to": "cancel"})]


async def test_only_owners_give_it() -> None:
    account_policy = AccountPolicy(staff=AccountStaff(owners=frozenset({ZOE.id}), admins=frozenset({BEN.id})))
    async with open_commands(account_policy=account_policy) as engine:
        move = ScriptedMove()
        give_move(engine, move)
        for who in (ANA, BEN):
            for way in ("status", "to-postgres confirm: yes", "cancel"):
                refused = await engine.give(f"/migrate {way}", who)
                assert refused.is_failure
                assert "is for owners only" in refused.text
        assert move.started == 0


async def test_where_the_store_cannot_be_moved_that_is_said() -> None:
    async with open_commands() as engine:
        assert "cannot be moved from this process" in (await engine.give("/migrate status", ZOE)).text


async def test_a_move_that_was_left_or_failed_is_told_with_the_way_on() -> None:
    left = StoreStatus(backend="sqlite", place="here", tables=(), begun=PLACE, move=MoveProgress())
    assert f"A move to `{PLACE}` has begun. /migrate to-postgres goes on with it." in describe_store(left)
    failed = MoveProgress(stage=MoveStage.FAILED, problem="The disk is full.\nfix: Make room.")
    assert describe_progress(failed) == "The store was not moved.\nThe disk is full.\nfix: Make room."
