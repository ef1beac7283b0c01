"""The contract of the store about mirrored issues: states, and links that have one counterpart on each side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.issue_mirror import IssueLink, LinkKind, MirrorState
from denizen.ports.store import Store
from tests.clock import NOON
from tests.contracts.store.records import at

STATE = MirrorState(
    key="m", project_id="p", repository="a/b", seen_at=NOON, heard_at=NOON, written_at=NOON, looked_at=NOON
)
LINK = IssueLink(mirror="m", kind=LinkKind.ISSUE, local_id="tsk_1", remote_id="7", base={"task": {"tags": ["a"]}})


@pytest.mark.anyio
class IssueMirrorContract:
    async def test_a_mirror_has_one_state(self, store: Store) -> None:
        changed = replace(STATE, is_imported=True, imported=3, seen_at=at(1), failure="gone \ud800")
        async with store.work() as work:
            await work.issue_mirrors.put_state(STATE)
            await work.issue_mirrors.put_state(replace(STATE, key="other"))
            await work.issue_mirrors.put_state(changed)
            assert await work.issue_mirrors.list_states() == [changed, replace(STATE, key="other")]

    async def test_a_link_is_found_from_both_sides_and_keeps_its_counterpart(self, store: Store) -> None:
        comment = replace(LINK, kind=LinkKind.COMMENT, local_id="cmt_1")
        async with store.work() as work:
            for link in (LINK, comment, replace(LINK, mirror="other")):
                await work.issue_mirrors.put_link(link)
            changed = replace(LINK, base={"task": {}}, is_gone=True)
            await work.issue_mirrors.put_link(changed)
            assert await work.issue_mirrors.find_link("m", LinkKind.ISSUE, remote_id="7") == changed
            assert await work.issue_mirrors.find_local("m", LinkKind.ISSUE, local_id="tsk_1") == changed
            assert await work.issue_mirrors.find_link("m", LinkKind.COMMENT, remote_id="7") == comment
            assert await work.issue_mirrors.find_link("other", LinkKind.ISSUE, remote_id="7") is not None
            assert await work.issue_mirrors.find_local("m", LinkKind.ISSUE, local_id="cmt_1") is None
