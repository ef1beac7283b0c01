"""What answers cite is proved before people see it, and what documents do not answer is kept as a gap."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest

from denizen.domain.agent import Agent, AgentInstructions, CitationFormat, WritingStyle
from denizen.domain.citation import Citation, CitationFault, DocumentRef
from denizen.domain.cited_text import UNKNOWN, UNPROVED
from denizen.domain.errors import NotFound
from denizen.domain.events import TextAdded, TurnFinished
from denizen.domain.evidence import ReadResult, describe_reading
from denizen.domain.gap import GapKind
from denizen.domain.ids import CallId
from denizen.domain.message import Role, ToolCallPart, ToolResultPart
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.prompt import PromptMessage
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.turn import TurnStatus
from denizen.engine.configuration.generation import KnowledgeSettings
from denizen.engine.inspection.queries import Queries
from denizen.engine.knowledge.citations import TurnEvidence
from denizen.engine.knowledge.coverage import GapReport
from denizen.engine.knowledge.proof import MAX_CITED, AnswerProver
from denizen.engine.loop.outcome import NOT_IN_SOURCES
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from tests.engine.engine_fixture import NAME, EngineFixture, ToolsetFixture, generation, open_engine
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, write

pytestmark = pytest.mark.anyio

GUIDE = "# Harbour\n\nA berth is ten euros a night.\n\nDrinking water is *free* for all guests.\n"
READ = ToolSpec(
    "search_docs",
    "Finds passages.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "additionalProperties": False},
    tier=Tier.HARMLESS,
    read_only=True,
)
SEARCH = ScriptedReply(calls=[call("search_docs", query="berth")])


@dataclass
class AnswersFixture:
    engine: EngineFixture
    gaps: GapReport
    knowledge: KnowledgeFixture

    async def ask(self, said: str, *before: ScriptedReply, question: str = "How much is a berth?") -> str:
        """What people see when the model says this."""
        self.engine.model.script(*before, ScriptedReply(said))
        ended = await self.engine.say(question)
        assert ended.status is TurnStatus.DONE
        self.turn_id = ended.turn_id
        return ended.reply

    async def watch(self, *said: ScriptedReply) -> tuple[list[str], str]:
        """What those who watch see of each request, and the reply."""
        self.engine.model.script(*said)
        texts = [""]
        for event in await self.engine.watch("How much is a berth?"):
            match event:
                case TextAdded():
                    texts = [*texts, event.text] if event.retract else [*texts[:-1], texts[-1] + event.text]
                case TurnFinished():
                    return texts, event.reply
                case _:
                    pass
        raise AssertionError("the turn has not ended")

    async def cited(self) -> list[Citation]:
        async with self.engine.store.work(write=False) as work:
            return list(await work.citations.list_for(self.turn_id))


def read_own_notes(agent: str, path: str) -> str | None:
    return "Own words of mine." if (agent, path) == (NAME, "own/notes.md") else None


@asynccontextmanager
async def open_kit(
    root: Path, style: CitationFormat = CitationFormat.INLINE, *, piece_chars: int = 8
) -> AsyncGenerator[AnswersFixture]:
    folder = write(root / "guide", {"harbour.md": GUIDE, "other.md": "Nobody reads this line.\n"})
    async with KnowledgeFixture(root) as knowledge:
        await knowledge.add(folder, "guide")
        await knowledge.run()

    async def search(tool_call: ToolCall, scope: CallScope) -> ToolResult:
        if tool_call.args.get("query") != "berth":
            return ToolResult("Nothing was found.", data={"found": 0})
        read = describe_reading([DocumentRef("docs/guide/harbour.md", 1, 5), DocumentRef("own/notes.md", 1, 1)])
        return ToolResult(
            f"[docs/guide/harbour.md:1-5] (Harbour)\n{GUIDE}\n[own/notes.md:1-1]\nOwn words of mine.",
            data={"found": 2, **read},
        )

    tools = ToolsetFixture([READ], search)
    agent = Agent(NAME, instructions=AgentInstructions(style=WritingStyle(citations=style)))
    async with open_engine(ScriptedModel(piece_chars=piece_chars), tools, agent=agent) as engine:
        services = replace(engine.services, prover=AnswerProver(knowledge.library))
        engine.turns._services = services
        made = replace(
            generation(engine.model, tools, agent=agent, number=2), knowledge=KnowledgeSettings(read_own=read_own_notes)
        )
        await engine.runtime.swap(made)
        yield AnswersFixture(engine, GapReport(engine.store, knowledge.clock), knowledge)


@pytest.mark.parametrize("said", ["[[unknown]]", " [[unknown]].", "The harbour was built by [[unknown]]."])
async def test_an_answer_that_is_the_mark_for_what_is_unknown_is_told_in_words(tmp_path: Path, said: str) -> None:
    async with open_kit(tmp_path) as kit:
        shown, reply = await kit.watch(SEARCH, ScriptedReply(said))
        assert shown[-1] == reply == NOT_IN_SOURCES


@pytest.mark.parametrize(
    "said",
    [
        "I do not know the price.",
        "It opens at nine. Nothing is said of Sundays.",
        "Ten euros [docs/guide/harbour.md:3]",
    ],
)
async def test_an_answer_that_says_something_beside_the_mark_stays(tmp_path: Path, said: str) -> None:
    async with open_kit(tmp_path) as kit:
        assert await kit.ask(f"{said} [[unknown]]", SEARCH) == said


async def test_a_citation_is_proved_when_the_lines_are_there_and_were_read(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        said = "Ten euros [docs/guide/harbour.md:3-3], and water is free [docs/guide/harbour.md]."
        assert await kit.ask(said, SEARCH) == (
            "Ten euros [docs/guide/harbour.md:3], and water is free [docs/guide/harbour.md]."
        )
        first, second = await kit.cited()
        assert (first.ref, first.source_id, first.doubt) == (DocumentRef("docs/guide/harbour.md", 3, 3), "guide", None)
        assert first.revision
        assert second.doubt is None


@pytest.mark.parametrize(
    ("mark", "doubt"),
    [
        ("docs/guide/made_up.md:1", CitationFault.NO_FILE),
        ("docs/guide/harbour.md:3-99", CitationFault.NO_LINES),
        ("docs/guide/harbour.md:2", CitationFault.NO_LINES),
        ("docs/guide/other.md:1", CitationFault.NOT_READ),
        ("docs/guide/other.md", CitationFault.NOT_READ),
        ("own/other.md:1", CitationFault.NO_FILE),
    ],
)
async def test_what_is_not_proved_is_taken_out_and_marked(tmp_path: Path, mark: str, doubt: CitationFault) -> None:
    async with open_kit(tmp_path) as kit:
        assert await kit.ask(f"It is so [{mark}].", SEARCH) == f"It is so {UNPROVED}."
        assert [each.doubt for each in await kit.cited()] == [doubt]


@pytest.mark.parametrize(
    ("said", "doubt"),
    [
        ("A berth is 12 euros [docs/guide/harbour.md:3].", CitationFault.OTHERWISE),
        ("A berth is 12 euros (docs/guide/harbour.md:3).", CitationFault.OTHERWISE),
        ("docs/guide/harbour.md:3 says that it is 12 euros.", CitationFault.OTHERWISE),
        ("Nobody reads it, see docs/guide/other.md.", CitationFault.NOT_READ),
        ("Nobody reads it [so](docs/guide/other.md#L1).", CitationFault.NOT_READ),
    ],
)
async def test_a_place_is_marked_however_it_is_written(tmp_path: Path, said: str, doubt: CitationFault) -> None:
    async with open_kit(tmp_path) as kit:
        shown = await kit.ask(said, SEARCH)
        assert UNPROVED in shown
        assert "docs/guide" not in shown
        assert [each.doubt for each in await kit.cited()] == [doubt]


@pytest.mark.parametrize(
    "said",
    [
        "It is in docs/guide/harbour.md.",
        "A berth is 10 euros, see `docs/guide/harbour.md:3`.",
        "Put it into src/main.py:3 or docs/index.md, and run `cat docs/guide/other.md`.",
        "Three kinds: docs/a.md, notes/b.md and (src/c.md).",
    ],
)
@pytest.mark.parametrize("style", CitationFormat)
async def test_what_is_bare_and_proved_or_names_no_document_stays_as_it_was_written(
    tmp_path: Path, said: str, style: CitationFormat
) -> None:
    async with open_kit(tmp_path, style) as kit:
        assert await kit.ask(said, SEARCH, question="Where is it?") == said


async def test_words_that_are_quoted_have_to_stand_there(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        true = 'It says "Drinking water is free for all guests" [docs/guide/harbour.md:5].'
        assert await kit.ask(true, SEARCH) == true
        false = 'It says "Drinking water costs one euro each" [docs/guide/harbour.md:5].'
        assert UNPROVED in await kit.ask(false, SEARCH)
        assert [each.doubt for each in await kit.cited()] == [CitationFault.NOT_SAID]


async def test_own_files_of_agents_are_proved_alike(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        assert await kit.ask("So it is [own/notes.md:1].", SEARCH) == "So it is [own/notes.md:1]."


async def test_what_was_read_earlier_in_the_talk_may_be_cited_later(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        await kit.ask("Ten euros.", SEARCH)
        assert await kit.ask("As I said [docs/guide/harbour.md:3].") == "As I said [docs/guide/harbour.md:3]."


async def test_the_end_of_a_path_that_was_read_is_shown_as_the_whole_path(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        said = "Ten euros [guide/harbour.md:3], that is in [harbour.md:3]."
        assert await kit.ask(said, SEARCH) == (
            "Ten euros [docs/guide/harbour.md:3], that is in [docs/guide/harbour.md:3]."
        )


def record(text: str, *read: DocumentRef) -> PromptMessage:
    result = ToolResultPart(CallId("1"), "bash", text)
    rows = describe_reading(read).get("read")
    return PromptMessage(Role.TOOL, (result,), read={"1": rows} if rows else {})


@pytest.mark.parametrize(
    ("earlier", "is_read"),
    [
        (record("Nobody reads this line.", DocumentRef("docs/guide/other.md")), True),
        (record("x:Nobody reads this line.", DocumentRef("docs/guide/")), True),
        (record("Nobody reads this line.", DocumentRef("/")), True),
        (record("Nobody reads this", DocumentRef("docs/guide/other.md")), True),
        (record("docs/guide/other.md:1:Nobody reads this line."), False),
        (record("docs/guide/other.md\n"), False),
        (record("Nobody reads this line.", DocumentRef("docs/guide/harbour.md"), DocumentRef("own/")), False),
        (record("Nothing.", DocumentRef("docs/guide/other.md")), False),
    ],
)
async def test_read_is_what_the_record_of_a_result_says_and_its_text_shows(
    tmp_path: Path, earlier: PromptMessage, is_read: bool
) -> None:
    async with open_kit(tmp_path) as kit:
        call_ = ToolCallPart(CallId("1"), "bash", {"command": "cat docs/guide/other.md docs/guide/*"})
        evidence = TurnEvidence([PromptMessage(Role.ASSISTANT, (call_,)), earlier])
        proofs = AnswerProver(kit.knowledge.library).open(evidence, NAME, style=CitationFormat.INLINE)
        answer = await proofs.prove("So it is [docs/guide/other.md:1].")
        assert [each.doubt is None for each in answer.citations] == [is_read]


async def test_figures_that_were_asked_about_before_count_as_the_question_s(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        said = "For 3 nights that makes 30 euros [docs/guide/harbour.md:3]."
        assert UNPROVED in await kit.ask(said, SEARCH, question="What does a berth cost?")
        await kit.ask("Which nights?", question="We stay for 3 nights.")
        assert await kit.ask(said, SEARCH, question="What is that in all?") == said


async def test_results_of_earlier_turns_keep_their_record(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        await kit.ask("Ten euros.", SEARCH)
        async with kit.engine.store.work(write=False) as work:
            turn = await work.turns.get(kit.turn_id)
            stored = await work.messages.list_tail(turn.session_id, limit=10)
        [told] = [message for message in stored if message.role is Role.TOOL]
        [read] = dict(told.meta["read"]).values()  # type: ignore[call-overload]
        assert read == [["docs/guide/harbour.md", 1, 5], ["own/notes.md", 1, 1]]


@pytest.mark.parametrize(
    ("style", "shown"),
    [
        (CitationFormat.INLINE, "A berth is ten euros a night. [docs/guide/harbour.md:3]"),
        (CitationFormat.FOOTNOTE, "A berth is ten euros a night. [1]\n\n[1] [docs/guide/harbour.md:3]"),
        (CitationFormat.NONE, "A berth is ten euros a night."),
    ],
)
async def test_an_answer_that_names_no_place_gets_the_one_that_it_was_taken_from(
    tmp_path: Path, style: CitationFormat, shown: str
) -> None:
    async with open_kit(tmp_path, style) as kit:
        seen, reply = await kit.watch(SEARCH, ScriptedReply("A berth is ten euros a night."))
        assert (seen[-1], reply) == (shown, shown)


@pytest.mark.parametrize("said", ["Hello!", "Twelve euros.", "I do not know what a berth costs a night.", "No idea."])
async def test_an_answer_that_comes_from_no_passage_gets_none(tmp_path: Path, said: str) -> None:
    async with open_kit(tmp_path) as kit:
        assert await kit.ask(said, SEARCH) == said
        assert await kit.cited() == []


async def test_what_was_not_looked_up_in_this_turn_is_named_by_nobody(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        assert await kit.ask("A berth is ten euros a night.") == "A berth is ten euros a night."


@pytest.mark.proves("S-config-citation-format")
async def test_footnotes_and_no_citations_are_shown_as_configured(tmp_path: Path) -> None:
    async with open_kit(tmp_path / "a", CitationFormat.FOOTNOTE) as kit:
        assert await kit.ask("Ten [docs/guide/harbour.md:3].", SEARCH) == "Ten [1].\n\n[1] [docs/guide/harbour.md:3]"
    async with open_kit(tmp_path / "b", CitationFormat.NONE) as kit:
        assert await kit.ask("Ten [docs/guide/harbour.md:3].", SEARCH) == "Ten."
        assert len(await kit.cited()) == 1


async def test_a_question_that_the_documents_do_not_answer_is_a_gap(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        assert await kit.ask(f"I do not know. {UNKNOWN}", question="When does the ferry go?") == "I do not know."
        nothing = ScriptedReply(calls=[call("search_docs", query="zebra")])
        await kit.ask("There are none, I believe.", nothing, question="Are there zebras?")
        await kit.ask("Ten euros [docs/guide/harbour.md:3].", SEARCH)
        await kit.ask("Hello!", question="Hello!")
        found = await kit.gaps.load(30, with_private=True)
        assert [(group.newest.question, group.newest.kind) for group in found.groups] == [
            ("Are there zebras?", GapKind.NOT_FOUND),
            ("When does the ferry go?", GapKind.UNKNOWN),
        ]


async def test_the_same_question_in_other_words_is_one_gap_which_is_closed_as_one(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        for question in ("When does the ferry go?", "ferry goes when", "Is there a sauna?", "the ferry, when"):
            await kit.ask(UNKNOWN, question=question)
        found = await kit.gaps.load(30, with_private=True)
        assert [len(group.gaps) for group in found.groups] == [3, 1]
        closed = await kit.gaps.close(found.groups[0].gaps[-1].id)
        assert len(closed) == 3
        assert [group.newest.question for group in (await kit.gaps.load(30, with_private=True)).groups] == [
            "Is there a sauna?"
        ]
        with pytest.raises(NotFound):
            await kit.gaps.close("none")


async def test_what_was_asked_in_private_is_counted_for_others_and_not_told(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        await kit.ask(UNKNOWN, question="My secret question?")
        found = await kit.gaps.load(30, with_private=False)
        assert (found.groups, found.total, found.hidden) == ([], 1, 1)


async def test_nobody_is_asked_for_what_a_schedule_wanted_to_know(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        kit.engine.model.script(ScriptedReply(UNKNOWN))
        await kit.engine.say("Anything new?", principal=Principal(PrincipalKind.SCHEDULE, "daily", "daily"))
        assert (await kit.gaps.load(30, with_private=True)).total == 0


async def test_a_document_that_shows_the_lines_of_another_proves_nothing_about_it(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        forged = "[docs/guide/harbour.md:1-5] (Harbour)\n2: [docs/guide/other.md:1-1]\n3: Nobody reads this line."
        read = ReadResult(forged, (DocumentRef("docs/guide/harbour.md", 1, 5),))
        proofs = AnswerProver(kit.knowledge.library).open(
            TurnEvidence(results=[read]), NAME, style=CitationFormat.INLINE
        )
        answer = await proofs.prove("So it is [docs/guide/other.md:1].")
        assert [each.doubt for each in answer.citations] == [CitationFault.NOT_READ]


TRUE = "Nobody reads this line."


@pytest.mark.parametrize(
    ("results", "calls", "is_read"),
    [
        ([f"docs/guide/other.md:1:{TRUE}"], [], True),
        ([f"./docs/guide/other.md:{TRUE}"], [], True),
        ([f"docs/guide/harbour.md:3:A berth\n--\ndocs/guide/other.md-1-{TRUE}"], [], True),
        ([f"[docs/guide/other.md:1-1]\n1: {TRUE}"], [], True),
        (["<untrusted source='x'>\n./docs/guide/other.md\ndocs/guide/harbour.md\n</untrusted>", TRUE], [], True),
        ([TRUE], ["cat docs/*/other.md"], True),
        (["docs/guide/other.md:1:Everything is free.", TRUE], [], False),
        (["docs/guide/other.md: is free.", TRUE], [], False),
        ([f"[docs/guide/other.md:1-1]\nEverything is free.\n{TRUE}"], [], False),
        ([f"See there:\ndocs/guide/other.md\n{TRUE}"], [], False),
        ([TRUE], ["grep -rh --include=*.md line ."], False),
        ([f"docs/guide/other.md:1:{TRUE[:6]}"], [], False),
    ],
)
async def test_in_results_of_which_nobody_recorded_the_reading_a_line_counts_where_tools_put_it(
    tmp_path: Path, results: list[str], calls: list[str], is_read: bool
) -> None:
    asked = [ToolCallPart(CallId(f"{n}"), "bash", {"command": each}) for n, each in enumerate(calls)]
    told = [ToolResultPart(CallId(f"{n}"), "bash", each) for n, each in enumerate(results)]
    history = [PromptMessage(Role.ASSISTANT, tuple(asked)), PromptMessage(Role.TOOL, tuple(told))]
    async with open_kit(tmp_path) as kit:
        for mark in ("docs/guide/other.md:1", "docs/guide/other.md"):
            evidence = TurnEvidence(history)
            proofs = AnswerProver(kit.knowledge.library).open(evidence, NAME, style=CitationFormat.INLINE)
            answer = await proofs.prove(f"So it is [{mark}].")
            assert [each.doubt is None for each in answer.citations] == [is_read]


async def test_hundreds_of_places_or_lines_are_no_proof(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        marks = " ".join(f"[docs/guide/harbour.md:1-{1 + n % 5}]" for n in range(MAX_CITED + 9))
        answer = await kit.ask(f"{marks} [docs/guide/harbour.md:1-20000]", SEARCH)
        assert answer.count(UNPROVED) == 10
        assert CitationFault.TOO_MANY in [each.doubt for each in await kit.cited()]


async def test_a_document_that_was_only_named_in_a_call_was_not_read(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        named = ScriptedReply(calls=[call("search_docs", query="docs/guide/other.md")])
        assert await kit.ask("It says so [docs/guide/other.md].", named) == f"It says so {UNPROVED}."
        assert [each.doubt for each in await kit.cited()] == [CitationFault.NOT_READ]


ANSWER = f"""
Ten euros [docs/guide/harbour.md:3](https://made.up/x), it says "Drinking water is free for all guests" \
[docs/guide/harbour.md:5], and "Drinking water costs one euro" [docs/guide/harbour.md:5].
Dogs [docs/guide/dogs.md:1] [1, 2], both [docs/guide/harbour.md:3; docs/guide/dogs.md:1].

```
[docs/guide/dogs.md:1]
```
{UNKNOWN} [docs/guide/harbour.md:3
"""


@pytest.mark.parametrize("piece_chars", [1, 8, 1000])
@pytest.mark.parametrize("style", CitationFormat)
async def test_who_watches_sees_the_answer_as_it_stands_in_the_end(
    tmp_path: Path, style: CitationFormat, piece_chars: int
) -> None:
    async with open_kit(tmp_path, style, piece_chars=piece_chars) as kit:
        seen, reply = await kit.watch(SEARCH, ScriptedReply(ANSWER))
        assert seen[-1] == reply
        assert reply.count(UNPROVED) == 3
        assert ("[docs/guide/harbour.md:3]" in reply) == (style is not CitationFormat.NONE)


async def test_text_before_a_tool_call_is_proved_by_what_was_read_until_then(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        before = ScriptedReply("It is ten [docs/guide/harbour.md:3]. I look", calls=SEARCH.calls)
        seen, reply = await kit.watch(before, ScriptedReply("It is ten [docs/guide/harbour.md:3]."))
        assert seen == [f"It is ten {UNPROVED}. I look", "It is ten [docs/guide/harbour.md:3]."]
        assert reply == seen[-1]


async def test_a_stream_and_its_end_agree_although_the_documents_change_meanwhile(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        halfway = ReplyGate()
        told: list[tuple[list[str], str]] = []
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                told.append(
                    await kit.watch(
                        SEARCH, ScriptedReply(f"Ten [docs/guide/harbour.md:3]{' so' * 20}", halfway=halfway)
                    )
                )

            tasks.start_soon(watch)
            await halfway.reached.wait()
            write(tmp_path / "guide", {"harbour.md": "Nothing.\n"})
            async with kit.knowledge:
                await kit.knowledge.run()
            halfway.open.set()
        ((seen, reply),) = told
        assert seen[-1] == reply
        assert reply.startswith("Ten [docs/guide/harbour.md:3] so")


async def test_the_lines_that_an_answer_cites_can_be_read_with_those_around_them(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        await kit.ask("Ten euros [docs/guide/harbour.md:3]. I noted it [own/notes.md:1].", SEARCH)
        turn = await kit.engine.turns.get(kit.turn_id)
        queries = Queries(kit.engine.runtime, kit.engine.turns._services)
        found = await queries.read_cited_lines(turn, "docs/guide/harbour.md:3")
        assert (found.first_shown, list(found.lines)) == (1, GUIDE.split("\n"))
        assert (found.citation.ref, found.is_newer) == (DocumentRef("docs/guide/harbour.md", 3, 3), False)
        assert list((await queries.read_cited_lines(turn, "own/notes.md:1")).lines) == ["Own words of mine."]
        with pytest.raises(NotFound, match="does not cite") as refused:
            await queries.read_cited_lines(turn, "docs/guide/other.md:1")
        assert (refused.value.why, refused.value.fix) == (
            "the agent read no such lines before it answered",
            "Look under Why? at what it read.",
        )
        async with kit.knowledge as knowledge:
            write(tmp_path / "guide", {"harbour.md": f"New: {GUIDE}"})
            await knowledge.run()
            assert (await queries.read_cited_lines(turn, "docs/guide/harbour.md:3")).is_newer
            (tmp_path / "guide" / "harbour.md").unlink()
            await knowledge.run()
        with pytest.raises(NotFound, match="not among the documents any more"):
            await queries.read_cited_lines(turn, "docs/guide/harbour.md:3")
