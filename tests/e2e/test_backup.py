"""`denizen backup` while people ask: what they saw before it is in the restored home, once, and that home goes on."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Self

import pytest

from denizen.domain.message import Role
from denizen.testing.model_server import HangingAnswer, ModelAnswer, ScriptEntry
from denizen.testing.model_wire import JsonBody
from tests.e2e.home import Home, Server
from tests.e2e.home import get_completion_text as said
from tests.e2e.provider import Provider
from tests.e2e.records import read_turns
from tests.timing import wait_until

pytestmark = pytest.mark.e2e

PEOPLE = 3
HANGING = "the last question"
FREE = "gate: {rate_limits: {per_user_per_hour: 0}}\n"


class Crowd:
    """People who ask one question after another. `seen` are the answers that they got, by question."""

    def __init__(self, server: Server) -> None:
        self.seen: dict[str, str] = {}
        self._server = server
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(PEOPLE)]

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for each in self._threads:
            each.join()

    def _ask(self, person: int) -> None:
        number = 0
        while not self._stop.is_set():
            question = f"question {number} of {person}"
            self.seen[question] = said(self._server.ask(question, key=question.replace(" ", "-")))
            number += 1

    def await_more(self, count: int) -> None:
        known = len(self.seen)
        wait_until(lambda: len(self.seen) >= known + count)


def answer(body: JsonBody) -> ScriptEntry:
    question = str(body["messages"][-1]["content"])
    return HangingAnswer() if HANGING in question else ModelAnswer(text=f"answer to {question}")


def read_answers(home: Home) -> Mapping[str, str]:
    """Each question that has an answer in the store. Fails for one that has two."""
    found: dict[str, str] = {}
    for turn, talk in read_turns(home.store_url, limit=10_000):
        texts = [text for role, text in talk if role is Role.ASSISTANT and text]
        for question in (text for role, text in talk if role is Role.USER):
            if texts:
                assert len(texts) == 1, (turn.id, texts)
                found[question] = texts[0]
    return found


@pytest.mark.proves("X-storage")
def test_what_people_saw_before_a_backup_is_in_the_restored_home_and_what_was_under_way_goes_on(
    home: Home, provider: Provider, tmp_path: Path
) -> None:
    home.configure(provider.server.openai_url, rest=FREE)
    provider.server.aside = answer
    files = [tmp_path / "first.zip", tmp_path / "second.zip"]
    seen: list[Mapping[str, str]] = []
    with home.serve() as server, Crowd(server) as crowd:
        crowd.await_more(5)
        with closing(server.send(HANGING, key="last")):
            wait_until(lambda: any(HANGING in str(body["messages"]) for body in list(provider.server.bodies)))
            for file in files:
                seen.append(dict(crowd.seen))
                result = home.do("backup", "--to", str(file))
                assert result.code == 0, result.err
                crowd.await_more(5)
    restored = [Home(tmp_path / f"restored-{file.stem}", home.variables) for file in files]
    for file, new, before in zip(files, restored, seen, strict=True):
        assert home.do("restore", str(file), "--to", str(new.folder)).code == 0
        answers = read_answers(new)
        assert {question: answers.get(question) for question in before} == before
    provider.server.aside = lambda _body: ModelAnswer(text="Done at last.")
    asked = len(provider.server.bodies)
    with restored[1].serve() as server:
        for question, text in list(seen[1].items())[:5]:
            assert said(server.ask(question, key=question.replace(" ", "-"))) == text
        assert said(server.ask(HANGING, key="last")) == "Done at last."
    asked_again = [str(body["messages"][-1]["content"]) for body in provider.server.bodies[asked:]]
    assert not [each for each in asked_again if each in seen[1]]


def test_the_server_makes_the_backups_of_the_schedule_and_doctor_tells_of_them(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest="backups: {schedule: '@daily'}\n")
    with home.serve() as server:
        server.running.err.await_text("a backup was made and checked")
        said_by_doctor = home.do("doctor", "--offline")
        assert "backups: the last good one is" in said_by_doctor.out
        listed = home.do("backup", "list")
        [file] = (home.folder / "backups").glob("*.zip")
        assert listed.out.startswith(f"{file}  ")
        assert home.do("backup", "verify", str(file)).code == 0
