"""An owner moves everything to Postgres from Discord: real processes, a real Postgres, a simulated Discord."""

from __future__ import annotations

import pytest
from anyio import to_thread

from denizen.domain.turn import TurnStatus
from tests.e2e.discord import DiscordDeployment
from tests.e2e.records import read_turns

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.xdist_group("postgres")]
pytest_plugins = ["tests.postgres"]


@pytest.mark.proves("V25")
async def test_an_owner_moves_the_store_and_sees_how_far_it_is_in_one_message_and_where_it_is_afterwards(
    deployment: DiscordDeployment, postgres_url: str
) -> None:
    deployment.home.variables["DATABASE"] = postgres_url
    deployment.configure(conduct=[f'owners: ["{deployment.ana.id}"]'], rest='store: {move_to: "${DATABASE}"}\n')
    async with deployment.run() as denizen:
        deployment.script("Hello, Ana.")
        deployment.ask(deployment.ana, "hello")
        await deployment.until(lambda: deployment.said() == ["Hello, Ana."])

        before = await deployment.run_command(deployment.ana, "migrate status")
        assert "The store is in SQLite" in before.content
        assert "1  turns" in before.content
        refused = await deployment.run_command(deployment.ben, "migrate to-postgres", confirm="yes")
        assert "for owners only" in refused.content
        asked = await deployment.run_command(deployment.ana, "migrate to-postgres")
        assert "confirm: yes" in asked.content

        progress = await deployment.run_command(deployment.ana, "migrate to-postgres", confirm="yes")
        await deployment.until(lambda: "The store has moved to" in progress.content)
        assert progress.ephemeral
        await deployment.until(lambda: len(denizen.lines("account ready")) == 2)  # it has restarted itself
        after = await deployment.run_command(deployment.ana, "migrate status")
        assert "The store is in Postgres" in after.content
        assert "1  turns" in after.content
        deployment.script("Still here.")
        deployment.ask(deployment.ana, "are you there?")
        await deployment.until(lambda: deployment.said()[1:] == ["Still here."])
    turns = await to_thread.run_sync(read_turns, postgres_url)
    assert [turn.status for turn, _ in turns] == [TurnStatus.DONE] * 2
