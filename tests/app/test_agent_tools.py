"""The tools about agents in a whole home folder: what people are shown, what is written, and who may."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from denizen.app.build import Denizen, OpenOptions, open_denizen
from denizen.app.configuration import HomeConfiguration
from denizen.app.reload import Reloader
from denizen.domain.approval import ApprovalChoice, AskerReach
from denizen.domain.errors import NotAllowed
from denizen.domain.events import ApprovalRequested, TurnFinished
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.turn import TurnRequest
from denizen.engine.commands.chat_commands import ChatCommand, ChatCommands, CommandDone
from denizen.testing.model_server import model_server
from denizen.testing.model_wire import ModelAnswer, ModelCall
from tests.app.home_folder import Home, make_request

pytestmark = pytest.mark.anyio

CONFIG = """\
# Ours.
models:
  providers: {{lab: {{kind: openai-compatible, base_url: "{url}"}}}}
  aliases: {{balanced: lab/one}}
agents:
  ada:
    description: The first.
    planning: native
    tools: [list_agents, describe_agent, create_agent, delete_agent, switch_agent]
"""
BEA: dict[str, Any] = {
    "name": "bea",
    "description": "Answers about boats.",
    "identity": "You are an old sailor.",
    "instructions": "Never advise to sail alone.",
    "tools": ["calculator"],
}


class ServerFixture:
    """An open home folder whose model makes the calls that a test names."""

    def __init__(self, denizen: Denizen, models: Any) -> None:
        self.denizen = denizen
        self.models = models
        self.previews: list[str] = []
        self.count = 0

    async def use(
        self, tool: str, choice: ApprovalChoice = ApprovalChoice.ONCE, role: RoleName = RoleName.OWNER, **args: Any
    ) -> str:
        """Lets the model call a tool and decides about it where people are asked. Returns the result."""
        self.count += 1
        self.models.script(ModelAnswer(calls=(ModelCall(tool, args),)), ModelAnswer(text="Done."))
        request = make_request(self.denizen, "go", f"m{self.count}")
        request = _with_role(request, role)
        async for event in self.denizen.turns.stream(request):
            match event:
                case ApprovalRequested(approval=approval):
                    self.previews.append(approval.request.preview)
                    await self.denizen.turns.approvals.decide(approval.id, self.denizen.operator, choice)
                case TurnFinished(turn_id=key):
                    trace = await self.denizen.queries.get_turn(key)
                    return trace.calls[-1].outcome.result.text.partition("\n[")[0]
                case _:
                    pass
        raise AssertionError("a stream of events ends with TurnFinished")


def _with_role(request: TurnRequest, role: RoleName) -> TurnRequest:
    asker = replace(request.sender.principal, roles=frozenset({role}))
    return replace(request, sender=replace(request.sender, principal=asker, reach=AskerReach.WATCHER))


@asynccontextmanager
async def open_server(home: Home) -> AsyncGenerator[ServerFixture]:
    async with model_server() as models:
        home.write(CONFIG.format(url=models.openai_url))
        async with open_denizen(home.path, OpenOptions()) as denizen:
            denizen.agents.open_configuration(HomeConfiguration(denizen, Reloader(denizen)))
            yield ServerFixture(denizen, models)


@pytest.mark.proves("V35")
async def test_an_agent_that_a_model_proposes_is_there_once_the_owner_agrees_to_what_is_written(home: Home) -> None:
    async with open_server(home) as server:
        number = server.denizen.runtime.current.number
        refused = await server.use("create_agent", ApprovalChoice.DENY, **BEA)
        assert refused.startswith("Denied") and "bea" not in server.denizen.runtime.current.agents
        assert await server.use("create_agent", **BEA) == "bea is there now."
        current = server.denizen.runtime.current
        assert current.number == number + 1
        assert (current.default_agent, current.agent("bea").tool_access.tools) == ("ada", ("calculator",))
        for shown in server.previews:
            assert "+  bea:\n" in shown and "+    tools: [calculator]\n" in shown and "The first" not in shown
            assert "+++ agents/bea/IDENTITY.md" in shown and "+You are an old sailor." in shown
            assert "+Never advise to sail alone." in shown
        assert home.config.read_text().startswith("# Ours.\n")


@pytest.mark.proves("V-skill-agent-system")
async def test_agents_are_listed_described_switched_and_deleted_through_tools(home: Home) -> None:
    async with open_server(home) as server:
        await server.use("create_agent", **BEA)
        assert await server.use("list_agents") == "ada: The first.\nbea: Answers about boats."
        assert "tools: calculator" in await server.use("describe_agent", name="bea")
        assert await server.use("switch_agent", name="bea", enabled=False) == "bea is off now."
        assert "bea (off)" in await server.use("list_agents")
        with pytest.raises(NotAllowed, match="switched off"):
            await server.denizen.turns.submit(make_request(server.denizen, "hi", "x", agent="bea"))
        assert await server.use("switch_agent", name="bea", enabled=True) == "bea is on now."
        assert (await server.use("delete_agent", name="bea")).startswith("bea is gone.")
        assert set(server.denizen.runtime.current.agents) == {"ada"}
        assert len(server.previews) == 4, "people are asked about each change, and about nothing else"


async def test_what_would_be_refused_is_not_asked_about(home: Home) -> None:
    async with open_server(home) as server:
        refused: Sequence[tuple[dict[str, Any], str]] = (
            ({**BEA, "name": "ada"}, "There is an agent 'ada' already"),
            ({**BEA, "tools": ["no_such_tool"]}, "There is no tool no_such_tool"),
            ({**BEA, "identity": "${LAB_KEY}"}, "stands for a secret"),
        )
        for args, why in refused:
            assert why in await server.use("create_agent", **args)
        assert "is the default agent" in await server.use("switch_agent", name="ada", enabled=False)
        told = await server.use("create_agent", role=RoleName.MEMBER, **BEA)
        assert "owners and admins only" in told
        assert "owners and admins only" in await server.use("delete_agent", role=RoleName.MEMBER, name="ada")
        assert (server.previews, set(server.denizen.runtime.current.agents)) == ([], {"ada"})


async def give(server: ServerFixture, text: str, role: RoleName = RoleName.OWNER) -> str:
    """Gives a command, and returns its reply."""
    denizen = server.denizen
    commands = ChatCommands(denizen.runtime, denizen.services, denizen.turns, denizen.chats, denizen.catalogs)
    caller = Principal(PrincipalKind.WEB_USER, f"user_{role}", "Ann", frozenset({role, RoleName.MEMBER}))
    server.count += 1
    events = [
        each async for each in commands.run(ChatCommand(text=text, caller=caller, session="s", key=f"k{server.count}"))
    ]
    [done] = [each for each in events if isinstance(each, CommandDone)]
    return done.reply.text


async def test_an_owner_makes_an_agent_by_a_command_that_asks_step_by_step_and_shows_what_it_writes(home: Home) -> None:
    async with open_server(home) as server:
        assert "/agents is for owners only" in await give(server, "/agents create name:bea", RoleName.ADMIN)
        asked = await give(server, "/agents create")
        assert "`/agents create name: ...`" in asked and "What is it for, in one sentence?" in asked
        wrong = await give(server, "/agents create name:Bea! description:Answers about boats. tools:nonsense")
        assert "`name`: This cannot be an agent's name." in wrong and "`tools`: There is no tool nonsense." in wrong
        assert wrong.endswith("Kept: description.")
        shown = await give(server, "/agents create name:bea tools:calculator identity:You are an old sailor.")
        assert "+  bea:\n" in shown and "+    description: Answers about boats." in shown
        assert "+You are an old sailor." in shown and "The first" not in shown
        assert "`instructions`: What does it do" in shown
        changed = await give(server, "/agents create write:yes identity:-")
        assert "old sailor" not in changed, "what was not shown is not written"
        assert "bea" not in server.denizen.runtime.current.agents
        assert await give(server, "/agents create write:yes") == "bea is there now."
        assert server.denizen.runtime.current.agent("bea").tool_access.tools == ("calculator",)
        assert await give(server, "/agents discard") == "There were no answers."


async def test_what_another_made_meanwhile_is_shown_again_before_it_is_written(home: Home) -> None:
    async with open_server(home) as server:
        await give(server, "/agents create name:bea description:Answers about boats.")
        await server.use("create_agent", **BEA)
        assert "There is an agent 'bea' already." in await give(server, "/agents create write:yes")
        assert "+  cleo:" in await give(server, "/agents create name:cleo")
        assert await give(server, "/agents create write:yes") == "cleo is there now."
