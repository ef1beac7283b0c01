"""What the archive does with a post that it knows already, and what is left of a message that was forgotten. Pure.

Called by every store, so that all of them decide alike.
"""

from __future__ import annotations

from dataclasses import replace

from denizen.domain.message import TextPart
from denizen.domain.room import Post, Room, is_newer

FORGOTTEN = (TextPart("[forgotten]"),)
"""The parts of a message in a session whose post was forgotten."""


def plan_renewal(known: Post, given: Post) -> Post | None:
    """The post after `given` was told of it; None when that changes nothing.

    Of two edits the later stays, in whatever order they come. What was deleted stays deleted, since when it was first.
    """
    deleted_at = known.deleted_at or given.deleted_at
    renewed = replace(known if _is_edited_later(known, given) else given, deleted_at=deleted_at)
    return None if renewed == known else renewed


def renew_room(known: Room, given: Room) -> Room:
    """As given; its newest post is the newer of the two, since rooms may be told of late."""
    if is_newer(known.latest_post, given.latest_post):
        return replace(given, latest_post=known.latest_post)
    return given


def _is_edited_later(known: Post, given: Post) -> bool:
    return known.edited_at is not None and (given.edited_at is None or known.edited_at > given.edited_at)
