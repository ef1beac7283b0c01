"""Documents of one community never come out elsewhere, whichever way somebody looks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import run as run_program

import pytest

from denizen.adapters.sandbox.pool import SandboxPool
from denizen.app.knowledge import KnowledgeShells, find_shell_view
from denizen.app.settings import load_settings
from denizen.builtin_skills import knowledge, shell
from denizen.domain.agent import CitationFormat
from denizen.domain.citation import DocumentRef
from denizen.domain.cited_text import UNPROVED
from denizen.domain.conversation import Place, own_place
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.evidence import describe_reading
from denizen.domain.ids import AgentName, CallId
from denizen.domain.json import Json
from denizen.domain.message import Author, Role, TextPart
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.snapshot import RemoteRepository
from denizen.domain.source import SourceChange, is_open_to
from denizen.domain.tool import CacheScope, ToolCall, ToolResult, ToolSpec
from denizen.domain.turn import Sender, TurnRequest
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.gate.executor import ResultCache
from denizen.engine.knowledge.citations import TurnEvidence
from denizen.engine.knowledge.index import DocumentIndexer, DocumentSearch
from denizen.engine.knowledge.proof import AnswerProver
from denizen.ports.model import ModelRequest
from denizen.ports.toolset import CallScope
from denizen.skill import ScopedServices, SkillToolset
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.engine.engine_fixture import ToolsetFixture
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, ThemeEmbedder, write
from tests.engine.platform_fixture import ADA, open_platform
from tests.repository import ENVIRONMENT
from tests.sandbox import open_sandbox
from tests.skill_fixture import ServicesFixture, run, scope

pytestmark = pytest.mark.anyio

HARBOUR, ISLAND = "111", "222"
NAME = AgentName("denizen")
SECRET = "The vault of the harbour costs ten euro."
BEACH = "The beach of the island costs ten euro."
OPEN = "The pool for everybody costs ten euro."
PATHS = {HARBOUR: "guild-111/harbour/a.md", ISLAND: "guild-222/island/a.md", "": "docs/open/a.md"}
TEXTS = {HARBOUR: SECRET, ISLAND: BEACH, "": OPEN}
EXPOSED = "what does it cost in euro"

ELSEWHERE = {
    "another server": ("discord", ISLAND),
    "a direct message": ("discord", ""),
    "a web chat": ("web", ""),
    "a program": ("api", ""),
    "GitHub": ("github", "111/harbour"),
    "a longer id": ("discord", "1111"),
    "a pattern": ("discord", "*"),
}


@dataclass
class Documents:
    """Three sources: for the harbour, for the island, for everybody."""

    engine: KnowledgeFixture
    search: DocumentSearch
    toolset: SkillToolset
    shell: SkillToolset

    def scope(self, platform: str, guild: str) -> CallScope:
        return replace(scope(agent=NAME), place=Place(platform, f"room of {guild or platform}"), guild=guild)

    async def use(self, tool: str, where: CallScope, **args: Json) -> str:
        toolset = self.shell if tool == "bash" else self.toolset
        return (await run(toolset, tool, args, where)).text


@asynccontextmanager
async def open_documents(root: Path, sandbox: SandboxPool | None = None) -> AsyncGenerator[Documents]:
    embedder = ThemeEmbedder()
    budgeted = BudgetedEmbedder(lambda: embedder)
    async with KnowledgeFixture(root) as engine:
        for name, guild in (("harbour", HARBOUR), ("island", ISLAND), ("open", "")):
            folder = write(root / name, {"a.md": f"# Prices\n\n{TEXTS[guild]}\n"})
            await engine.add(folder, name, guild=guild)
        await engine.run()
        indexing = DocumentIndexer(engine.store, engine.library, budgeted, engine.clock, sleep=engine.clock.sleep)
        await indexing.catch_up()
        await indexing.embed_all()
        search = DocumentSearch(engine.store, engine.library, budgeted)
        services = ServicesFixture(root).services()
        services = replace(
            services, search_documents=search, folders=replace(services.folders, snapshot=engine.library.list_folders)
        )
        if sandbox is not None:
            (root / "config").mkdir()
            shells = KnowledgeShells(sandbox, load_settings(root / "config", {}).folders, engine.library.list_folders)
            services = replace(services, scoped=ScopedServices(open_shell=shells.open))
        yield Documents(engine, search, SkillToolset(knowledge.skill, services), SkillToolset(shell.skill, services))


Look = Callable[[Documents, CallScope], Awaitable[str]]


async def search_all(at: Documents, where: CallScope) -> str:
    return str(await at.search(EXPOSED, guild=where.guild, limit=15))


async def search_by_source(at: Documents, where: CallScope) -> str:
    try:
        return str(await at.search(EXPOSED, guild=where.guild, sources=["harbour"], limit=15))
    except NotFound as error:
        return f"{error.message} {error.fix}".replace("'harbour'", "")


async def explain(at: Documents, where: CallScope) -> str:
    return str(await at.search.explain(EXPOSED, guild=where.guild, limit=15))


async def find_document(at: Documents, where: CallScope) -> str:
    paths = [*PATHS.values(), "./guild-111/harbour/a.md", "docs/../guild-111/harbour/a.md", "guild-111//harbour/a.md"]
    return str([await at.engine.library.find_document(path, guild=where.guild) for path in paths])


async def list_folders(at: Documents, where: CallScope) -> str:
    folders = at.engine.library.list_folders(where.guild)
    return str([file.read_text() for _, folder in folders for file in sorted(folder.rglob("*.md"))])


async def view_folders(at: Documents, where: CallScope) -> str:
    folders = load_settings(at.engine.root, {}).folders
    view = find_shell_view(folders, NAME, at.engine.library.list_folders(where.guild))
    return str([file.read_text() for _, folder in (view.folders if view else ()) for file in folder.rglob("*.md")])


async def use_list(at: Documents, where: CallScope) -> str:
    listed = await at.use("list_knowledge", where)
    named = await at.use("list_knowledge", where, folder="guild-111/")
    return "".join(TEXTS[guild] for guild, path in PATHS.items() if path in listed + named)


async def use_read(at: Documents, where: CallScope) -> str:
    names = [*PATHS.values(), "docs/../guild-111/harbour/a.md", "guild-222/../guild-111/harbour/a.md"]
    read = [await at.use("read_knowledge", where, name=name) for name in names]
    return "".join(each for each in read if "There is no file" not in each)  # which repeats the name


async def use_search(at: Documents, where: CallScope) -> str:
    found = [
        # A refusal repeats the name that was asked for.
        (await at.use("search_docs", where, query=EXPOSED, source=name)).replace(f"source '{name}'", "")
        for name in ("", "harbour", "island")
    ]
    return "".join(found)


async def cite(at: Documents, where: CallScope) -> str:
    """Even what an agent claims to have read is not proved, nor shown."""
    proved = ""
    for guild, path in PATHS.items():
        evidence = TurnEvidence()
        evidence.add(TEXTS[guild], {"data": describe_reading([DocumentRef(path, 3, 3)])})
        proofs = AnswerProver(at.engine.library).open(evidence, NAME, style=CitationFormat.INLINE, guild=where.guild)
        answer = await proofs.prove(f"It costs ten euro [{path}:3].")
        proved += "" if UNPROVED in answer.text else TEXTS[guild]
        found = await AnswerProver(at.engine.library).find_document(path, NAME, lambda _, __: None, guild=where.guild)
        proved += found.text if found else ""
    return proved


LOOKS: list[Look] = [
    search_all,
    search_by_source,
    explain,
    find_document,
    list_folders,
    view_folders,
    use_list,
    use_read,
    use_search,
    cite,
]


@pytest.mark.proves("P3")
@pytest.mark.parametrize("look", LOOKS)
async def test_documents_of_a_server_are_seen_there_and_nowhere_else(tmp_path: Path, look: Look) -> None:
    async with open_documents(tmp_path) as at:
        here = await look(at, at.scope("discord", HARBOUR))
        assert SECRET in here
        assert "island" not in here.lower()
        for name, (platform, guild) in ELSEWHERE.items():
            elsewhere = await look(at, at.scope(platform, guild))
            assert "harbour" not in elsewhere.lower(), name
            assert "vault" not in elsewhere, name
            assert ("island" in elsewhere.lower()) is (guild == ISLAND), name
            assert OPEN in elsewhere or look is search_by_source, name


@pytest.mark.proves("P3")
async def test_the_shell_shows_them_there_alone_also_in_a_session_that_goes_on(tmp_path: Path) -> None:
    command = "ls; cat */*/*.md; cat guild-111/harbour/a.md; find . -name 'a.md' | xargs cat"
    async with open_sandbox() as sandbox, open_documents(tmp_path, sandbox) as at:
        here = at.scope("discord", HARBOUR)
        assert SECRET in await at.use("bash", here, command=command)
        for platform, guild in ELSEWHERE.values():
            shown = await at.use("bash", at.scope(platform, guild), command=command)
            assert OPEN in shown
            assert SECRET not in shown
            assert (BEACH in shown) is (guild == ISLAND)
        assert here.trail.shell is not None
        session = replace(here.options, shell_session=here.trail.shell.session_id)
        assert SECRET in await at.use("bash", replace(here, options=session), command="cat */*/*.md")
        for guild in (ISLAND, ""):
            other = replace(here, guild=guild, options=session)
            assert SECRET not in await at.use("bash", other, command="cat */*/*.md")


async def test_a_turn_is_in_the_server_of_its_conversation_and_in_none_when_it_is_direct_or_on_the_web() -> None:
    seen: list[tuple[str, str]] = []

    async def look(_: ToolCall, where: CallScope) -> ToolResult:
        seen.append((where.place.platform, where.guild))
        return ToolResult("ok")

    def answer(request: ModelRequest) -> ScriptedReply:
        has_result = request.messages[-1].role is Role.TOOL
        return ScriptedReply("Done.") if has_result else ScriptedReply(calls=[call("look", q="vault")])

    tools, model = ToolsetFixture(run=look), ScriptedModel(otherwise=answer)
    async with open_platform(tools=tools, model=model) as fixture:
        world = fixture.world
        world.platform.say(world.general, "ana", "@ada the vault, please")
        await fixture.said()
        world.platform.say(world.direct("ana"), "ana", "the vault, please")
        await fixture.said()
        web = Principal(PrincipalKind.WEB_USER, "7", "Ana")
        request = TurnRequest(
            agent=ADA,
            place=own_place("web", web.key, "chat"),
            sender=Sender(Author(web.id, web.name), web),
            parts=(TextPart("the vault, please"),),
            platform_id="req_1",
        )
        await fixture.turns.submit(request)
        await fixture.until(lambda: len(seen) >= 3)
    assert world.general.guild
    assert seen == [("discord", world.general.guild), ("discord", ""), ("web", "")]


async def test_a_result_that_was_kept_in_one_server_is_not_given_in_another(tmp_path: Path) -> None:
    async with open_documents(tmp_path) as at:
        cache = ResultCache(at.engine.clock)
        spec = ToolSpec("search_docs", "", {}, source="knowledge", cache=CacheScope.ASKER)
        asked, here = ToolCall(CallId("c"), "search_docs", {"query": "vault"}), at.scope("discord", HARBOUR)
        cache.keep(spec, at.toolset, asked, here, ToolResult(SECRET))
        assert cache.find(spec, at.toolset, asked, here, 60) is not None
        assert cache.find(spec, at.toolset, asked, replace(here, guild=ISLAND), 60) is None


async def test_nobody_else_gets_what_was_read_before_the_source_was_made_anew_for_others(tmp_path: Path) -> None:
    async with open_documents(tmp_path) as at:
        for guild in (ISLAND, ""):
            await at.engine.catalog.remove("harbour")
            folder = write(tmp_path / "new", {"b.md": "Nothing."})
            await at.engine.add(folder, "harbour", guild=guild)
            found = await at.search("vault harbour", guild=guild, sources=["harbour"])
            assert [each.path for each in found] == []
            await at.engine.run()
            assert SECRET not in str(at.engine.files())


async def test_what_a_source_is_for_is_not_changed(tmp_path: Path) -> None:
    async with open_documents(tmp_path) as at:
        for guild in (ISLAND, ""):
            with pytest.raises(InvalidInput, match="another audience"):
                await at.engine.catalog.edit("harbour", SourceChange(guild=guild))
        with pytest.raises(InvalidInput, match="id of a server"):
            await at.engine.add(write(tmp_path / "x", {"a.md": "x"}), "x", guild="../docs")
        assert (await at.engine.catalog.edit("harbour", SourceChange(guild=HARBOUR, label="Ours"))).guild == HARBOUR


async def test_a_source_of_the_operator_never_passes_for_one_that_the_server_made(tmp_path: Path) -> None:
    folder, repository = write(tmp_path / "x", {"a.md": "x"}), write(tmp_path / f"{HARBOUR}-docs", {"a.md": "x"})
    async with KnowledgeFixture(tmp_path) as engine:
        for location, name in ((folder, f"{HARBOUR}-x"), (repository, "")):
            with pytest.raises(InvalidInput, match="cannot be the id of this source") as refused:
                await engine.add(location, name, guild=HARBOUR)
            assert refused.value.fix == "Choose another id."
        assert (await engine.add(folder, f"{HARBOUR}-x", guild=ISLAND)).is_made_by_guild is False
        assert (await engine.add(repository)).is_made_by_guild is False


async def test_where_all_sources_are_for_servers_nobody_else_finds_anything(tmp_path: Path) -> None:
    async with open_documents(tmp_path) as at:
        await at.engine.catalog.remove("open")
        for guild in ("", "333"):
            assert await at.search(EXPOSED, guild=guild) == []
        assert [each.path for each in await at.search(EXPOSED, guild=HARBOUR)] == [PATHS[HARBOUR]]


async def test_they_are_not_pushed_to_a_repository_that_others_may_read(tmp_path: Path) -> None:
    async with open_documents(tmp_path) as at:
        at.engine.remote = RemoteRepository(str(tmp_path / "remote.git"))
        ended = await at.engine.run()
        files = at.engine.files()
    listed = _list_pushed(tmp_path / "remote.git")
    assert (ended.failed, PATHS[HARBOUR] in files) == ({}, True)
    assert sorted(listed) == [".denizen-snapshot", PATHS[""]]


def _list_pushed(repository: Path) -> list[str]:
    command = ["git", "-C", str(repository), "ls-tree", "-r", "--name-only", "main"]
    return run_program(command, capture_output=True, check=True, text=True, env=ENVIRONMENT).stdout.split()


@pytest.mark.parametrize(
    ("path", "guild", "is_open"),
    [
        ("docs/a.md", "", True),
        ("docs/a.md", HARBOUR, True),
        ("guild-111/a.md", HARBOUR, True),
        ("guild-111", HARBOUR, True),
        ("guild-111/a.md", "", False),
        ("guild-111/a.md", ISLAND, False),
        ("guild-/a.md", "", False),
        ("guild-x", "x", True),
    ],
)
def test_the_top_folder_tells_who_may_see_a_path(path: str, guild: str, *, is_open: bool) -> None:
    assert is_open_to(path, guild) is is_open


SRC = Path(__file__).parents[3] / "src" / "denizen"
WHOLE = {
    ".current_folder(": {"adapters/library/library.py"},
    ".hold()": {"adapters/library/library.py", "engine/knowledge/sync.py"},
    ".read_texts(": {"engine/knowledge/index.py"},
    "work.documents.": {"engine/knowledge/index.py"},
}


@pytest.mark.parametrize("access", WHOLE)
def test_only_these_modules_touch_documents_without_asking_for_whom(access: str) -> None:
    users = {str(file.relative_to(SRC)) for file in SRC.rglob("*.py") if access in file.read_text()}
    assert users == WHOLE[access], f"{access} gives the documents of all servers: use DocumentSearch or list_folders."
