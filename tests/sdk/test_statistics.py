"""Usage by the SDK, on the real routes."""

from __future__ import annotations

import httpx2
import pytest

from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from denizen_sdk import ApiError, DenizenClient
from denizen_sdk.usage import ComputedDay, TokenCounts
from tests.web_fixture import ADA, ANN, LOCAL, open_web

pytestmark = pytest.mark.anyio


async def test_usage_is_reported_summed_up_and_read() -> None:
    async with open_web(ScriptedModel(otherwise=ScriptedReply("Hello."), name="m1"), keys=[ADA, ANN]) as web:
        transport = httpx2.ASGITransport(web.app)
        member = DenizenClient(LOCAL, "key-of-ann", source="bot", transport=transport)
        async with member, DenizenClient(LOCAL, "key-of-ada", transport=transport) as admin:
            await member.ask("hi")
            await member.report_usage(TokenCounts(70, 30), model="m2")
            own = await member.get_own_statistics(days=7)
            assert (own.days, own.totals.messages, own.top_users) == (7, 2, None)
            assert {each.key for each in own.by_source} == {"web", "bot"}
            of_all = await admin.get_statistics(days=1, source="bot")
            assert (of_all.totals.input_tokens, [each.key for each in of_all.by_model]) == (70, ["m2"])
            assert (await admin.get_statistics(model="m2")).totals.messages == 1
            assert await admin.compute_statistics() == ComputedDay("2026-11-20", 0)
            web.clock.advance(days=1)
            summed = await admin.compute_statistics()
            assert (summed.date, await admin.compute_statistics("2026-11-21")) == ("2026-11-21", summed)
            assert summed.rows > 0
            for wrong in (member.get_statistics(), member.compute_statistics(), admin.get_statistics(days=366)):
                with pytest.raises(ApiError):
                    await wrong
