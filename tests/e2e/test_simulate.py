"""A Discord server to try, in a process of its own: alone, and beside a running Denizen, which it never outlives."""

from __future__ import annotations

import json
import signal
import socket
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psutil
import pytest

from denizen.testing.model_server import ModelAnswer
from tests.e2e.home import Home, Server, get_completion_text
from tests.e2e.process import RunningProcess
from tests.e2e.provider import Provider
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.e2e

ACCOUNTS = """\
channels:
  discord:
    api_url: http://127.0.0.1:1/api/v10
    gateway_url: ws://127.0.0.1:1/gateway
    accounts: {denizen: "${TOKEN}"}
"""


@dataclass(frozen=True, slots=True)
class SimulatorPage:
    """The page of a simulator, as Ana has it open."""

    url: str

    def ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.url}sim{path}", data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=HANG_LIMIT_S) as answer:
            return json.loads(answer.read())

    @property
    def bots(self) -> dict[str, str]:
        """Names to ids."""
        return {each["name"]: each["id"] for each in self.ask("GET", "/world")["people"] if each["bot"]}

    @contextmanager
    def listening(self) -> Generator[Iterator[tuple[str, Any]]]:
        """The events from now on."""
        with urllib.request.urlopen(f"{self.url}sim/events", timeout=HANG_LIMIT_S) as stream:
            yield read_events(stream)


def read_events(lines: Iterator[bytes]) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in lines:
        field, _, value = line.decode().rstrip("\n").partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


def await_bot(events: Iterator[tuple[str, Any]]) -> str:
    """The id of the bot, once it is online."""
    for name, body in events:
        for each in body["people"] if name == "world" else ():
            if each["bot"] and each["online"]:
                return each["id"]
    raise AssertionError("the stream has ended")


def await_answer(events: Iterator[tuple[str, Any]], author: str) -> Any:
    for name, body in events:
        if name == "message" and body["author_id"] == author:
            return body
    raise AssertionError("the stream has ended")


@dataclass(frozen=True, slots=True)
class SimulatedServer:
    """A `denizen run --simulate` that is ready, and the process of its simulator."""

    server: Server
    page: SimulatorPage
    child: psutil.Process

    @property
    def running(self) -> RunningProcess:
        return self.server.running


@contextmanager
def run_simulated(home: Home) -> Generator[SimulatedServer]:
    with home.start("run", "--port", "0", "--simulate") as running:
        url = running.err.await_text(r"Denizen is ready: (http://\S+)$")[1]
        page = running.err.await_text(r"A Discord server to try: (http://127\.0\.0\.1:\d+/)$")[1]
        [child] = [each for each in psutil.Process(running.pid).children() if "simulate" in each.cmdline()]
        yield SimulatedServer(Server(running, url), SimulatorPage(page), child)


def test_the_simulator_alone_says_where_it_is_and_ends_when_told(home: Home) -> None:
    with home.start("simulate", "discord", "--port", "0", "--json", "--agent", "ada", "--guild", "Workshop") as running:
        said = json.loads(running.out.await_text(r"^\{.*\}$")[0])
        page = SimulatorPage(said["page"])
        assert (said["api_url"], said["gateway_url"]) == (
            f"{page.url}api/v10",
            f"{page.url.replace('http', 'ws')}gateway",
        )
        assert list(said["tokens"]) == list(page.bots) == ["ada"]
        world = page.ask("GET", "/world")
        assert (world["me"], world["guilds"][0]["name"]) == (said["owner_id"], "Workshop")
        ended = running.stop(signal.SIGTERM)
    assert (ended.code, ended.told) == (0, [])


def test_it_ends_with_its_standard_input_where_that_is_asked_for(home: Home) -> None:
    with home.start("simulate", "discord", "--port", "0", "--json", "--until-stdin-closes") as running:
        running.out.await_text(r"^\{.*\}$")
        ended = running.finish()
    assert (ended.code, ended.told) == (0, [])


def test_people_are_told_how_to_point_denizen_at_it(home: Home) -> None:
    home.write("agents: {ada: {}, ben: {}}\ndefault_agent: ada\n")
    with home.start("simulate", "discord", "--port", "0") as running:
        running.out.await_text("gone then")
        ended = running.stop(signal.SIGINT)
    assert (ended.code, ended.told) == (0, ["Stopped."])
    for line in ("DENIZEN_DISCORD_API_URL=http://127.0.0.1:", "DISCORD_TOKEN_ADA=", "ben: ${DISCORD_TOKEN_BEN}"):
        assert line in ended.out


def test_a_port_that_was_asked_for_and_is_taken_is_refused(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = home.do("simulate", "discord", "--port", str(port))
    assert ended.code == 2
    assert ended.told[0] == f"error: The simulator cannot listen on port {port}."


def test_a_server_to_try_takes_a_free_port_when_the_default_one_is_taken(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    with ExitStack() as stack:
        with suppress(OSError):  # somebody else has it
            stack.enter_context(socket.create_server(("127.0.0.1", 8650)))
        with home.start("run", "--simulate") as running:
            said = running.err.await_text(r"Denizen is ready: (http://127\.0\.0\.1:\d+) \(port 8650 is taken\)$")
            assert Server(running, said[1]).get("/health").status == 200
            assert running.stop(signal.SIGTERM).code == 0
        for options in (("run",), ("run", "--simulate", "--port", "8650")):
            ended = home.do(*options)
            assert (ended.code, ended.told[-3]) == (2, "error: Denizen cannot listen on 127.0.0.1 port 8650.")
        home.configure(provider.server.openai_url, rest="server: {port: 8650}\n")
        assert home.do("run", "--simulate").code == 2


def test_a_person_mentions_the_agent_and_gets_its_answer_and_everything_ends_together(
    home: Home, provider: Provider
) -> None:
    home.configure(provider.server.openai_url)
    provider.script(ModelAnswer(text="Hello, Ana."))
    with run_simulated(home) as all_of_it, all_of_it.page.listening() as events:
        bot = await_bot(events)
        said = all_of_it.page.ask("POST", "/channels/general/messages", {"text": f"<@{bot}> hello"})
        answer = await_answer(events, bot)
        assert (answer["text"], answer["reply"]["id"]) == ("Hello, Ana.", said["id"])
        ended = all_of_it.running.stop(signal.SIGTERM)
        all_of_it.child.wait(HANG_LIMIT_S)
    assert (ended.code, ended.told[-1]) == (0, "Stopped.")


def test_the_simulator_does_not_outlive_a_denizen_that_is_killed(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    with run_simulated(home) as all_of_it:
        all_of_it.running.kill()
        all_of_it.child.wait(HANG_LIMIT_S)


def test_without_its_simulator_denizen_says_so_and_goes_on(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    provider.script(ModelAnswer(text="Still here."))
    with run_simulated(home) as all_of_it:
        all_of_it.child.kill()
        all_of_it.running.err.await_text("the Discord simulator has ended")
        assert get_completion_text(all_of_it.server.ask("Hello", key="m1")) == "Still here."
        assert all_of_it.running.stop(signal.SIGTERM).code == 0


def test_with_real_accounts_nothing_is_simulated(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest=ACCOUNTS)
    home.variables["TOKEN"] = "not-a-real-one"
    with home.start("run", "--port", "0", "--simulate") as running:
        running.err.await_text("Denizen is ready")
        assert [each for each in psutil.Process(running.pid).children() if "simulate" in each.cmdline()] == []
        ended = running.stop(signal.SIGTERM)
    assert ended.told[0] == "--simulate is not needed: there are Discord accounts (denizen), and they are used."
    assert "to try" not in ended.err
