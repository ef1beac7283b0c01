"""Questions without an answer and proposed answers by the SDK, on the real routes."""

from __future__ import annotations

from pathlib import Path

import anyio
import httpx2
import pytest

from denizen_sdk import ApiError, DenizenClient
from denizen_sdk.gaps import DecidedProposal, GapInfo, GapList
from tests.timing import HANG_LIMIT_S
from tests.web.gap_fixture import GapFixture, open_gaps
from tests.web_fixture import LOCAL

pytestmark = pytest.mark.anyio


def open_client(server: GapFixture, key: str = "key-of-ada") -> DenizenClient:
    return DenizenClient(LOCAL, key, transport=httpx2.ASGITransport(server.app))


async def test_what_no_document_answers_is_listed_and_closed(tmp_path: Path) -> None:
    async with open_gaps(tmp_path) as server, open_client(server) as admin:
        found = await admin.list_gaps(days=7)
        [gap] = found.gaps
        assert found == GapList(7, 3, 1, (gap,))
        asked = "How much is a berth?"
        assert gap == GapInfo(gap.id, asked, (asked,), 2, 2, "ada", "unknown", gap.last_at)
        assert await admin.close_gap(gap.id) == 2
        assert (await admin.list_gaps()).gaps == ()
        with pytest.raises(ApiError) as gone:
            await admin.close_gap(gap.id)
        with pytest.raises(ApiError) as wrong:
            await admin.list_gaps(days=0)
        async with open_client(server, "key-of-ann") as member:
            with pytest.raises(ApiError) as refused:
                await member.list_gaps()
    assert [each.value.status for each in (gone, wrong, refused)] == [404, 400, 403]


async def test_a_proposal_is_read_and_accepted(tmp_path: Path) -> None:
    async with open_gaps(tmp_path) as server, open_client(server) as admin:
        [proposal] = await admin.list_proposals()
        assert (proposal.answer, proposal.message.author, proposal.gap) == ("Ten euros.", "Ben", "gap_1")
        assert "+> Ten euros." in proposal.document.diff
        decided = await admin.accept_proposal(proposal.id, "Twelve euros.")
        assert decided.status == "accepted"
        with anyio.fail_after(HANG_LIMIT_S):
            await server.engine.sync.wait((await server.engine.sync.list_runs())[0])
        assert "> Twelve euros." in server.engine.files()[f"docs/learned/{proposal.document.file}"]
        assert [run.id for run in await server.engine.sync.list_runs()] == [decided.sync]
        with pytest.raises(ApiError) as late:
            await admin.reject_proposal(proposal.id)
    assert late.value.status == 409


async def test_a_proposal_is_rejected(tmp_path: Path) -> None:
    async with open_gaps(tmp_path) as server, open_client(server) as admin:
        assert await admin.reject_proposal("prop_1", "No.") == DecidedProposal("rejected")
        assert await admin.list_proposals() == []
