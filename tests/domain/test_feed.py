"""How items of feeds read as posts, and when a feed is read again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.feed import (
    MAX_POST_CHARS,
    POLL_EVERY,
    FeedFormat,
    FeedItem,
    FeedPoll,
    choose_items,
    escape_markup,
    item_id,
    write_item,
)
from tests.clock import NOON

ITEM = FeedItem(key="1", title="A *new* thing", url="https://example.org/1", text="Hello @everyone\n# [here](http://x)")


def test_a_compact_post_is_the_title_and_a_link_that_shows_no_preview() -> None:
    assert write_item(ITEM, FeedFormat.COMPACT, "News").text == "A \\*new\\* thing\n<https://example.org/1>"


def test_a_full_post_has_title_link_and_text_of_which_nothing_is_markup_or_a_ping() -> None:
    assert write_item(ITEM, FeedFormat.FULL, "News").text == (
        "**A \\*new\\* thing**\n<https://example.org/1>\n"
        "Hello @\N{ZERO WIDTH SPACE}everyone\n\\# \\[here\\](http:/\N{ZERO WIDTH SPACE}/x)"
    )


def test_an_embed_has_the_title_as_a_link_and_the_beginning_of_the_text() -> None:
    content = write_item(FeedItem(key="1", title="T", url="https://a.b/", text="x" * 999), FeedFormat.EMBED, "News")
    [card] = content.embeds
    assert (card.title, card.url) == ("T", "https://a.b/")
    assert card.text == "x" * 349 + "…"
    assert content.text == "-# News"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://a.b/<@1>", "https://a.b/ c", "file:///etc/passwd", ""])
def test_what_is_no_plain_web_address_is_not_linked(url: str) -> None:
    item = FeedItem(key="1", title="T", url=url)
    assert write_item(item, FeedFormat.COMPACT, "News").text == "T"
    assert write_item(item, FeedFormat.EMBED, "News").embeds[0].url == ""


@given(title=st.text(), text=st.text(max_size=5000), url=st.text(), feed=st.text(), kind=st.sampled_from(FeedFormat))
def test_no_post_is_longer_than_discord_takes_or_pings(
    title: str, text: str, url: str, feed: str, kind: FeedFormat
) -> None:
    content = write_item(FeedItem(key="1", title=title, url=url, text=text + "@here <@1>"), kind, feed)
    assert len(content.text) <= MAX_POST_CHARS
    assert not content.ping_users
    shown = content.text + "".join(card.title + card.text for card in content.embeds)
    assert "@here" not in shown
    assert "<@1" not in shown.replace("\\<", "")
    assert all(len(card.title) <= 256 for card in content.embeds)


def test_ordinary_text_stays_as_it_is() -> None:
    assert escape_markup("Version 1.2-rc1 costs 5 + 3 EUR, see a/b") == "Version 1.2-rc1 costs 5 + 3 EUR, see a/b"


def test_unseen_items_are_chosen_the_oldest_first_and_each_once() -> None:
    items = [FeedItem(key=key, title=key) for key in ("3", "2", "2", "1")]
    assert [each.key for each in choose_items(items, {item_id("f", "1")}, "f")] == ["2", "3"]
    assert [each.key for each in choose_items(items, {item_id("g", "1")}, "f")] == ["1", "2", "3"]


def test_a_feed_is_read_every_five_minutes_and_ever_less_often_while_it_fails() -> None:
    waits = [FeedPoll(polled_at=NOON, failures=failures).next_at - NOON for failures in (0, 1, 2, 3, 50)]
    minutes = timedelta(minutes=1)
    assert waits == [5 * minutes, 10 * minutes, 20 * minutes, 40 * minutes, timedelta(days=1)]
    assert min(waits) == POLL_EVERY
