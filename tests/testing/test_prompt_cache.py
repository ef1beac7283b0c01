"""The rules of the vendors' prompt caches, as the local model server bills them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from denizen.testing.model_checks import check_request
from denizen.testing.prompt_cache import CacheBill, PromptCache, list_blocks

Body = dict[str, Any]


def text(tokens: int, letter: str = "x", ttl: str = "") -> Body:
    block: Body = {"type": "text", "text": letter * 4 * tokens}
    return block | ({"cache_control": {"type": "ephemeral", "ttl": ttl}} if ttl else {})


def body(*said: Body, system: tuple[Body, ...] = (), **more: object) -> Body:
    return {
        "model": "claude",
        "max_tokens": 100,
        "system": list(system),
        "messages": [{"role": "user", "content": list(said)}],
        **more,
    }


def bill(cache: PromptCache, request: Mapping[str, Any]) -> CacheBill:
    return cache.take("messages", request)


def test_what_was_written_at_a_mark_is_read_from_there() -> None:
    cache = PromptCache()
    assert bill(cache, body(text(1100, ttl="5m"), text(10, "y"))) == CacheBill(fresh=10, short=1100)
    assert bill(cache, body(text(1100, ttl="5m"), text(20, "z"))) == CacheBill(fresh=20, read=1100)
    assert bill(cache, body(text(1100), text(10, "y"))) == CacheBill(fresh=1110)
    assert cache.bills[1].units == 20 + 110
    assert cache.bills[1].tokens(7).cache_read == 1100


def test_a_longer_conversation_finds_what_a_shorter_one_wrote() -> None:
    cache = PromptCache()
    bill(cache, body(text(1100, ttl="5m")))
    assert bill(cache, body(text(1100), text(10, "y", "5m"))) == CacheBill(read=1100, short=10)


def test_a_cached_prompt_is_looked_for_at_most_twenty_blocks_before_a_mark() -> None:
    def found(blocks_between: int) -> int:
        cache = PromptCache()
        bill(cache, body(text(1100, ttl="5m")))
        between = [text(1, "y") for _ in range(blocks_between)]
        return bill(cache, body(text(1100), *between, text(1, "z", "5m"))).read

    assert (found(18), found(19)) == (1100, 0)


@pytest.mark.parametrize("change", ["tools", "system", "tool_choice", "model"])
def test_what_changes_changes_all_behind_it(change: str) -> None:
    other: Body = {
        "tools": [{"name": "look"}],
        "system": [text(1, "s")],
        "tool_choice": {"type": "none"},
        "model": "other",
    }
    cache = PromptCache()
    bill(cache, body(text(1100, ttl="5m")))
    assert bill(cache, body(text(1100, ttl="5m")) | {change: other[change]}).read == 0


def test_how_tools_may_be_chosen_does_not_touch_the_system_prompt() -> None:
    cache = PromptCache()
    system = (text(1100, ttl="1h"),)
    assert bill(cache, body(text(5), system=system)).long == 1100
    assert bill(cache, body(text(5), system=system, tool_choice={"type": "none"})).read == 1100


def test_short_prompts_are_not_kept() -> None:
    cache = PromptCache()
    assert bill(cache, body(text(1023, ttl="5m"))) == CacheBill(fresh=1023)
    assert bill(cache, body(text(1023, ttl="5m"))) == CacheBill(fresh=1023)


@pytest.mark.parametrize(("ttl", "kept_s"), [("5m", 300), ("1h", 3600)])
def test_a_cached_prompt_is_kept_for_its_time_from_the_last_read_on(ttl: str, kept_s: int) -> None:
    cache = PromptCache()
    request = body(text(1100, ttl=ttl))
    bill(cache, request)
    for _ in range(2):
        cache.advance(kept_s - 1)
        assert bill(cache, request).read == 1100
    cache.advance(kept_s)
    assert bill(cache, request).read == 0


def test_an_hour_behind_five_minutes_and_a_fifth_mark_are_refused() -> None:
    assert "must not come after" in check_request("messages", body(text(5, ttl="5m"), text(5, ttl="1h")))
    assert check_request("messages", body(text(5, ttl="1h"), text(5, ttl="5m"))) == ""
    assert "maximum of 4" in check_request("messages", body(*[text(5, ttl="5m")] * 5))


def test_a_mark_within_a_result_counts_for_the_result() -> None:
    result = {"type": "tool_result", "tool_use_id": "a", "content": [text(5, ttl="5m")]}
    (block,) = list_blocks(body(result))
    assert (block.ttl, block.tokens) == ("5m", 13)


def test_openai_reads_the_longest_known_beginning_in_steps() -> None:
    cache = PromptCache()

    def read(words: str) -> int:
        return cache.take("chat", {"model": "gpt", "messages": [{"role": "user", "content": words}]}).read

    assert read("x" * 8000) == 0
    known = read("x" * 8000 + "y" * 100)
    assert 1900 < known <= 2000
    assert known % 128 == 0
    assert read("z" + "x" * 8000) == 0
    cache.advance(600)
    assert read("x" * 8000) == 0
    assert cache.take("chat", {"model": "gpt", "messages": []}).read == 0
