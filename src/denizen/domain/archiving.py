"""The policy of the archive: the operator's rules, people's own choices, and the decision about a post. Pure.

`mirror` says how a post that is kept changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta

from denizen.domain.record import record
from denizen.domain.room import Post, Room


@record
class OptOuts:
    """Whose posts are not kept, in the platform's ids. A channel counts for its threads too."""

    users: frozenset[str] = field(default_factory=frozenset[str])
    roles: frozenset[str] = field(default_factory=frozenset[str])
    channels: frozenset[str] = field(default_factory=frozenset[str])

    def __or__(self, other: OptOuts) -> OptOuts:
        return OptOuts(self.users | other.users, self.roles | other.roles, self.channels | other.channels)


@record
class ArchivePolicy:
    """`channels` limits a platform to the channels of these ids, with their threads; without any, every room is kept.
    `retention_days` 0 keeps for ever; `backfill_limit_per_room` 0 fetches everything. `embeddings` has vectors made of
    posts. `guild_days` is retention that guilds have chosen, by id, of which the shorter one counts. `post_links` holds
    the form of a post's address on each platform, with `{guild}`, `{room}` and `{post}`.
    """

    enabled: bool = True
    retention_days: int = 0
    backfill: bool = True
    backfill_limit_per_room: int = 10_000
    channels: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    embeddings: bool = True
    opt_outs: OptOuts = field(default_factory=OptOuts)
    post_links: Mapping[str, str] = field(default_factory=dict[str, str])
    guild_days: Mapping[str, int] = field(default_factory=dict[str, int])

    def horizon(self, now: datetime, guild: str = "") -> datetime | None:
        """Posts of that guild from before it are not kept. None without retention."""
        days = [each for each in (self.retention_days, self.guild_days.get(guild, 0)) if each]
        return now - timedelta(days=min(days)) if days else None

    def link_to(self, post: Post) -> str:
        """The address at which people can read a post; empty on a platform without such addresses."""
        template = self.post_links.get(post.platform, "")
        return template.format(guild=post.guild or "@me", room=post.room, post=post.id)


def keeps_room(room: Room, policy: ArchivePolicy, chosen: OptOuts) -> bool:
    """Whether posts of the room may be kept at all."""
    return _is_permitted(room.platform, {room.id, room.channel}, policy) and not _is_room_opted_out(
        room.id, room.parent, policy, chosen
    )


def keeps_post(
    post: Post, roles: frozenset[str] | None, policy: ArchivePolicy, chosen: OptOuts, *, now: datetime
) -> bool:
    """`chosen` is what people opted out of, beyond the policy. `roles` are the author's; None when they are unknown,
    which counts against keeping as soon as any role is opted out.
    """
    horizon = policy.horizon(now, post.guild)
    if not _is_permitted(post.platform, {post.room, post.parent}, policy) or (
        horizon is not None and post.created_at < horizon
    ):
        return False
    return not is_opted_out(post, roles, policy, chosen)


def is_opted_out(post: Post, roles: frozenset[str] | None, policy: ArchivePolicy, chosen: OptOuts) -> bool:
    """Whether its author or its room opted out."""
    if _is_room_opted_out(post.room, post.parent, policy, chosen):
        return True
    opted = policy.opt_outs | chosen
    if post.author.id in opted.users:
        return True
    if not opted.roles or not post.guild:  # roles exist in guilds only
        return False
    return roles is None or bool(roles & opted.roles)


def is_room_opted_out(room: Room, policy: ArchivePolicy, chosen: OptOuts) -> bool:
    return _is_room_opted_out(room.id, room.parent, policy, chosen)


def _is_permitted(platform: str, channels: set[str], policy: ArchivePolicy) -> bool:
    chosen = policy.channels.get(platform)
    return policy.enabled and (not chosen or not chosen.isdisjoint(channels))


def _is_room_opted_out(room: str, parent: str, policy: ArchivePolicy, chosen: OptOuts) -> bool:
    return not (policy.opt_outs.channels | chosen.channels).isdisjoint({room, parent})
