"""Commands and the look inside through the client."""

import pytest

from denizen.domain.custom_command import CustomCommand
from denizen.engine.configuration.generation import CustomCommandSet
from denizen_sdk import DenizenClient
from denizen_sdk.commands import CommandRequest
from denizen_sdk.turns import CommandFinishedEvent, ShellOutputEvent, TurnFinishedEvent
from tests.engine.commands.test_custom import ALLOWED, STATUS, ProgramToolset
from tests.web.api.test_inspection import INSTANCE, mirror
from tests.web_fixture import make_hello_model, open_web

pytestmark = pytest.mark.anyio


async def test_commands_are_listed_and_given() -> None:
    greet = CustomCommand("greet", "Greets.", prompt="Say hello to {{input}}.")
    commands = CustomCommandSet((STATUS, greet), ProgramToolset().tools)
    async with (
        open_web(make_hello_model(), commands=commands, policy=ALLOWED) as web,
        web.serve() as url,
        DenizenClient(url) as client,
    ):
        known = {command.name: command for command in await client.list_commands()}
        output, done = [event async for event in client.run_command("/status db")]
        told = [event async for event in client.run_command(CommandRequest("/greet Ana", chat="c", agent="scribe"))]
        details = await client.get_chat("c")
    assert [option.name for option in known["greet"].options] == ["input"]
    assert output == ShellOutputEvent("all is well")
    assert done == CommandFinishedEvent("", "denizen")
    assert any(isinstance(event, TurnFinishedEvent) and event.reply == "Hello." for event in told)
    assert (details.chat.agent, details.messages[0].text) == ("scribe", "Say hello to Ana.")


async def test_a_server_is_inspected() -> None:
    async with open_web(make_hello_model(), instance=INSTANCE) as web, web.serve() as url, DenizenClient(url) as client:
        await mirror(web)
        await client.ask("Hi")
        assert [each.kind for each in await client.list_activity()] == ["turn"]
        assert await client.list_context_files() == []
        assert "store" in (await client.inspect_health()).problems
        assert (await client.inspect_statistics()).rooms["discord"] == 2
        assert [each.agent for each in await client.inspect_accounts()] == ["denizen"]
        assert {each.id for each in await client.inspect_channels()} == {"10", "20"}
        assert (await client.inspect_channel("discord", "10")).blocks == 1
        assert [each.id for each in await client.inspect_messages("discord", "10", before="102")] == ["100", "101"]
        assert [each.number for each in await client.inspect_boundaries("discord", "10")] == [1]
        assert [each.number for each in await client.inspect_transcript("discord", "10")] == [1, None]
        assert [each.model for each in await client.inspect_payload("And now?")] == ["scripted/model"]
        assert await client.reset_blocks("discord", "10") == 1
