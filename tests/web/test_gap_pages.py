"""The pages of gaps and proposed answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.web.gap_fixture import GAP, PROPOSAL, open_gaps
from tests.web.test_source_pages import Browser

pytestmark = pytest.mark.anyio

ONE = f"/admin/gaps/proposals/{PROPOSAL.id}"


async def test_gaps_are_listed_the_most_asked_first_without_private_ones_and_closed(tmp_path: Path) -> None:
    async with open_gaps(tmp_path) as server:
        ada = Browser(server.client, "key-of-ada")
        async with server.store.work() as work:
            await work.gaps.add(replace(GAP, id="gap_9", question="<b>Who</b> mends nets?"))
        page = await ada.read("/admin/gaps")
        assert page.index("How much is a berth?") < page.index("mends nets?")
        assert ("&lt;b&gt;Who" in page, "<b>Who" in page, "Is my secret safe?" in page) == (True, False, False)
        assert "1 of 4 were asked in private" in page
        closed = await ada.send("/admin/gaps/close", gap=GAP.id, days="90")
        assert closed.headers["location"] == "/admin/gaps?days=90&done=closed"
        page = await ada.read("/admin/gaps?days=90&done=closed")
        assert ("Close: How much is a berth?" in page, "mends nets?" in page) == (False, True)
        for gap in ("gap_2", "gone"):
            answer = await ada.send("/admin/gaps/close", gap=gap)
            assert (answer.status_code, f"There is no open gap &#39;{gap}&#39;" in answer.text) == (404, True)
        assert (await server.client.get("/admin/gaps", headers={"x-api-key": "key-of-ann"})).status_code == 403


async def test_a_proposed_answer_is_shown_with_its_change_edited_and_accepted(tmp_path: Path) -> None:
    async with open_gaps(tmp_path) as server:
        ada = Browser(server.client, "key-of-ada")
        page = await ada.read(ONE)
        assert ("Ten euros." in page, "<ins>+" in page, PROPOSAL.answer.link in page) == (True, True, True)
        shown = await ada.send(f"{ONE}/accept", text="Eleven <i>euros</i>.", preview="yes")
        assert shown.status_code == 200
        assert "<ins>+&gt; Eleven &lt;i&gt;euros&lt;/i&gt;.</ins>" in shown.text
        long = await ada.send(f"{ONE}/accept", text="x" * 20_000)
        assert (long.status_code, "The answer is too long." in long.text) == (400, True)
        async with server.engine:
            accepted = await ada.send(f"{ONE}/accept", text="Eleven euros.")
            assert accepted.headers["location"] == "/admin/gaps?done=accepted"
            async with server.store.work(write=False) as work:
                found = await work.proposals.find(PROPOSAL.id)
        assert found is not None
        assert (found.status, found.decision.text, found.decision.by) == ("accepted", "Eleven euros.", "api_key:ada")
        again = await ada.send(f"{ONE}/accept", text="Twelve.")
        assert (again.status_code, "Somebody has decided about" in again.text) == (409, True)


async def test_a_proposed_answer_is_rejected_with_a_reason(tmp_path: Path) -> None:
    async with open_gaps(tmp_path) as server:
        ada = Browser(server.client, "key-of-ada")
        rejected = await ada.send(f"{ONE}/reject", reason="It is wrong.")
        assert rejected.headers["location"] == "/admin/gaps?done=rejected"
        async with server.store.work(write=False) as work:
            found = await work.proposals.find(PROPOSAL.id)
        assert found is not None
        assert (found.status, found.decision.reason) == ("rejected", "It is wrong.")
        assert "None waits." in await ada.read("/admin/gaps")
