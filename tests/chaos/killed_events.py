"""Webhooks, a polled resource, workflows, a schedule and delegations at work while the process is killed: each has its
effect once.

The sender of webhooks repeats each one until it is taken, as senders do, under the same delivery id.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import anyio
from anyio import to_thread

from denizen.testing.discord import SimChannel
from denizen.testing.discord.rest.limits import SimRateLimit
from denizen.testing.model_server import ModelAnswer, ModelCall, ScriptEntry
from denizen.testing.model_wire import JsonBody
from tests.e2e.discord import DiscordDeployment, open_deployment
from tests.e2e.home import Home
from tests.e2e.provider import open_provider
from tests.local_server import serve
from tests.timing import HANG_LIMIT_S

SECRET = "the-secret-of-the-route"
ANSWER_EVERY = 3
DELEGATE_EVERY = 2 * ANSWER_EVERY
ITEMS = 40
NO_LIMIT = SimRateLimit(1_000_000_000, 1.0)
CONFIG = """\
gate: {{rate_limits: {{per_user_per_hour: 0, tool: {{workflow_post: {{calls: 10000, per_s: 60}}}}}}}}
webhooks:
  enabled: true
  routes:
    hub: {{scheme: github, secret: "${{HOOK_SECRET}}", action: log}}
events:
  polls:
    stock: {{url: "{url}", every: 60, id: id, first: all, private: true}}
listeners:
  post: {{on: github.push, action: post, message: "event {{{{number}}}}", channel: "{room}", per_hour: 10000}}
  answer:
    on: github.push
    filter: {{is_asked: true}}
    message: "question {{{{number}}}}"
    new_session: true
    channel: "{room}"
    per_hour: 10000
  item: {{on: poll.stock, action: post, message: "item {{{{id}}}}", channel: "{room}", per_hour: 10000}}
schedules:
  tick: {{cron: "* * * * *", prompt: "question 0", delivery: {{to: discord, target: "{room}"}}}}
"""
WORKFLOW = """\
nodes:
  pushed: {{type: on_event, on: github.push, filter: {{is_asked: true}}, per_hour: 10000, then: first}}
  first: {{type: send_message, channel: "{room}", text: "first {{{{event.number}}}}", then: second}}
  second: {{type: send_message, channel: "{room}", text: "second {{{{event.number}}}}"}}
"""
TICKS = """\
SELECT turns.status FROM schedule_runs LEFT JOIN turns ON turns.id = schedule_runs.turn_id
WHERE schedule_runs.status IN ('waiting', 'started')"""
DELEGATED = """\
SELECT delegated.status FROM delegations JOIN turns AS delegated ON delegated.id = delegations.turn_id"""
_QUESTION = re.compile(r"question (\d+)")
_TASK = re.compile(r"task (\d+)")
_FOUND = re.compile(r"found (\d+)")
_EFFECT = re.compile(r"(?:event|item|answer|first|second) \d+")


@dataclass(slots=True)
class Effects:
    """The posts, beside those that had to be. A tick is an answer to question 0; `ticks` are those that were answered,
    and `begun` all that are to be: one may be under way. `delegated` are the fates of delegated turns: one for each
    answer that needed one, which says what the other agent found.
    """

    sent: int
    delegated: Sequence[str] = ()
    ticks: int = 0
    begun: int = 0
    seen: Counter[str] = field(default_factory=Counter[str])

    def list_wanted(self) -> Iterator[str]:
        yield from (f"event {number}" for number in range(1, self.sent + 1))
        for what in ("answer", "first", "second"):
            yield from (f"{what} {number}" for number in range(ANSWER_EVERY, self.sent + 1, ANSWER_EVERY))
        yield from (f"item {number}" for number in range(ITEMS))

    @property
    def wrong(self) -> list[str]:
        """The effects that are missing, or there more than once."""
        found = [f"{each}: {self.seen[each]} times" for each in self.list_wanted() if self.seen[each] != 1]
        if not self.ticks <= self.seen["answer 0"] <= self.begun:
            found.append(f"ticks: {self.seen['answer 0']} for {self.ticks} to {self.begun}")
        counts = {number // DELEGATE_EVERY for number in (self.sent, self.sent + 1)}  # the last was taken, or was not
        if len(self.delegated) not in counts or set(self.delegated) - {"done"}:
            found.append(f"delegations: {Counter(self.delegated)}")
        return found

    def describe(self) -> str:
        said = f"{self.sent} webhooks, {ITEMS} items, {self.ticks} ticks, {len(self.delegated)} delegations"
        said += f"; {len(self.wrong)} wrong"
        return f"{said} ({', '.join(self.wrong[:5])})" if self.wrong else said


async def kill_while_events_come(kills: int, seed: int = 1) -> Effects:
    """Kills `denizen run` so often, at random moments. Returns what people see in the end."""
    rng = random.Random(seed)
    items = json.dumps([{"id": number} for number in range(ITEMS)])
    with (
        tempfile.TemporaryDirectory(prefix="chaos-") as folder,
        open_provider() as provider,
        serve({"/stock": lambda exchange: exchange.say(items, kind="application/json")}) as polled,
    ):
        provider.server.aside = _answer
        async with open_deployment(Home(Path(folder) / "home"), provider) as deployment:
            deployment.discord.limits.default = NO_LIMIT
            room = deployment.general
            agents = {"ada": "delegates_to: [bea]", "bea": ""}
            deployment.configure(agents=agents, rest=CONFIG.format(url=polled.url("/stock"), room=room.id))
            workflow = deployment.home.folder / "workflows" / "pushed.yaml"
            workflow.parent.mkdir()
            workflow.write_text(WORKFLOW.format(room=room.id))
            deployment.write_tokens({"ada": deployment.ada.token}, {"HOOK_SECRET": SECRET})
            sent = 0
            for _ in range(kills):
                async with deployment.run(ready=None) as denizen:
                    with anyio.move_on_after(rng.uniform(0.1, 1.5)):
                        while await to_thread.run_sync(partial(_send, denizen.server.url, sent + 1)):
                            sent += 1
                            await anyio.sleep(rng.uniform(0, 0.1))
                    await denizen.kill()
            async with deployment.run():
                effects = await _settle(deployment, room, sent)
    return effects


async def _settle(deployment: DiscordDeployment, room: SimChannel, sent: int) -> Effects:
    """Waits until everything is there, or it takes too long."""
    effects = Effects(sent)

    def is_done() -> bool:
        posts = deployment.said(room)
        effects.seen = Counter(found for post in posts for found in _EFFECT.findall(post))
        runs = [status for (status,) in deployment.rows(TICKS)]
        effects.ticks, effects.begun = runs.count("done"), len(runs)
        effects.delegated = [status for (status,) in deployment.rows(DELEGATED)]
        return not effects.wrong

    with suppress(TimeoutError):
        await deployment.discord.until(is_done, 120)
    await anyio.sleep(2)  # what is there twice comes later
    is_done()
    return effects


def _answer(body: JsonBody) -> ScriptEntry:
    said = json.dumps(body["messages"])
    if task := _TASK.search(said) if "question" not in said else None:
        return ModelAnswer(text=f"found {task[1]}")
    asked = _QUESTION.findall(said)
    number = int(asked[-1]) if asked else 0
    if number and number % DELEGATE_EVERY == 0 and str(number) not in _FOUND.findall(said):
        return ModelAnswer(calls=(ModelCall("delegate", {"agent": "bea", "task": f"task {number}"}),))
    return ModelAnswer(text=f"answer {number}")


def _send(url: str, number: int) -> bool:
    """Sends a webhook as GitHub does. Returns whether it was taken."""
    body = json.dumps({"number": number, "is_asked": number % ANSWER_EVERY == 0}).encode()
    headers = {
        "X-Hub-Signature-256": f"sha256={hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()}",
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": f"d{number}",
    }
    address = urlsplit(url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=HANG_LIMIT_S)
    try:
        connection.request("POST", "/api/hooks/hub", body, headers)
        return connection.getresponse().status in (200, 202)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
