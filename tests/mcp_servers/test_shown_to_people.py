"""What the bundled servers show, all the way: the program over MCP, a turn, and messages on a platform."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from denizen.adapters.mcp import McpServerSpec, StdioTransport
from denizen.domain.delivery import MessageContent
from denizen.domain.json import Json
from denizen.domain.tool import ToolCall, ToolResult
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.adapters.mcp import mcp_fixture
from tests.adapters.mcp.mcp_fixture import open_toolset
from tests.engine.engine_fixture import ToolsetFixture
from tests.engine.platform_fixture import open_platform
from tests.mcp_servers.vendor_simulator import KEY, Vendor

pytestmark = pytest.mark.anyio


async def ask(program: str, env: dict[str, str], tool: str, **args: Json) -> tuple[Sequence[MessageContent], str]:
    """Returns the messages that people see, and what the model reads of the result."""
    path = str(Path(sys.executable).with_name(program))
    server = McpServerSpec("small", StdioTransport(path, (), Path("/"), tuple(sorted(env.items()))))
    async with open_toolset(server) as toolset:

        async def run(asked: ToolCall, scope: CallScope) -> ToolResult:
            return await mcp_fixture.call(toolset, f"small_{tool}", args)

        model = ScriptedModel(ScriptedReply(calls=[call("look", q="x")]), ScriptedReply("Here you are."))
        async with open_platform(model=model, tools=ToolsetFixture(run=run)) as fixture:
            fixture.world.platform.say(fixture.world.general, "ana", "@ada draw")
            return [sent.content for sent in await fixture.sent()], str(model.requests[1].messages)


@pytest.mark.proves("L9", "L-tool-generate-sprite")
async def test_a_sprite_is_one_card_with_the_attached_picture_and_a_link_for_each_direction(vendor: Vendor) -> None:
    vendor.polls = 0
    env = {"PIXELLAB_API_KEY": KEY, "PIXELLAB_BASE_URL": f"{vendor.url}/v2"}
    [message], read = await ask("denizen-mcp-pixellab", env, "generate_sprite", prompt="a knight")
    assert message.text == "Here you are."
    [card], [file] = message.embeds, message.files
    assert card.image == f"attachment://{file.name}" and file.media_type == "image/png"
    views = {name: f"[open]({vendor.url}/cdn/{name}.png)" for name in ("north", "east", "south", "west")}
    assert dict(card.fields) == views
    assert "SPRITE_RESULT" not in read and "base64" not in read


@pytest.mark.proves("L9", "L-tool-generate-image")
@pytest.mark.parametrize("form", ["url", "b64_json"])
async def test_each_further_painted_picture_is_a_message_of_its_own(vendor: Vendor, form: str) -> None:
    env = {"IMAGE_API_KEY": KEY, "IMAGE_BASE_URL": vendor.url}
    shown, _ = await ask("denizen-mcp-toolbox", env, "generate_image", prompt="a fox", n=2, response_format=form)
    assert [message.text for message in shown] == ["Here you are.", ""]
    images = [card.image for message in shown for card in message.embeds]
    if form == "url":
        assert images == ["https://images.example/1.png"] * 2
    else:
        assert images == [f"attachment://{file.name}" for message in shown for file in message.files]
