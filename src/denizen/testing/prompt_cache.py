"""A simulation of the vendors' prompt caches: which tokens of a request are read from the cache, which are written, and
what the request costs.

`model_server` bills requests with it, so that tests and benchmarks see the cost of real request bodies. Time moves only
by `advance`. A token is four bytes, rounded up for each block: good for comparisons, not for invoices.

Anthropic, as documented: a prompt is a row of blocks (tools, system, messages), and a change in one invalidates all
after it. The cache is written at cache marks only, and read at up to 20 blocks before a mark. An entry has at least
`least` tokens and lives five minutes or an hour from its last read. OpenAI: the longest prefix that was sent within ten
minutes, from 1024 tokens in steps of 128. For both, the model and its tools are part of the prompt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from denizen.testing.model_wire import AnswerTokens, JsonBody, ModelApi

LOOK_BACK = 20
MIN_CACHED_TOKENS = 1024
SHORT_S, LONG_S = 300.0, 3600.0
STEP, STEP_S = 128, 600.0
BYTES_PER_TOKEN = 4
SHORT_COST, LONG_COST, READ_COST = 1.25, 2.0, 0.1
_ENVELOPE = 8
"""Tokens that the vendor adds around a tool, a call or a result."""
_IMAGE = 1500


@dataclass(frozen=True, slots=True)
class CacheBill:
    """The input tokens of a request. `short` and `long` were written with a lifetime of five minutes and an hour."""

    fresh: int = 0
    read: int = 0
    short: int = 0
    long: int = 0

    @property
    def input(self) -> int:
        return self.fresh + self.read + self.short + self.long

    @property
    def units(self) -> float:
        """The cost, as a number of plain input tokens."""
        return self.fresh + READ_COST * self.read + SHORT_COST * self.short + LONG_COST * self.long

    def tokens(self, output: int) -> AnswerTokens:
        """Returns the token counts as a response reports them."""
        return AnswerTokens(self.input, output, self.read, self.short + self.long)


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """A block of a prompt as Anthropic counts it. `ttl` is set when it has a cache mark."""

    section: str
    role: str
    text: bytes
    tokens: int
    ttl: str = ""


@dataclass(slots=True)
class _Entry:
    ends_s: float
    kept_s: float


@dataclass(slots=True)
class PromptCache:
    """The cache of one account at a vendor. `bills` has the bill of each request, in order."""

    least: int = MIN_CACHED_TOKENS
    now_s: float = 0.0
    bills: list[CacheBill] = field(default_factory=list[CacheBill])
    _entries: dict[bytes, _Entry] = field(default_factory=dict[bytes, _Entry])

    def advance(self, seconds: float) -> None:
        self.now_s += seconds

    def take(self, api: ModelApi, body: JsonBody) -> CacheBill:
        """Bills the request and puts its prompt into the cache."""
        bill = self._take_marked(body) if api == "messages" else self._take_prefix(body)
        self.bills.append(bill)
        return bill

    def _take_marked(self, body: JsonBody) -> CacheBill:
        blocks = list_blocks(body)
        sums, digests = _sums(blocks), _digests(blocks, str(body.get("model")), body)
        marks = [place for place, block in enumerate(blocks) if block.ttl]
        found = -1
        for mark in reversed(marks):
            places = range(mark, max(-1, mark - LOOK_BACK), -1)
            found = max(found, next((place for place in places if self._read(digests[place])), -1))
        read = sums[found] if found >= 0 else 0
        written, end = {SHORT_S: 0, LONG_S: 0}, read
        for mark in (each for each in marks if sums[each] >= self.least):
            kept_s = LONG_S if blocks[mark].ttl == "1h" else SHORT_S
            if mark > found:
                written[kept_s] += sums[mark] - end
                end = sums[mark]
            self._write(digests[mark], kept_s)
        total = sums[-1] if sums else 0
        return CacheBill(total - end, read, written[SHORT_S], written[LONG_S])

    def _take_prefix(self, body: JsonBody) -> CacheBill:
        whole = _json([body.get("model"), body.get("tools"), body.get("messages", body.get("input"))])
        size, digest, digests = STEP * BYTES_PER_TOKEN, hashlib.sha256(), list[bytes]()
        for start in range(0, len(whole) - size + 1, size):
            digest.update(whole[start : start + size])
            digests.append(digest.digest())
        known = next((place for place, each in enumerate(digests) if not self._read(each)), len(digests))
        if len(digests) * STEP >= MIN_CACHED_TOKENS:
            for each in digests:
                self._write(each, STEP_S)
        read = known * STEP if known * STEP >= MIN_CACHED_TOKENS else 0
        return CacheBill(_tokens(whole) - read, read)

    def _read(self, digest: bytes) -> bool:
        entry = self._entries.get(digest)
        if entry is None or entry.ends_s <= self.now_s:
            return False
        entry.ends_s = self.now_s + entry.kept_s
        return True

    def _write(self, digest: bytes, kept_s: float) -> None:
        entry = self._entries.get(digest)
        if entry is None or entry.ends_s <= self.now_s or entry.kept_s < kept_s:
            self._entries[digest] = _Entry(self.now_s + kept_s, kept_s)


def list_blocks(body: JsonBody) -> list[PromptBlock]:
    """Returns the blocks of a request to Anthropic, in the order in which it is hashed."""
    return list(_blocks(body))


def _blocks(body: JsonBody) -> Iterator[PromptBlock]:
    for tool in _objects(body.get("tools")):
        yield _block("tools", "", tool)
    for each in _content(body.get("system")):
        yield _block("system", "", each)
    for message in _objects(body.get("messages")):
        for each in _content(message.get("content")):
            yield _block("messages", str(message.get("role")), each)


def _block(section: str, role: str, block: JsonBody) -> PromptBlock:
    bare = cast("JsonBody", _unmarked(block))
    marks = [block, *(_objects(block.get("content")) if block.get("type") == "tool_result" else [])]
    mark = next((cast("JsonBody", each["cache_control"]) for each in marks if each.get("cache_control")), None)
    tokens = _tokens(_json(bare)) + _ENVELOPE if section == "tools" else _count(bare)
    return PromptBlock(section, role, _json(bare), tokens, str(mark.get("ttl", "5m")) if mark else "")


def _count(block: JsonBody) -> int:
    match block.get("type"):
        case "text":
            return _tokens(str(block.get("text", "")).encode("utf-8", "replace"))
        case "image":
            return _IMAGE
        case "tool_use":
            return _tokens(str(block.get("name")).encode()) + _tokens(_json(block.get("input"))) + _ENVELOPE
        case "tool_result":
            return _ENVELOPE + sum(map(_count, _content(block.get("content"))))
        case _:
            return _tokens(_json(block))


def _sums(blocks: Sequence[PromptBlock]) -> list[int]:
    sums: list[int] = []
    for block in blocks:
        sums.append(block.tokens + (sums[-1] if sums else 0))
    return sums


def _digests(blocks: Sequence[PromptBlock], model: str, body: JsonBody) -> list[bytes]:
    """Returns a digest of the prompt up to the end of each block. The tool choice comes before the messages."""
    digest, section, digests = hashlib.sha256(model.encode()), "", list[bytes]()
    for block in blocks:
        if block.section != section:
            section = block.section
            digest.update(section.encode())
            digest.update(_json([body.get("tool_choice"), body.get("thinking")]) if section == "messages" else b"")
        digest.update(b"\x00" + block.role.encode() + b"\x00" + block.text)
        digests.append(digest.digest())
    return digests


def _unmarked(value: object) -> object:
    """Removes cache marks, since moving a mark does not change the prompt."""
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        return {name: _unmarked(each) for name, each in entries.items() if name != "cache_control"}
    if isinstance(value, list):
        return [_unmarked(each) for each in cast("list[object]", value)]
    return value


def _content(content: object) -> list[JsonBody]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return _objects(content)


def _objects(value: object) -> list[JsonBody]:
    return [cast("JsonBody", each) for each in cast("list[Any]", value)] if isinstance(value, list) else []


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def _tokens(text: bytes) -> int:
    return -(-len(text) // BYTES_PER_TOKEN)
