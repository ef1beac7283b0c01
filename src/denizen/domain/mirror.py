"""Changes to archived posts: renewing a known post, which posts get an embedding, and what is left of a forgotten one.
Pure.

Called by every store, so that all of them decide alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from denizen.domain.file_text import keep_file_texts
from denizen.domain.message import TextPart
from denizen.domain.room import Post, PostChanges, Room, is_newer

FORGOTTEN = (TextPart("[forgotten]"),)
"""The parts of a message in a session whose post was forgotten."""


MIN_WORDS = 3
MIN_SIGNS = 6
"""In place of words, for scripts that do not keep them apart."""

_FIRST_SIGN = "\u0e00"
"""From here on: Thai, Khmer, Chinese, Japanese, Korean and others of which a word may be a sentence."""


def plan_renewal(known: Post, given: Post) -> Post | None:
    """The post after `given` was told of it; None when that changes nothing.

    Of two edits the later stays, in whatever order they come. What was deleted stays deleted, since when it was first.
    """
    before, now = known.changes, given.changes
    is_known_later = before.edited_at is not None and (now.edited_at is None or before.edited_at > now.edited_at)
    changes = PostChanges(
        edited_at=before.edited_at if is_known_later else now.edited_at, deleted_at=before.deleted_at or now.deleted_at
    )
    told = known if is_known_later else given
    files = keep_file_texts(told.attachments, known.attachments)
    renewed = replace(told, changes=changes, attachments=files)
    return None if renewed == known else renewed


def says_something(words: Sequence[str]) -> bool:
    """Whether it is worth a vector. `words` are those of the post, as `line_words` gives them."""
    return len(words) >= MIN_WORDS or sum(sign >= _FIRST_SIGN for word in words for sign in word) >= MIN_SIGNS


def loses_embedding(known: Post, renewed: Post) -> bool:
    """Whether vectors that were made of `known` must not be found any more."""
    return renewed.changes.deleted_at is not None or (known.text, known.room) != (renewed.text, renewed.room)


def renew_room(known: Room, given: Room) -> Room:
    """As given; its newest post is the newer of the two, since rooms may be told of late."""
    if is_newer(known.latest_post, given.latest_post):
        return replace(given, latest_post=known.latest_post)
    return given
