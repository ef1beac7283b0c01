"""The context of one action, and the checks that keep it within what the asker and the account may both do.

Permissions are checked at the moment of the action: in discord.py's cache of the guild where it is complete,
otherwise by asking Discord. A member who cannot be found may do nothing. Errors name people, roles and channels by
mention: models read them, and names are chosen by members.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TypeAlias

import discord

from denizen.adapters.discord.client.application import menu_name
from denizen.adapters.discord.guild.audience import list_visible_rooms, parse_user_id
from denizen.adapters.discord.guild.members import find_member, require_live
from denizen.adapters.discord.messages.conversion import get_channel
from denizen.domain.action import OnBehalfOf
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound, Unavailable
from denizen.domain.ids import derive
from denizen.domain.record import record
from denizen.ports.channel import EnterRoom

GuildPlace: TypeAlias = discord.abc.GuildChannel | discord.Thread

# Discord rejects longer nonces.
_NONCE_CHARS = 25


@record
class ActionContext:
    """The guild in which an action was asked for, the member who asked, and the account as a member.

    `here` is the channel in which they asked. `key` identifies the action: it is the same when the action is
    retried. Messages are posted within `enter` of their place, so that they stand between the answers of the room.
    """

    client: discord.Client
    guild: discord.Guild
    asker: discord.Member
    me: discord.Member
    here: GuildPlace
    key: str
    warrant: OnBehalfOf
    enter: EnterRoom

    @property
    def nonce(self) -> str:
        """The nonce of the action's message. For some minutes Discord answers a repeated one with the first message."""
        return derive("n", self.key)[:_NONCE_CHARS]

    def sees(self, where: GuildPlace) -> bool:
        """Whether the asker sees a channel or thread.

        discord.py treats a private thread as visible as its channel. In fact only its members and those who manage
        threads see it, and only an account that manages threads is told who its members are.
        """
        if isinstance(where, discord.Thread) and where.parent is None:
            return False
        held = where.permissions_for(self.asker)
        if not held.view_channel:
            return False
        if not isinstance(where, discord.Thread) or not where.is_private() or where.id == self.here.id:
            return True
        inside = any(each.id == self.asker.id for each in where.members)
        return held.manage_threads or (inside and where.permissions_for(self.me).manage_threads)

    def both_may(self, permission: str, where: GuildPlace) -> bool:
        """Whether the asker and the account both hold the permission there."""
        return all(getattr(where.permissions_for(each), permission) for each in (self.asker, self.me))

    def require_writing(self, where: GuildPlace, *more: str) -> None:
        """Raises NotAllowed unless both may write there; `more` names further permissions such as `embed_links`."""
        is_thread = isinstance(where, discord.Thread)
        spoken = ("connect",) if isinstance(where, discord.VoiceChannel | discord.StageChannel) else ()
        for each in ("send_messages_in_threads" if is_thread else "send_messages", *spoken, *more):
            self.require(each, where)
        if isinstance(where, discord.Thread) and where.locked:
            self.require("manage_threads", where)

    async def require_open(self, where: GuildPlace) -> None:
        """Raises NotFound for a room that some reader of the answer cannot see."""
        if str(where.id) not in await list_visible_rooms(self.client, self.warrant.place, self.warrant.asker):
            raise NotFound(
                "What is said there cannot be told here: not everybody here can read it.",
                code="discord_not_for_all",
                fix="Ask in that channel.",
            )

    def require(self, permission: str, where: GuildPlace | None = None) -> None:
        """Raises NotAllowed unless both hold the permission there, or in the whole guild. `permission` is discord.py's
        name. A channel that the asker cannot see does not exist for them.
        """
        self.require_asker(permission, where)
        self.require_account(permission, where)

    def require_asker(self, permission: str, where: GuildPlace | None = None) -> None:
        """Like `require`, for a permission that only the asker needs."""
        _require(self.asker, "You", permission, where)

    def require_account(self, permission: str, where: GuildPlace | None = None) -> None:
        """Like `require`, for a permission that only the account needs."""
        _require(self.me, "I", permission, where)

    def require_above(self, target: discord.Member) -> None:
        """Raises NotAllowed unless both rank above the member. Nobody acts against an equal (Discord's own rule), the
        owner, the account or themselves.
        """
        if target.id in (self.guild.owner_id, self.me.id):
            raise NotAllowed("That cannot be done to the owner of the server, or to me.", code="discord_protected")
        if target.id == self.asker.id:
            raise NotAllowed("You cannot do that to yourself.", code="discord_yourself")
        if self.asker.id != self.guild.owner_id and target.top_role >= self.asker.top_role:
            raise NotAllowed(f"{target.mention} has a role as high as yours.", code="discord_rank")
        if target.top_role >= self.me.top_role:
            raise NotAllowed(f"{target.mention} has a role as high as mine.", code="discord_rank")

    def require_below(self, role: discord.Role) -> None:
        """Raises NotAllowed unless the role ranks below the highest role of both, and people can assign it."""
        if role.is_default() or role.managed:
            raise NotAllowed(f"{role.mention} belongs to Discord or to an integration.", code="discord_managed")
        if self.asker.id != self.guild.owner_id and role >= self.asker.top_role:
            raise NotAllowed(f"{role.mention} is as high as yours.", code="discord_rank")
        if role >= self.me.top_role:
            raise NotAllowed(f"{role.mention} is as high as mine.", code="discord_rank")

    def reason(self, why: str = "") -> str:
        """The text for the guild's audit log: who asked for the action."""
        text = f"Asked for by {self.asker} ({self.asker.id})" + (f": {' '.join(why.split())}" if why.strip() else "")
        return text[:500]


async def open_context(client: discord.Client, warrant: OnBehalfOf, *, key: str, enter: EnterRoom) -> ActionContext:
    """Builds the context. Raises NotAllowed outside of guilds and for strangers, Unavailable for an unknown guild."""
    if warrant.guild:  # the operator has written it down: the account is the asker, in a channel that it sees
        guild = client.get_guild(int(warrant.guild))
        if guild is None:
            message = "The account is not in that server at the moment."
            raise Unavailable(message, code="discord_no_guild", fix="Try again.")
        require_live(client, guild)
        rooms = [guild.system_channel, *guild.text_channels]
        room = next((each for each in rooms if each is not None and each.permissions_for(guild.me).view_channel), None)
        if room is None:
            raise NotAllowed("The account sees no channel of that server.", code="discord_not_visible")
        return ActionContext(
            client=client, guild=guild, asker=guild.me, me=guild.me, here=room, key=key, warrant=warrant, enter=enter
        )
    place = warrant.place.thread or warrant.place.channel
    user_id = parse_user_id(warrant.asker)
    here = await get_channel(client, int(place)) if place.isdecimal() else None
    if user_id is None or not isinstance(here, (discord.abc.GuildChannel, discord.Thread)):
        raise NotAllowed(
            "This works in channels of a server only, for its members.",
            code="discord_not_in_guild",
            fix="Ask in a channel of the server.",
        )
    guild = here.guild
    require_live(client, guild)
    asker = await find_member(client, guild, user_id)
    if asker is None:
        raise NotAllowed("I cannot see what you may do in this server.", code="discord_unknown_member")
    return ActionContext(
        client=client, guild=guild, asker=asker, me=guild.me, here=here, key=key, warrant=warrant, enter=enter
    )


def _require(member: discord.Member, who: str, permission: str, where: GuildPlace | None) -> None:
    held = where.permissions_for(member) if where is not None else member.guild_permissions
    if where is not None and not held.view_channel:
        raise NotAllowed(f"{who} cannot see that channel.", code="discord_not_visible")
    if not (getattr(held, permission) or held.administrator):
        name = menu_name(permission)
        raise NotAllowed(
            f"{who} may not do that here: it takes the permission '{name}'.",
            code="discord_not_permitted",
            fix="Ask somebody who has it." if who == "You" else f"Give the account's role '{name}'.",
        )


_BY_NAME = {
    words: name
    for name in discord.Permissions.VALID_FLAGS
    for words in (name.replace("_", " "), menu_name(name).casefold())
}


def read_permissions(names: Sequence[str]) -> discord.Permissions:
    """Parses permission names, as discord.py or Discord's menus write them. Raises InvalidInput for an unknown name."""
    found = discord.Permissions.none()
    for each in names:
        folded = " ".join(each.replace("_", " ").split()).casefold()
        name = _BY_NAME.get(folded)
        if name is None:
            near = difflib.get_close_matches(folded, _BY_NAME, n=3)
            raise InvalidInput(
                f"Discord has no permission '{each[:60]}'.",
                code="discord_no_permission",
                fix=f"Like it are: {', '.join(near)}." if near else "Use the name from Discord's menus.",
            )
        setattr(found, name, True)
    return found


def list_names(permissions: discord.Permissions) -> list[str]:
    """Returns the names of permissions as Discord's menus show them."""
    return sorted({menu_name(name) for name, granted in permissions if granted})


def require_held(context: ActionContext, wanted: discord.Permissions, where: GuildPlace | None = None) -> None:
    """Raises NotAllowed unless both hold all of these permissions there, or in the whole guild: nobody grants, takes or
    clears what they do not hold. Bits that this version of discord.py has no name for count as well.
    """
    for member, who in ((context.asker, "You"), (context.me, "I")):
        held = where.permissions_for(member) if where is not None else member.guild_permissions
        lacking = 0 if held.administrator else wanted.value & ~held.value
        if lacking:
            names = ", ".join(list_names(discord.Permissions(lacking))) or "one that is new"
            raise NotAllowed(
                f"{who} cannot give or take permissions that {'you' if who == 'You' else 'I'} do not have: {names}.",
                code="discord_not_yours_to_give",
                fix="Leave these out, or ask somebody who has them.",
            )


def require_administrators(context: ActionContext, what: str) -> None:
    """Raises NotAllowed unless both are administrators of the guild."""
    if not (context.asker.guild_permissions.administrator and context.me.guild_permissions.administrator):
        raise NotAllowed(f"Only administrators may {what}, and I must be one, too.", code="discord_not_permitted")
