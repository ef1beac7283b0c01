"""The folders of context and knowledge: what of them reaches an agent's prompt, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from threading import Event

import anyio
import pytest

from denizen.app.knowledge import OwnFiles, find_shell_view
from denizen.app.reload import watch
from denizen.app.settings import render_settings
from denizen.domain.agent import Agent, AgentInstructions, ContextStrategy, HistorySettings, TranscriptLayout
from denizen.domain.ids import AgentName, CallId
from denizen.domain.prompt import Stability
from denizen.domain.tool import ToolCall
from denizen.engine.prompt.system_prompt import assemble_participant_prompt
from denizen.engine.tools.toolbox import list_all
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.app.home_folder import LAB, Home, open_home
from tests.engine.engine_fixture import NAME, open_engine
from tests.skill_fixture import scope
from tests.timing import HANG_LIMIT_S

DENIZEN = AgentName("denizen")


def headings(home: Home, text: str = "") -> list[str]:
    return [heading for heading, _ in home.load(text).agents[DENIZEN].instructions.context_files]


@pytest.mark.proves("T-agent-context")
@pytest.mark.anyio
@pytest.mark.parametrize("context", list(ContextStrategy))
async def test_context_files_go_into_the_prompt_sorted_the_shared_ones_first_under_headings_of_their_names(
    home: Home, context: ContextStrategy
) -> None:
    for name in ("context/rules", "context/house", "agents/ada/context/task", "agents/ada/context/about"):
        home.add_file(f"{name}.md", f"\nWords of {name}.\n")
    home.add_file("context/notes.txt", "no Markdown")
    model = ScriptedModel(ScriptedReply("Hello."))
    agent = home.load(f"agents: {{ada: {{context: {context.value}}}}}").agents[NAME]
    async with open_engine(model, agent=agent) as engine:
        await engine.say("hello")
    (segment,) = [each for each in model.requests[0].segments if each.name == "context"]
    assert segment.stability is Stability.CONFIG
    assert segment.text == (
        "# house\n\nWords of context/house.\n\n# rules\n\nWords of context/rules.\n\n"
        "# about\n\nWords of agents/ada/context/about.\n\n# task\n\nWords of agents/ada/context/task."
    )


@pytest.mark.proves("T-agent-context")
def test_an_agent_may_skip_what_all_share(home: Home):
    home.add_file("context/house.md", "Shared.")
    home.add_file("agents/denizen/context/about.md", "Own.")
    assert headings(home) == ["house", "about"]
    assert headings(home, "agents: {denizen: {skip_global_context: true}}") == ["about"]


def test_a_participant_without_a_persona_reads_its_context_files_too() -> None:
    agent = Agent(
        DENIZEN,
        history=HistorySettings(context=ContextStrategy.TRANSCRIPT),
        instructions=AgentInstructions(context_files=(("house", "No shoes."),)),
    )
    (segment,) = assemble_participant_prompt(agent, tool_rules=True)
    assert (segment.name, segment.text) == ("context", "# house\n\nNo shoes.")


@pytest.mark.proves("T-config-context-folders")
def test_both_folders_lie_in_the_home_folder_unless_they_are_put_elsewhere(home: Home, tmp_path: Path):
    folders = home.load("").folders
    assert (folders.context, folders.knowledge) == (home.path / "context", home.path / "knowledge")
    away = tmp_path / "away"
    (away / "facts").mkdir(parents=True)
    (away / "house.md").write_text("Moved.", encoding="utf-8")
    settings = home.load(f"folders: {{context: {away}, knowledge: {away}/facts}}")
    assert settings.agents[DENIZEN].instructions.context_files == (("house", "Moved."),)
    assert settings.folders.knowledge == away / "facts"
    assert home.load(render_settings(settings)).config.folders == settings.config.folders


def test_the_digest_follows_context_files_and_whether_there_is_knowledge(home: Home):
    digests = [home.load("").digest]
    home.add_file("context/house.md", "Shared.")
    digests.append(home.load("").digest)
    home.add_file("context/house.md", "Changed.")
    digests.append(home.load("").digest)
    (home.path / "knowledge").mkdir()
    digests.append(home.load("").digest)
    assert len(set(digests)) == 4
    home.add_file("knowledge/facts.md", "Read when it is asked for.")
    assert home.load("").digest == digests[-1]


@pytest.mark.parametrize("folder", [".", "..", "context/.."])
def test_a_folder_that_holds_the_home_folder_is_refused(home: Home, folder: str):
    (home.path / "context").mkdir()
    problem = home.refuse(f"folders: {{knowledge: {folder}}}").explain()
    assert "folders.knowledge: this folder holds Denizen's home folder" in problem
    assert "Name a folder within it" in problem


def test_a_link_that_leads_out_of_the_folder_is_refused(home: Home, tmp_path: Path):
    secret = tmp_path / "secret.txt"
    secret.write_text("the key", encoding="utf-8")
    (home.path / "context").mkdir()
    (home.path / "context/house.md").symlink_to(secret)
    problem = home.refuse("").explain()
    assert "'house.md' leads out of" in problem and "the key" not in problem


def test_too_much_context_is_refused_with_its_size(home: Home):
    for number in range(3):
        home.add_file(f"context/{number}.md", "x" * 60 * 1024)
    problem = home.refuse("").explain()
    assert "the context files of 'denizen' have 180 KiB together, and at most 128 KiB" in problem
    assert "knowledge folder" in problem
    assert headings(home, "agents: {denizen: {skip_global_context: true}}") == []


@pytest.mark.parametrize(("content", "says"), [(b"x" * 129 * 1024, "larger than 128 KiB"), (b"\xff\xfe", "be read")])
def test_a_file_that_is_too_large_or_no_text_is_refused_by_name(home: Home, content: bytes, says: str):
    (home.path / "context").mkdir()
    (home.path / "context/odd.md").write_bytes(content)
    problem = home.refuse("").explain()
    assert "'odd.md'" in problem and says in problem


def test_a_file_in_place_of_a_folder_is_refused(home: Home):
    home.add_file("context", "no folder")
    assert "is not a folder" in home.refuse("").explain()


@pytest.mark.proves("T-agent-knowledge", "T-config-context-folders", "T-tool-memory")
@pytest.mark.anyio
@pytest.mark.parametrize(("folder", "text"), [("knowledge", ""), ("facts", "folders: {knowledge: facts}\n")])
async def test_knowledge_is_read_in_the_shared_folder_and_in_the_agents_own(home: Home, folder: str, text: str) -> None:
    home.add_file(f"{folder}/rules.md", "No shoes.")
    home.add_file("agents/denizen/knowledge/diary.md", "I like the sun.")
    home.add_file("agents/other/knowledge/secret.md", "Mine.")
    async with open_home(home, LAB + text) as denizen:
        bound = (await list_all(denizen.runtime.current.toolsets))["list_knowledge"]
        call = ToolCall(CallId("c"), "list_knowledge", {})
        listed = (await bound.toolset.call(call, scope(agent="denizen"))).text
        folders = denizen.settings.folders
    assert "shared/rules.md" in listed and "own/diary.md" in listed
    assert "secret" not in listed
    view = find_shell_view(folders, DENIZEN)
    assert view is not None and ("shared", home.path / folder) in view.folders
    assert OwnFiles(folders).read(DENIZEN, "shared/rules.md") == "No shoes."


@pytest.mark.proves("T-agent-context")
@pytest.mark.anyio
async def test_a_change_in_a_context_folder_is_noticed_wherever_it_lies(home: Home, tmp_path: Path):
    away, told = tmp_path / "away", anyio.Event()

    async def on_change() -> None:
        told.set()

    async def silent(_: Sequence[Path], stop: Event) -> AsyncGenerator[object]:
        home.add_file(str(away / "house.md"), "New.")
        yield None
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        paths = [home.path, lambda: [away]]
        group.start_soon(partial(watch, paths, on_change, debounce_s=0.01, poll_s=30.0, notices=silent))
        with anyio.fail_after(HANG_LIMIT_S):
            await told.wait()
        group.cancel_scope.cancel()


@pytest.mark.proves("C-config-toggles", "C13", "C24", "C25-reasoning")
def test_the_switches_of_an_agent_are_off_unless_they_are_written(home: Home):
    agent = home.load("").agents[DENIZEN]
    assert (agent.history.layout, agent.history.timestamps, agent.reasoning, agent.show_reasoning) == (
        TranscriptLayout(),
        None,
        False,
        False,
    )
    assert not agent.history.layout.vertical and not agent.history.layout.separate_blocks
    assert not agent.history.layout.turns
    written = home.load(
        "agents:\n  denizen:\n    context: transcript\n    reasoning: true\n    show_reasoning: true\n"
        "    timestamps: {enabled: true}\n"
        "    transcript: {system_prompt: true, vertical: true, separate_blocks: true, turns: true}\n"
    ).agents[DENIZEN]
    assert written.history.layout == TranscriptLayout(vertical=True, separate_blocks=True, turns=True)
    assert (
        written.reasoning
        and written.show_reasoning
        and written.history.timestamps is not None
        and written.instructions.persona
    )


@pytest.mark.proves("C-config-toggles")
def test_an_account_says_how_eager_it_is_what_talk_among_agents_may_cost_and_whether_blank_lines_stay(home: Home):
    text = "channels: {discord: {accounts: {denizen: {token: '${T}'%s}}}}"
    (usual,) = home.load(text % "", T="a.b.c").discord_accounts
    (set_,) = home.load(
        text % ", eagerness: 0, max_exchange_usd: 0.25, keep_blank_lines: true", T="a.b.c"
    ).discord_accounts
    assert (
        usual.account_policy.eagerness,
        usual.account_policy.limits.max_exchange_usd,
        usual.account_policy.style.keep_blank_lines,
    ) == (50, None, False)
    assert (set_.account_policy.eagerness, set_.account_policy.limits.max_exchange_usd) == (0, Decimal("0.25"))
    assert set_.account_policy.style.keep_blank_lines
    assert "eagerness" in home.refuse(text % ", eagerness: 101", T="a.b.c").explain()
