"""Answers from documents with proof, as people see them: searched, cited, checked, and what is missing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import anyio
import openai
import pytest

from denizen.adapters.store import open_store
from denizen.domain.clock import SystemClock
from denizen.engine.knowledge.coverage import MAX_GAPS
from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.contracts.store.knowledge import make_gap
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.repository import create_repository
from tests.timing import wait_until

pytestmark = pytest.mark.e2e

GUIDE = "# Harbour\n\nA berth is ten euros a night.\n"


@pytest.fixture
def home_with_guide(home: Home, provider: Provider, tmp_path: Path) -> Home:
    repository = create_repository(tmp_path / "guide", {"harbour.md": GUIDE})
    home.configure(provider.server.openai_url, rest="embeddings: {provider: none}\n")
    assert home.do("sources", "add", str(repository.folder), "--kind", "git").code == 0
    synced = home.do("sources", "sync")
    assert synced.code == 0, synced.err
    return home


def search(query: str = "berth") -> ModelAnswer:
    return ModelAnswer(calls=[ModelCall("search_docs", {"query": query})])


@pytest.mark.proves("P4")
def test_an_answer_shows_where_it_comes_from_and_the_trace_what_was_taken_out(
    home_with_guide: Home, provider: Provider
) -> None:
    home = home_with_guide
    said = "Ten euros [docs/guide/harbour.md:3-3], and dogs are welcome [docs/guide/dogs.md:1]."
    provider.script(search(), ModelAnswer(text=said))
    asked = home.do("ask", "--json", "How much is a berth?")
    told = json.loads(asked.out)
    assert told["answer"] == "Ten euros [docs/guide/harbour.md:3], and dogs are welcome [source not confirmed]."
    found = next(body for body in provider.server.bodies[-1]["messages"] if body["role"] == "tool")["content"]
    assert "[docs/guide/harbour.md:1-3] (Harbour)\n1: # Harbour\n2: \n3: A berth is ten euros a night." in found
    trace = home.do("trace", told["turn"]).out
    for words in (
        r"documents cited: 2",
        r"  docs/guide/harbour.md:3 of guide at [0-9a-f]{12}, proved$",
        r"  docs/guide/dogs.md:1, taken out: there is no such file$",
        r"  tools +[\d,]+ +[\d.]+%",
        r"  style +\d+ +[\d.]+%  config, sha256 [0-9a-f]{12}",
        r'search_docs \{"query": "berth"\}: approve by \S+, tier 0',
        r"in all: 24 tokens in, 14 out, cost unknown",
    ):
        assert re.search(words, trace, re.MULTILINE), (words, trace)
    with home.serve() as server:
        row = server.get(f"/api/turns/{told['turn']}").body
        assert [(each["path"], each["doubt"]) for each in row["citations"]] == [
            ("docs/guide/harbour.md", ""),
            ("docs/guide/dogs.md", "there is no such file"),
        ]
    provider.script(ModelAnswer(text="Ten euros."))
    again = home.do("replay", told["turn"], "--model", "local/other")
    assert again.code == 0 and "local/other" in again.out


@pytest.mark.parametrize(
    ("style", "told"),
    [
        ("inline", "Ten [1] euros [docs/guide/harbour.md:3], and dogs are welcome [source not confirmed].\n\nBye."),
        (
            "footnote",
            "Ten [1] euros [1], and dogs are welcome [source not confirmed].\n\nBye.\n\n[1] [docs/guide/harbour.md:3]",
        ),
    ],
)
def test_what_is_streamed_is_proved_already(home_with_guide: Home, provider: Provider, style: str, told: str) -> None:
    home = home_with_guide
    home.write(home.config.read_text().replace("denizen: {}", f"denizen: {{style: {{citations: {style}}}}}"))
    said = "Ten [1] euros [docs/guide/harbour.md:3-3](https://made.up/x), and dogs are welcome [docs/guide/dogs.md:1]."
    with home.serve() as server, openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
        provider.script(search(), ModelAnswer(text=f"{said}\n\nBye.\n"))
        asked: Any = [{"role": "user", "content": "How much is a berth?"}]
        with client.chat.completions.create(model="denizen", messages=asked, stream=True) as stream:
            chunks = list(stream)
        pieces = [choice.delta.content for chunk in chunks for choice in chunk.choices if choice.delta.content]
        assert "".join(pieces) == told
        assert len(pieces) > 2
        turn = server.get(f"/api/turns/{chunks[0].id.removeprefix('chatcmpl-')}").body
    assert turn["reply"] == told
    assert [each["doubt"] for each in turn["citations"]] == ["", "there is no such file"]


def test_what_the_documents_do_not_answer_is_told_to_who_writes_them(home_with_guide: Home, provider: Provider) -> None:
    home = home_with_guide
    provider.script(search("ferry"), ModelAnswer(text="I do not know that. [[unknown]]"))
    assert home.do("ask", "When does the ferry go?").out == "I do not know that.\n"
    provider.script(search("ferry"), ModelAnswer(text="No idea. [[unknown]]"))
    home.do("ask", "the ferry goes when?")
    listed = home.do("gaps").out
    assert "  the ferry goes when?\n    asked 2 times by 1, last " in listed
    assert "    also: When does the ferry go?\n" in listed
    (row,) = [json.loads(line) for line in home.do("gaps", "--json").out.splitlines()]
    assert (row["times"], row["kind"]) == (2, "unknown")
    assert home.do("gaps", "close", "nonsense").code == 2
    assert "(asked 2 times)" in home.do("gaps", "close", row["id"]).out
    assert "No question of the last 30 days" in home.do("gaps").out


def test_a_list_that_is_too_long_says_that_there_is_more(home: Home) -> None:
    home.configure("http://127.0.0.1:9")
    assert "looked at" not in home.do("gaps").out

    async def ask_often() -> None:
        store = await open_store(home.store_url, clock=SystemClock())
        async with store.work() as work:
            for number in range(MAX_GAPS + 1):
                await work.gaps.add(make_gap(f"gap_{number}", hours=24))
        await store.aclose()

    anyio.run(ask_often)
    assert f"(only the newest {MAX_GAPS} were looked at" in home.do("gaps", "--days", "3650").out


def test_people_search_as_agents_do(home_with_guide: Home) -> None:
    home = home_with_guide
    found = home.do("docs", "search", "what does a berth cost").out
    assert found == "docs/guide/harbour.md:1-3  Harbour\n    # Harbour\n    \n    A berth is ten euros a night.\n\n"
    (row,) = [json.loads(line) for line in home.do("docs", "search", "--json", "berth").out.splitlines()]
    assert (row["path"], row["first_line"], row["source"]) == ("docs/guide/harbour.md", 1, "guide")
    assert home.do("docs", "search", "zebra").out == "Nothing was found.\n"
    assert home.do("docs", "search", "berth", "--source", "nope").code == 2
    told = home.do("docs", "index").out
    assert "1 documents with 1 passages are indexed." in told and "by words only" in told


def test_people_search_files_in_folders_as_the_api_does(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest="  guide: {}\n")
    assert home.do("docs", "search", "sauna").out.startswith("There are no documents yet. Put files into `knowledge/`")
    for folder, text in (
        ("knowledge", "The sauna is hot on Fridays."),
        ("agents/denizen/knowledge", "The key of the sauna is with Ana."),
        ("agents/guide/knowledge", "The sauna needs a towel."),
    ):
        (home.folder / folder).mkdir(parents=True)
        (home.folder / folder / "sauna.md").write_text(text)
    assert home.do("docs", "search", "zebra").out == "Nothing was found.\n"
    with home.serve() as server:
        for of, query in (((), ""), (("--agent", "guide"), "&agent=guide")):
            rows = [json.loads(line) for line in home.do("docs", "search", "--json", "sauna", *of).out.splitlines()]
            assert rows == server.get(f"/api/docs/search?q=sauna{query}").body["passages"]
            assert {row["path"] for row in rows} == {"shared/sauna.md", "own/sauna.md"}
            assert ("towel" in str(rows)) is bool(of)
    assert len(home.do("docs", "search", "--json", "sauna", "--limit", "1").out.splitlines()) == 1
    assert "no agent 'nobody'" in home.do("docs", "search", "sauna", "--agent", "nobody").err


def test_a_search_that_is_empty_or_for_too_many_passages_is_refused_as_over_http(
    home: Home, provider: Provider
) -> None:
    home.configure(provider.server.openai_url)
    (home.folder / "knowledge").mkdir()
    (home.folder / "knowledge" / "sauna.md").write_text("The sauna is hot on Fridays.")
    empty = home.do("docs", "search", " ")
    assert (empty.code, empty.out) == (2, "")
    assert 'The question is empty.\nfix: Say what to look for: denizen docs search "' in empty.err
    with home.serve() as server:
        assert server.get("/api/docs/search?q=+").status == 400
        for limit, code, status in ((15, 0, 200), (16, 2, 400)):
            assert home.do("docs", "search", "sauna", "--limit", str(limit)).code == code
            assert server.get(f"/api/docs/search?q=sauna&limit={limit}").status == status


def test_people_are_told_how_far_search_by_meaning_is(home_with_guide: Home, provider: Provider) -> None:
    home = home_with_guide
    assert "meaning" not in home.do("sources", "list").out
    home.configure(provider.server.openai_url, rest="embeddings: {provider: local}\n")
    [_, told] = home.do("sources", "list").out.splitlines()
    assert told.startswith("Search by meaning: 0 of 1 passages embedded. `denizen run` goes on with them")
    assert home.do("docs", "index").code == 0
    assert "meaning" not in home.do("sources", "list").out
    assert "search by meaning: 1 of 1 passages embedded" in home.do("sources", "status").out
    assert json.loads(home.do("sources", "status", "--json").out)["embedding"] == {
        "done": 1,
        "total": 1,
        "left_s": None,
    }


def test_a_running_server_indexes_what_another_process_reads(
    home_with_guide: Home, provider: Provider, tmp_path: Path
) -> None:
    home = home_with_guide
    with home.serve() as server:
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes/ferry.md").write_text("The ferry goes at noon.")
        assert home.do("sources", "add", str(tmp_path / "notes")).code == 0
        assert home.do("sources", "sync", "notes").code == 0

        def knows_the_ferry() -> bool:
            provider.script(search("ferry"), ModelAnswer(text="At noon [docs/notes/ferry.md:1]."))
            answered = server.ask("When?", key=f"q{len(provider.server.bodies)}")
            return "[docs/notes/ferry.md:1]" in answered.body["choices"][0]["message"]["content"]

        wait_until(knows_the_ferry)
