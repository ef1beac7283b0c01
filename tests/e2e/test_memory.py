"""Memory from the command line: told, found, shown in the trace, exported and forgotten."""

from __future__ import annotations

import json
import re

import pytest

from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.home import Home
from tests.e2e.provider import Provider

pytestmark = pytest.mark.e2e


@pytest.mark.proves("V7", "V8", "P4", "V27")
def test_what_is_remembered_reaches_the_model_and_is_told_by_trace_export_and_doctor(
    home: Home, provider: Provider
) -> None:
    home.configure(f"{provider.server.url}/v1", rest="embeddings: {provider: none}\n")
    added = home.do("memory", "add", "The fair is in May")
    assert added.code == 0, added.err
    key = re.findall(r"mem_[0-9a-f]+", added.out)[0]
    home.do("memory", "add", "--user", "local:operator", "Is allergic to peanuts")
    assert "is no user's key" in home.do("memory", "add", "--user", "ana", "x").err
    agent = home.folder / "agents" / "denizen"
    (agent / "users" / "local:operator").mkdir(parents=True)
    persona = {"IDENTITY": "You are Denizen.", "SOUL": "You love boats.", "RULES": "Never shout."}
    for name, text in persona.items():
        (agent / f"{name}.md").write_text(text)
    (agent / "CORE_MEMORY.md").write_text("The harbour is in the north.")
    (agent / "users" / "local:operator" / "MEMORY.md").write_text("Runs the bakery.")
    provider.script(ModelAnswer(text="In May."), ModelAnswer(text="Again."))
    assert home.do("ask", "--no-stream", "When is the fair, and are there peanuts?").code == 0
    system = str(provider.server.bodies[-1]["messages"][0])
    places = [system.index(text) for text in (*persona.values(), "The harbour is in the north.")]
    assert places == sorted(places)
    assert {"calculator", "recall"} <= {tool["function"]["name"] for tool in provider.server.bodies[-1]["tools"]}
    sent = json.dumps(provider.server.bodies[-1])
    for words in ("The harbour is in the north.", "Runs the bakery.", "The fair is in May", "allergic to peanuts"):
        assert words in sent
    trace = home.do("trace", "--last").out
    assert "memories that came up: 2" in trace
    assert f"{key} core: The fair is in May" in trace
    exported = home.do("memory", "export").out
    assert "# denizen: core" in exported and "# denizen: local:operator" in exported
    assert f"- The fair is in May ({key}" in exported
    assert "told by local:operator on the command line, for everybody" in home.do("memory", "show", key[:-2]).out
    home.do("memory", "add", "--user", "local:operator", "Lives in Lyon")
    home.do("memory", "add", "--user", "local:operator", "Moved to Oslo")
    assert "Lyon" not in home.do("memory", "list").out and "Moved to Oslo" in home.do("memory", "list").out
    history = home.do("memory", "list", "--history").out
    assert re.search(r"\d to \d{4}-\d\d-\d\d  Lives in Lyon", history)
    oslo = re.findall(r"(mem_\w+).*Moved to Oslo", history)[0]
    assert f"superseded by {oslo}" in home.do("memory", "show", re.findall(r"(mem_\w+).*Lyon", history)[0]).out
    assert home.do("memory", "forget", "--yes", oslo).ending == (0, "Forgotten: 2.\n")
    kept = home.do("memory", "forget", key[:-2], stdin="n\n")
    assert f"{key}  The fair is in May" in kept.err and kept.err.endswith("Nothing was changed.\n")
    unasked = home.do("memory", "forget", key[:-2], stdin="")
    assert unasked.code == 2 and unasked.err.endswith("standard input is no terminal.\nfix: Add --yes.\n")
    several, none = home.do("memory", "forget", "mem_"), home.do("memory", "forget", "mem_none")
    assert "begins 2 memories" in several.err and "There is no memory 'mem_none'" in none.err
    assert "Delete it for good" not in several.err + none.err
    assert home.do("memory", "forget", "--yes", key).ending == (0, "Forgotten: 1.\n")
    assert f"{key} (forgotten since)" in home.do("trace", "--last").out
    assert "by words only" in home.do("doctor", "--offline").out


@pytest.mark.proves("V-skill-memory")
def test_an_agent_finds_in_its_log_what_it_did_in_an_earlier_turn(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    provider.script(
        ModelAnswer(calls=[ModelCall("calculator", {"expression": "6 * 7"})]),
        ModelAnswer(text="42."),
        ModelAnswer(calls=[ModelCall("search_log", {"words": "done"})]),
        ModelAnswer(text="I calculated."),
    )
    for question in ("What is 6 * 7?", "What did you do?"):
        assert home.do("ask", "--no-stream", "--session", "s", question).code == 0
    assert "calculator: done" in json.dumps(provider.server.bodies[-1])
