"""A server with every route there is, for tests of how they are described: with knowledge, webhooks, and a shell that
parrots.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from denizen.adapters.webhooks import SchemeName, find_scheme
from denizen.domain.json import Json
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.engine.knowledge.coverage import GapReport
from denizen.ports.events import EventSettings
from denizen.ports.model import ModelRequest
from denizen.ports.sandbox import REFUSED_EXIT_CODE, ShellReply, ShellResult
from denizen.ports.toolset import CallScope
from denizen.ports.webhooks import WebhookRoute
from denizen.testing.memory_durable import MemoryDurable
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from denizen.testing.temporary_store import TemporaryStore
from denizen.web.http.dependencies import GapServices, KnowledgeServices
from tests.clock import ManualClock
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, build_learning
from tests.engine.memory_fixture import WordEmbedder
from tests.web.knowledge_web_fixture import OWNER, build_knowledge_services
from tests.web_fixture import ADA, ANN, WebFixture, open_web

HOOK = WebhookRoute(name="alerts", scheme=find_scheme(SchemeName.BEARER), secret="the-secret-of-the-route")
_TEXT: Json = {"type": "string"}


class EchoShell:
    """A shell that says each command again, and refuses what has a `$` in it."""

    name = "parrot"

    async def list_tools(self) -> Sequence[ToolSpec]:
        one: dict[str, Json] = {"type": "object", "properties": {"command": _TEXT}, "required": ["command"]}
        commands: Json = {"type": "array", "items": _TEXT}
        several: dict[str, Json] = {"type": "object", "properties": {"commands": commands}, "required": ["commands"]}
        return [
            ToolSpec("bash", "Says it again.", one, tier=Tier.HARMLESS, read_only=True),
            ToolSpec("bash_batch", "Says them again.", several, tier=Tier.HARMLESS, read_only=True),
        ]

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        commands = cast("list[str]", call.args.get("commands") or [call.args["command"]])
        results = tuple(
            ShellResult(each, "", "refused: no.\n", REFUSED_EXIT_CODE, refused=True, duration_ms=0)
            if "$" in each
            else ShellResult(each, each, "", 0, refused=False, duration_ms=0)
            for each in commands
        )
        scope.trail.shell = ShellReply(scope.options.shell_session or "sess_1", results)
        return ToolResult("said")

    async def aclose(self) -> None:
        pass


def comply(request: ModelRequest) -> ScriptedReply:
    """Calls what has to be called, keeps to a form, and says hello otherwise."""
    if request.tool_choice == "required":
        return ScriptedReply(calls=[call(request.tools[0].name)])
    return ScriptedReply("Hello." if request.output_schema is None else "{}")


@asynccontextmanager
async def open_full_web(root: Path) -> AsyncGenerator[WebFixture]:
    engines: list[KnowledgeFixture] = []

    def make(store: TemporaryStore, durable: MemoryDurable, clock: ManualClock) -> KnowledgeServices:
        engines.append(KnowledgeFixture(root, store=store, durable=durable))
        return build_knowledge_services(engines[0], {})

    def make_gaps(store: TemporaryStore, _: MemoryDurable, clock: ManualClock) -> GapServices:
        return GapServices(GapReport(store, clock), build_learning(engines[0]))

    model = ScriptedModel(otherwise=comply)
    keys = [ADA, ANN, OWNER]
    async with open_web(
        model,
        keys=keys,
        make_knowledge=make,
        make_gaps=make_gaps,
        more=[EchoShell()],
        embedder=WordEmbedder(),
        events=EventSettings(routes={HOOK.name: HOOK}),
    ) as web:
        yield web
