"""`denizen run` is killed in the middle of things: after the restart everything is there once."""

from __future__ import annotations

import fcntl
import signal
from contextlib import ExitStack, closing

import pytest

from denizen.domain.message import Role
from denizen.domain.turn import TurnStatus
from denizen.testing.model_server import HangingAnswer, ModelAnswer, ModelCall
from tests.e2e.home import Home
from tests.e2e.home import get_completion_text as said
from tests.e2e.provider import Provider
from tests.e2e.records import count_rows, lock_database, read_turns
from tests.timing import wait_until

pytestmark = pytest.mark.e2e
pytest_plugins = ["tests.postgres"]

NOTE = "agents/denizen/notes/shopping.md"
TAKE_NOTE = ModelAnswer(calls=[ModelCall("append_note", {"name": "shopping", "text": "- milk"})])


@pytest.mark.proves("P1", "X-storage")
@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))])
def test_a_turn_killed_between_a_tool_and_the_answer_is_finished_once_after_the_restart(
    database: str, home: Home, provider: Provider, request: pytest.FixtureRequest
) -> None:
    url = home.store_url
    rest = ""
    if database == "postgres":
        url = request.getfixturevalue("postgres_url")
        home.variables["DATABASE"] = url
        rest = 'store: {url: "${DATABASE}"}\n'
    home.configure(provider.server.openai_url, rest=rest)
    provider.script(TAKE_NOTE, HangingAnswer(), ModelAnswer(text="Noted."))
    with home.serve() as first, closing(first.send("Put milk on the list", key="m1")):
        provider.requests.await_count(2)
        assert (home.folder / NOTE).read_text() == "- milk\n"
        assert first.running.kill().code == -signal.SIGKILL
    with home.serve() as second:
        assert said(second.ask("Put milk on the list", key="m1")) == "Noted."
        assert said(second.ask("Put milk on the list", key="m1")) == "Noted."
        assert second.running.stop(signal.SIGTERM).code == 0
    assert (home.folder / NOTE).read_text() == "- milk\n"
    assert [[m["role"] for m in body["messages"][1:]] for body in provider.server.bodies] == [
        ["user"],
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool"],
    ]
    databases = {file.name for file in home.folder.rglob("*.db")}
    assert databases == ({"denizen.db", "durable.db"} if database == "sqlite" else set())
    [(turn, talk)] = read_turns(url)
    assert turn.status is TurnStatus.DONE
    assert talk == [
        (Role.USER, "Put milk on the list"),
        (Role.ASSISTANT, ""),
        (Role.TOOL, ""),
        (Role.ASSISTANT, "Noted."),
    ]


def finish_after_restart(home: Home, provider: Provider, *, requests: int) -> None:
    """Another process answers the message `m1` unasked, and the same once more; the model is asked no more often."""
    with home.serve() as server:
        provider.requests.await_count(requests)  # nobody has to ask again
        assert [said(server.ask("Hello", key="m1")) for _ in range(2)] == ["Done."] * 2
    assert len(provider.requests) == requests
    [(turn, talk)] = read_turns(home.store_url)
    assert turn.status is TurnStatus.DONE
    assert [(role, text) for role, text in talk if text] == [(Role.USER, "Hello"), (Role.ASSISTANT, "Done.")]


@pytest.mark.proves("P1")
def test_a_message_written_down_but_not_begun_is_answered_after_the_restart(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    provider.script(ModelAnswer(text="Done."))
    with home.serve() as first, lock_database(home.folder / "durable.db"), closing(first.send("Hello", key="m1")):
        wait_until(lambda: count_rows(home.folder / "denizen.db", "turns") == 1)
        first.running.kill()
    assert len(provider.requests) == 0
    finish_after_restart(home, provider, requests=1)


def test_a_tool_whose_effect_was_not_recorded_has_it_once(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    provider.script(TAKE_NOTE, ModelAnswer(text="Done."))
    notes = (home.folder / NOTE).parent
    notes.mkdir(parents=True)
    with ExitStack() as stack:
        first = stack.enter_context(home.serve())
        with (notes / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            stack.enter_context(closing(first.send("Hello", key="m1")))
            wait_until(lambda: count_rows(home.folder / "durable.db", "operation_outputs") == 1)
            stack.enter_context(lock_database(home.folder / "durable.db"))
        wait_until((home.folder / NOTE).exists)
        first.running.kill()
    finish_after_restart(home, provider, requests=2)
    assert (home.folder / NOTE).read_text() == "- milk\n"


@pytest.mark.proves("P1")
def test_an_answer_that_was_not_written_down_is_not_asked_for_again(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    answer = provider.hold(ModelAnswer(text="Done."))
    with home.serve() as first, closing(first.send("Hello", key="m1")):
        provider.requests.await_count(1)
        with lock_database(home.folder / "denizen.db"):
            answer.release()
            wait_until(lambda: count_rows(home.folder / "durable.db", "operation_outputs") == 1)
            first.running.kill()
    finish_after_restart(home, provider, requests=1)
