"""What a result holds beside its text, as it is recorded and shown to people."""

from __future__ import annotations

import pytest

from denizen.domain.ids import CallId
from denizen.domain.json import Json
from denizen.domain.tool import ToolCall, ToolResult
from denizen.engine.configuration.tool_policy import GatePolicy, ResultPolicy
from denizen.engine.gate.executor import BoundTool, ToolExecutor
from denizen.ports.toolset import CallScope
from tests.clock import ManualClock
from tests.engine.engine_fixture import LOOK, ToolsetFixture
from tests.engine.gate.gate_fixture import scope

pytestmark = pytest.mark.anyio

FILE = "data:image/png;base64,aGlkZGVu"


@pytest.mark.parametrize(
    ("card", "shown"),
    [
        ({"text": "the key is hidden"}, {"text": "the key is •••"}),
        ({"text": "data: hidden"}, {"text": "data: •••"}),
        ({"url": "data:image/svg+xml,<svg>hidden</svg>"}, {"url": "data:image/svg+xml,<svg>•••</svg>"}),
        ({"fields": {"hidden": "key"}}, {"fields": {"•••": "key"}}),
        ({"url": FILE}, {"url": FILE}),
    ],
)
async def test_no_secret_is_shown_in_a_card_wherever_it_stands(card: Json, shown: Json) -> None:
    async def run(_: ToolCall, __: CallScope) -> ToolResult:
        return ToolResult("found", data={"embeds": [card]})

    policy = GatePolicy(results=ResultPolicy(mask=lambda text: text.replace("hidden", "•••")))
    gate = ToolExecutor(ManualClock())
    outcome = await gate.run(
        BoundTool(LOOK, ToolsetFixture(run=run)), ToolCall(CallId("c"), "look", {}), scope(), policy
    )
    assert outcome.result.data == {"embeds": [shown]}
