"""Measures the part of a conversation's input that is read from the provider's cache, and the cost.

    python -m benchmarks cache

Two conversations of 50 turns on the real engine, store and model layer: an assistant with tools (70 requests), and a
participant in a channel. Their provider is a local server that bills by the rules of the vendors
(`denizen.testing.prompt_cache`), on a clock that is moved by hand: steady, half a minute between turns, and with pauses
of seven minutes. Beside them are the costs of the same requests sent as others send them.

Cost units are tokens of input that is neither read from a cache nor written to it; output is not counted. No second of
this depends on the machine.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from benchmarks.figures import Figure, show
from denizen.app.build import Denizen, OpenOptions, open_denizen
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName
from denizen.domain.message import Author, TextPart
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.room import Post
from denizen.domain.turn import ReplyTarget, RequestOptions, Sender, TurnRequest, TurnStatus
from denizen.engine.turn import TurnRunner
from denizen.testing.memory_durable import MemoryDurable, MemoryLog
from denizen.testing.model_server import ModelAnswer, ModelCall, ModelServer, model_server
from denizen.testing.model_wire import ModelApi
from denizen.testing.prompt_cache import PromptCache, list_blocks
from tests.clock import ManualClock

TURNS = 50
TOOL_TURNS = 20
WARM = 10
"""From this turn on the share counts."""
STEADY_S, PAUSED_S = 30.0, 420.0
STEP_S = 2.0
"""How long a request takes."""
QUESTION_TOKENS, ANSWER_TOKENS, SUMMARY_TOKENS = 60, 120, 200
BACKLOG, BACKLOG_TOKENS, BETWEEN = 300, 25, 2
"""Posts in the channel before the first turn, and those of others between two."""
WINDOW = 12
"""Messages that a sliding window keeps."""

CONFIG = """\
models:
  providers:
    marked: {{kind: anthropic, base_url: "{url}", api_key: "${{CACHE_API_KEY}}"}}
    plain: {{kind: openai, base_url: "{url}/v1", api_key: "${{CACHE_API_KEY}}"}}
  aliases: {{balanced: marked/claude-sonnet-4-5, plain: plain/gpt-4o}}
agents:
  denizen: {{}}
  ada: {{context: transcript, tools: []}}
gate: {{rate_limits: {{per_user_per_hour: 0}}}}
"""
DENIZEN, ADA = AgentName("denizen"), AgentName("ada")
ANA = Principal(PrincipalKind.PLATFORM_USER, "discord:1", "Ana")
CHANNEL = Place("discord", "100")


@dataclass(frozen=True)
class SentRequest:
    """A request: in which turn, when, in whose form, and its body."""

    turn: int
    at_s: float
    api: ModelApi
    body: Mapping[str, Any]


@dataclass
class Run:
    """One conversation, and what was sent in it."""

    denizen: Denizen
    turns: TurnRunner
    server: ModelServer
    clock: ManualClock
    cache: PromptCache
    pause_s: float
    model: str = ""
    sent: list[SentRequest] = field(default_factory=list[SentRequest])

    def advance(self, seconds: float) -> None:
        """Moves the clock of the agent and that of the vendor."""
        self.clock.advance(seconds)
        self.cache.advance(seconds)

    async def ask(self, number: int, turn_request: TurnRequest, *answers: ModelAnswer) -> str:
        self.server.script(*answers)
        before = len(self.server.requests)
        asked = turn_request.parts[0].text if isinstance(turn_request.parts[0], TextPart) else ""
        self.server.aside = lambda body: (
            None if asked in json.dumps(body) else ModelAnswer(text=words(SUMMARY_TOKENS, 1))
        )
        end = await self.turns.ask(replace(turn_request, options=RequestOptions(model=self.model)))
        if end.status is not TurnStatus.DONE:
            raise RuntimeError(f"turn {number} failed: {end.failure and end.failure.message}")
        for new in self.server.requests[before:]:
            api: ModelApi = "messages" if new.path.endswith("/messages") else "chat"
            self.sent.append(SentRequest(number, self.cache.now_s, api, new.body))
        self.advance(STEP_S * len(answers))
        return end.reply


async def talk_with_tools(run: Run) -> None:
    """An assistant, asked over the web; some answers take a calculation."""
    place = Place("web", "bench")
    for number in range(1, TURNS + 1):
        said = (TextPart(words(QUESTION_TOKENS, number)),)
        turn_request = TurnRequest(
            agent=DENIZEN, place=place, sender=Sender(Author("1", "Ana"), ANA), parts=said, platform_id=f"q{number}"
        )
        answer = ModelAnswer(text=words(ANSWER_TOKENS, 1000 + number))
        is_tool_turn = number * TOOL_TURNS % TURNS < TOOL_TURNS
        call = ModelAnswer(
            text=words(60, 2000 + number),
            calls=[ModelCall("calculator", {"expression": f"{number} * 29"}, f"c{number}")],
        )
        await run.ask(number, turn_request, *([call] if is_tool_turn else []), answer)
        run.advance(run.pause_s)


async def take_part(run: Run) -> None:
    """A participant in a channel that others talk in, too."""
    ids = iter(range(1_000_000, 2_000_000))
    for number in range(BACKLOG):
        await _post(run, str(next(ids)), ("Ana", "Bob")[number % 2], words(BACKLOG_TOKENS, number))
    for number in range(1, TURNS + 1):
        for other in range(BETWEEN):
            await _post(run, str(next(ids)), "Bob", words(BACKLOG_TOKENS, 3000 + BETWEEN * number + other))
        post, text = str(next(ids)), words(QUESTION_TOKENS, number)
        await _post(run, post, "Ana", text)
        turn_request = TurnRequest(
            agent=ADA,
            place=CHANNEL,
            sender=Sender(Author("1", "Ana"), ANA),
            parts=(TextPart(text),),
            platform_id=post,
            shared=True,
            owed=ReplyTarget(ADA, post),
        )
        reply = await run.ask(number, turn_request, ModelAnswer(text=words(ANSWER_TOKENS, 1000 + number)))
        await _post(run, str(next(ids)), ADA, reply, answers=post)
        run.advance(run.pause_s)


async def _post(run: Run, post_id: str, name: str, text: str, *, answers: str = "") -> None:
    author = Author({"Ana": "1", "Bob": "2"}.get(name, "3"), name, is_bot=bool(answers))
    post = Post(CHANNEL.platform, post_id, CHANNEL.channel, author, text, run.clock.now(), guild="1", reply_to=answers)
    async with run.denizen.services.store.work() as work:
        await work.archive.put([post])


async def record(talk: Callable[[Run], Any], pause_s: float, *, model: str = "") -> Run:
    """The conversation in a home folder of its own."""
    cache, clock = PromptCache(), ManualClock()
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(model_server(cache=cache))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "denizen.yaml").write_text(CONFIG.format(url=server.url), encoding="utf-8")
        (folder / "secrets.env").write_text("CACHE_API_KEY=none-needed\n", encoding="utf-8")
        (folder / "secrets.env").chmod(0o600)
        denizen = await stack.enter_async_context(open_denizen(folder, OpenOptions(durable=False)))
        durable = MemoryDurable(MemoryLog())
        turns = TurnRunner(denizen.runtime, replace(denizen.services, clock=clock, durable=durable))
        denizen.services = replace(denizen.services, clock=clock, durable=durable)
        await durable.start()
        stack.push_async_callback(durable.aclose)
        run = Run(denizen, turns, server, clock=clock, cache=cache, pause_s=pause_s, model=model)
        await talk(run)
        return run


@dataclass(frozen=True)
class CacheCost:
    """`share` of the input tokens was read from the cache, from turn `WARM` on."""

    units: float
    share: float


def pay(
    sent: Sequence[SentRequest], change: Callable[[SentRequest], Mapping[str, Any]] = lambda each: each.body
) -> CacheCost:
    """Returns the cost of the requests after `change`."""
    cache = PromptCache()
    for each in sent:
        cache.now_s = each.at_s
        cache.take(each.api, change(each))
    warm = [bill for bill, each in zip(cache.bills, sent, strict=True) if each.turn >= WARM]
    return CacheCost(
        sum(bill.units for bill in cache.bills), sum(b.read for b in warm) / sum(b.input for b in warm) * 100
    )


def without_marks(each: SentRequest) -> Mapping[str, Any]:
    return _unmarked(each.body)


def time_first(each: SentRequest) -> Mapping[str, Any]:
    """As many do: the time at the beginning of the system prompt."""
    system = [{"type": "text", "text": f"The time is {each.at_s:.0f}."}, *each.body.get("system", ())]
    return {**each.body, "system": system}


def sliding(each: SentRequest) -> Mapping[str, Any]:
    """The newest messages only, beginning with one of the user's."""
    messages = each.body["messages"][-WINDOW:]
    while _is_result(messages[0]) or messages[0]["role"] != "user":
        messages = messages[1:]
    return {**each.body, "messages": messages}


def _is_result(message: Mapping[str, Any]) -> bool:
    content = message["content"]
    return not isinstance(content, str) and any(block["type"] == "tool_result" for block in content)


def _unmarked(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, Mapping):
        return {name: _unmarked(each) for name, each in value.items() if name != "cache_control"}
    return [_unmarked(each) for each in value] if isinstance(value, list) else value


NAIVE: Mapping[str, Callable[[SentRequest], Mapping[str, Any]]] = {
    "without marks": without_marks,
    "marks, but the time first": time_first,
    f"marks, but a window of {WINDOW} messages": sliding,
}


def figures() -> Iterator[Figure]:
    aims = {STEADY_S: 75_000.0, PAUSED_S: 85_000.0}
    for pause_s, how in ((STEADY_S, "steady"), (PAUSED_S, "pauses of 7 min")):
        run = anyio.run(record, talk_with_tools, pause_s)
        yield from _compare_costs(run, f"tools, {how}", aims[pause_s])
    for pause_s, how in ((STEADY_S, "steady"), (PAUSED_S, "pauses of 7 min")):
        yield from _compare_costs(anyio.run(record, take_part, pause_s), f"channel, {how}", None)
    for talk, name in ((talk_with_tools, "tools"), (take_part, "channel")):
        run = anyio.run(lambda talk=talk: record(talk, STEADY_S, model="plain"))
        yield _share(f"{name}, steady, OpenAI", pay(run.sent).share)


def _compare_costs(run: Run, name: str, aim: float | None) -> Iterator[Figure]:
    paid = pay(run.sent)
    yield _share(name, paid.share)
    yield Figure(f"  cost of {len(run.sent)} requests", paid.units, "units", aim=aim, note=_prompt(run.sent[0].body))
    for how, change in NAIVE.items():
        naive = pay(run.sent, change)
        yield Figure(f"  {how}", naive.units, "units", note=f"{naive.share:.0f} % read")


def _share(name: str, share: float) -> Figure:
    return Figure(f"{name}: read from the cache", share, "%", aim=95, more_is_better=True)


def _prompt(body: Mapping[str, Any]) -> str:
    fixed = [block.tokens for block in list_blocks(body) if block.section != "messages"]
    return f"system and tools {sum(fixed)} tokens"


def words(tokens: int, seed: int) -> str:
    """So many tokens of text, other for each seed."""
    return " ".join(f"{(seed * 31 + place * (seed + 7)) % 997:03d}" for place in range(tokens))


def main(*_: str) -> None:
    show(figures(), loop_ms=1.0)
