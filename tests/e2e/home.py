"""A home folder and the `denizen` command on it, run by the interpreter of the tests: no installed script is needed."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from tests.e2e.process import ProcessResult, RunningProcess, after, start, start_in_terminal, start_soon
from tests.timing import HANG_LIMIT_S

DENIZEN = (sys.executable, "-m", "denizen")

CONFIG = """\
models:
  providers:
    local: {{kind: {kind}, base_url: "{url}"{more}}}
  aliases: {{balanced: local/scripted}}
agents:
  denizen: {{}}
{rest}"""


LOOKS = {
    "denizen.engine.event_bus.bus.LOOK_EVERY_S": 0.5,
    "denizen.engine.feeds.poller.LOOK_EVERY_S": 0.5,
    "denizen.engine.schedules.runner.LOOK_EVERY_S": 0.5,
}
"""How often a server looks for what a command has left it: no test need sit out 20 or 30 s."""


@dataclass(slots=True)
class Home:
    """`folder` need not exist. `variables` are added to an environment that knows nothing of the machine's own keys.
    `pauses` are constants of Denizen, as `denizen.module.NAME`, that are others in the processes of a test.
    """

    folder: Path
    variables: dict[str, str] = field(default_factory=dict[str, str])
    pauses: dict[str, float] = field(default_factory=lambda: dict(LOOKS))

    @property
    def environment(self) -> Mapping[str, str]:
        own = {"PATH": os.environ["PATH"], "HOME": str(self.folder.parent), "LANG": "C.UTF-8", "TERM": "dumb"}
        return {**own, **self.variables}

    @property
    def store_url(self) -> str:
        return f"sqlite:///{self.folder / 'denizen.db'}"

    @property
    def config(self) -> Path:
        return self.folder / "denizen.yaml"

    def configure(self, url: str, *, kind: str = "openai-compatible", more: str = "", rest: str = "") -> None:
        """One provider at that URL; `more` are further keys of it, `rest` further sections."""
        self.write(CONFIG.format(kind=kind, url=url, more=f", {more}" if more else "", rest=rest))

    def write(self, text: str) -> None:
        self.folder.mkdir(exist_ok=True)
        self.config.write_text(text, encoding="utf-8")

    def start(self, *args: str, before: str = "", anew: bool = False) -> RunningProcess:
        """`before` is Python that the process runs first, with `anew` it imports everything itself."""
        own = ["--home", str(self.folder), *args]
        if not before and not anew:
            return start_soon(own, self.environment, pauses=self.pauses)
        command = [*DENIZEN, *own]
        return start(after(before, command) if before else command, self.environment)

    def start_in_terminal(self, *args: str) -> RunningProcess:
        return start_in_terminal([*DENIZEN, "--home", str(self.folder), *args], self.environment)

    def do(self, *args: str, stdin: str = "", before: str = "", anew: bool = False) -> ProcessResult:
        """Runs a command to its end."""
        with self.start(*args, before=before, anew=anew) as running:
            if stdin:
                running.type(stdin)
            return running.finish()

    def serve(self, *options: str, run: Sequence[str] = (), token: str = "", anew: bool = False) -> Server:
        """`denizen run` on a free port, once it is ready; `run` are options of that command, `token` is the API key
        that requests bring.
        """
        running = self.start(*options, "run", "--port", "0", *run, anew=anew)
        try:
            return Server(running, running.err.await_text(r"Denizen is ready: (http://\S+)$")[1], token)
        except AssertionError:
            running.kill()
            raise


@dataclass(frozen=True, slots=True)
class ServerResponse:
    """An answer of the server."""

    status: int
    body: Any


@dataclass(frozen=True, slots=True)
class Server:
    """A `denizen run` that is ready. Use it as a context: it is killed at the end."""

    running: RunningProcess
    url: str
    token: str = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.running.kill()

    def send(
        self, question: object, *, key: str, agent: str = "denizen", waits: bool = False
    ) -> http.client.HTTPConnection:
        """Asks over the OpenAI-compatible API, and does not wait for the answer. `waits`: for approvals, too."""
        body = {"model": agent, "messages": [{"role": "user", "content": question}]}
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        headers |= {"X-Denizen-Approvals": "wait"} if waits else {}
        return self._request("POST", "/v1/chat/completions", headers, json.dumps(body))

    def ask(self, question: object, *, key: str, agent: str = "denizen") -> ServerResponse:
        """The same, with the answer."""
        return receive(self.send(question, key=key, agent=agent))

    def send_to_chat(self, question: str, session: str) -> http.client.HTTPConnection:
        """Asks in a chat, without a title, and does not wait for the events that come as the answer."""
        body = {"message": question, "session": session}
        return self._request("POST", "/api/chat", {"Content-Type": "application/json"}, json.dumps(body))

    def get(self, path: str) -> ServerResponse:
        return receive(self._request("GET", path, {}))

    def post(self, path: str) -> ServerResponse:
        """Without a body."""
        return receive(self._request("POST", path, {}))

    def put(self, path: str, **body: object) -> ServerResponse:
        return receive(self._request("PUT", path, {"Content-Type": "application/json"}, json.dumps(body)))

    def hook(self, source: str, payload: bytes, secret: str) -> ServerResponse:
        """As GitHub tells of a push."""
        digest = hmac.new(secret.encode(), payload, hashlib.sha256).hexdigest()
        headers = {"X-Hub-Signature-256": f"sha256={digest}", "X-GitHub-Event": "push"}
        return receive(self._request("POST", f"/api/sync/webhook/{source}", headers, payload.decode()))

    def _request(
        self, method: str, path: str, headers: Mapping[str, str], body: str | None = None
    ) -> http.client.HTTPConnection:
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=HANG_LIMIT_S)
        own = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        connection.request(method, path, body, {**headers, **own})
        return connection


def receive(connection: http.client.HTTPConnection) -> ServerResponse:
    """Waits for the answer and closes the connection."""
    try:
        response = connection.getresponse()
        return ServerResponse(response.status, json.loads(response.read()))
    finally:
        connection.close()


def get_completion_text(answered: ServerResponse) -> str:
    """The text of a completion."""
    assert answered.status == 200, answered
    return answered.body["choices"][0]["message"]["content"]
