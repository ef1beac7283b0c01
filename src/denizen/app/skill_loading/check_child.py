"""The child process of `check`: imports one skill, runs its examples when asked to, and writes the result to a file.

python -m denizen.app.skill_loading.check_child check|test HOME NAME SHA256 RESULT
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio

from denizen.adapters.commands import ProgramRunner
from denizen.adapters.fetch import WebFetcher
from denizen.app.skill_loading.folder import load_folder, read_folder_manifest
from denizen.app.skill_loading.registry import list_own_frames, load_skill
from denizen.domain.clock import SystemClock
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError, NotAllowed
from denizen.domain.ids import AgentName, CallId, SessionId, TurnId
from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import Tier, ToolCall, ToolResult
from denizen.engine.configuration.tool_policy import GatePolicy
from denizen.engine.gate.executor import BoundTool, ToolExecutor
from denizen.engine.tools.arguments import ArgumentsError, check_arguments
from denizen.ports.toolset import CallOptions, CallScope
from denizen.skill.context import HistoryMessage, SkillFolders, SkillServices
from denizen.skill.manifest import SkillExample, SkillManifest, restrict_services
from denizen.skill.skill import Skill
from denizen.skill.toolset import SkillToolset

MAX_CPU_S = 60
MAX_FILE_BYTES = 100_000_000
_SHOWN_CHARS = 300
_PLACE = Place("terminal", "skill-test")


def main(arguments: Sequence[str]) -> int:
    mode, home, name, sha256, result = arguments
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
    folder = load_folder(Path(home), name)
    problems: list[str] = []
    tools: list[list[object]] = []
    passed = 0
    if folder.sha256 != sha256:
        problems.append("it changed while it was looked at: try again")
    else:
        manifest = read_folder_manifest(folder)
        try:
            skill = load_skill(folder, manifest)
            tools = [[spec.name, int(max(spec.tier, manifest.tier))] for spec in skill.specs()]
        except DenizenError as error:
            # The last line of the skill's own code that led to the error says where to look.
            own = list_own_frames(folder, error)
            place = f"{own[-1].partition(' ')[0]}: " if own else ""
            problems = [place + error.message + (f": {error.fix}" if error.fix else "")]
        else:
            if mode == "test":
                problems = anyio.run(_run_examples, skill, manifest)
                passed = len(manifest.examples) - len(problems)
    row = {"problems": problems, "tools": tools, "passed": passed}
    Path(result).write_text(json.dumps(row), encoding="utf-8")
    return 0


async def _run_examples(skill: Skill, manifest: SkillManifest) -> list[str]:
    toolset = SkillToolset(skill, restrict_services(_services(), skill.name, manifest.permissions))
    specs = {spec.name: spec for spec in await toolset.list_tools()}
    gate = ToolExecutor(SystemClock())
    problems: list[str] = []
    for number, example in enumerate(manifest.examples, 1):
        if example.tool not in specs:
            problems.append(f"example {number}: there is no tool `{example.tool}`: it has {', '.join(specs)}")
            continue
        try:
            args = check_arguments(specs[example.tool], dict(example.args))
        except ArgumentsError as error:
            result = ToolResult(str(error), is_error=True)
        else:
            # Whoever runs the examples has decided that they may run.
            declared = specs[example.tool]
            flow = replace(declared.flow, effects=frozenset())
            spec = replace(declared, tier=Tier.HARMLESS, destructive=False, flow=flow)
            call = ToolCall(CallId(f"example-{number}"), example.tool, args)
            result = (await gate.run(BoundTool(spec, toolset), call, _scope(number), GatePolicy())).result
        problems += _compare(number, example, result)
    return problems


def _compare(number: int, example: SkillExample, result: ToolResult) -> list[str]:
    shown = " ".join(result.text.split())[:_SHOWN_CHARS]
    if result.is_error != example.is_error:
        wanted = "fail" if example.is_error else "work"
        return [f"example {number}: {example.tool} should {wanted}, and gave: {shown}"]
    if example.expect not in result.text:
        return [f"example {number}: {example.tool} gave: {shown}; expected in it: {example.expect}"]
    return []


def _services() -> SkillServices:
    fetcher = WebFetcher()
    place = Path.cwd()
    return SkillServices(
        clock=SystemClock(),
        fetcher=fetcher,
        folders=SkillFolders(own=lambda agent, skill: place / agent / skill),
        search_history=_no_history,
        call_tool=_no_tools,
        download=fetcher.download,
        run_program=ProgramRunner(home=place, environ={}),
    )


async def _no_history(scope: CallScope, words: str, limit: int) -> Sequence[HistoryMessage]:
    del scope, words, limit
    return ()


async def _no_tools(scope: CallScope, tool: str, args: JsonObject) -> ToolResult:
    del scope, tool, args
    raise NotAllowed("examples cannot call other tools", fix="test by hand what a tool does with the others")


def _scope(number: int) -> CallScope:
    tester = Principal(PrincipalKind.LOCAL, "tester", "tester")
    return CallScope(
        agent=AgentName("tester"),
        principal=tester,
        place=_PLACE,
        session_id=SessionId("s"),
        turn_id=TurnId("t"),
        options=CallOptions(idempotency_key=f"example-{number}"),
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
