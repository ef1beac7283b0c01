"""The audit log on its page: searching, paging, and verifying the chain."""

from __future__ import annotations

import pytest

from denizen.domain.audit import AuditEvent, AuditKind
from denizen.web.pages.audit import PATH, SHOWN
from tests.clock import NOON
from tests.web.admin_pages_fixture import PageText, ask, read
from tests.web.knowledge_web_fixture import OWNER
from tests.web_fixture import ADA, ANN, WebFixture, open_web

pytestmark = pytest.mark.anyio


async def fill(web: WebFixture, count: int) -> str:
    """The digest of the newest entry."""
    async with web.store.work() as work:
        head = await work.audit.add(
            [
                AuditEvent(
                    AuditKind.CALL, NOON, f"platform_user:{n % 2}", f"tool{n}", {"decision": "deny", "turn": "t"}
                )
                for n in range(count)
            ]
        )
    return head.digest


async def test_entries_are_found_by_kind_and_by_words_in_actor_and_subject() -> None:
    async with open_web(keys=[OWNER]) as web:
        await fill(web, 3)
        async with web.store.work() as work:
            await work.audit.add([AuditEvent(AuditKind.SWITCH, NOON, "local:me", "<b>observer</b>", {"to": "off"})])
        everything = await read(web, "olga", PATH)
        html = (await ask(web, "olga", "GET", PATH)).text
        calls = await read(web, "olga", f"{PATH}?kind=call")
        tool = await read(web, "olga", f"{PATH}?words=TOOL1")
        actor = await read(web, "olga", f"{PATH}?words=user:0&kind=call")
        nothing = await read(web, "olga", f"{PATH}?words=nowhere")
    assert [row[0] for row in everything.rows] == ["4", "3", "2", "1"]
    assert everything.rows[0][2:5] == ["switch", "<b>observer</b>", "local:me"]
    assert "<b>observer" not in html
    assert [row[0] for row in calls.rows] == ["3", "2", "1"]
    assert [row[0] for row in tool.rows] == ["2"]
    assert [row[0] for row in actor.rows] == ["3", "1"]
    assert "No entry fits." in nothing.text


async def test_older_entries_are_on_the_next_page_which_keeps_the_search() -> None:
    async with open_web(keys=[OWNER]) as web:
        await fill(web, 2 * SHOWN + 4)
        first = await read(web, "olga", f"{PATH}?kind=call&words=user:0")
        [older] = [str(attrs["href"]) for attrs in first.all("a") if "before=" in str(attrs["href"])]
        second = await read(web, "olga", older)
    numbers = [int(row[0]) for row in (*first.rows, *second.rows)]
    assert numbers == list(range(2 * SHOWN + 3, 0, -2))
    assert "These are the oldest." in second.text


async def test_verifying_tells_that_nothing_was_changed_or_where_something_was() -> None:
    async with open_web(keys=[OWNER]) as web:
        digest = await fill(web, 3)
        good = await read(web, "olga", f"{PATH}/verification?noted={digest}")
        bad = await read(web, "olga", f"{PATH}/verification?noted={'a' * 64}")
    assert "3 entries, nothing was changed." in good.text
    assert digest in good.text
    assert "The audit log is not what was written." in bad.text


async def test_admins_and_members_may_not_read_it_and_admins_see_no_link_to_it() -> None:
    async with open_web(keys=[OWNER, ADA, ANN]) as web:
        assert [(await ask(web, who, "GET", PATH)).status_code for who in ("ada", "ann", "olga")] == [403, 403, 200]
        assert (await ask(web, "ada", "GET", f"{PATH}/verification")).status_code == 403
        links = [PageText((await ask(web, who, "GET", "/settings")).text).all("a") for who in ("ada", "olga")]
    assert [any(attrs.get("href") == PATH for attrs in each) for each in links] == [False, True]
