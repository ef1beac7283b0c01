"""Ranks and the handing out of permissions, on guilds at random, against Discord's rules written down once more."""

from __future__ import annotations

from random import Random
from typing import Any

import discord
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denizen.adapters.discord.actions.context import ActionContext, require_held
from denizen.domain.action import OnBehalfOf
from denizen.domain.conversation import Place
from denizen.domain.errors import NotAllowed
from denizen.domain.principal import Principal, PrincipalKind
from tests.adapters.discord.guild.random_guild import GUILD, ME, OWNER, ROLES, SEEDS, client_with, random_guild
from tests.memory_channel import enter_at_once

pytestmark = pytest.mark.proves("V-skill-moderation", "V-skill-server-management", "V-skill-user-management")

ADMINISTRATOR = discord.Permissions(administrator=True).value
SOME = [
    discord.Permissions(**{name: True}).value
    for name in ("kick_members", "ban_members", "manage_roles", "manage_channels", "mention_everyone")
]


def random_ranks(chance: Random) -> dict[str, Any]:
    """Roles may stand level, hold anything and belong to bots; nobody is in time-out."""
    payload = random_guild(chance)
    for role in payload["roles"]:
        is_everyone = int(role["id"]) == GUILD
        role["position"] = 0 if is_everyone else chance.randint(1, 4)
        role["managed"] = not is_everyone and chance.random() < 0.2
        role["permissions"] = str(
            ADMINISTRATOR if chance.random() < 0.1 else sum(bit for bit in SOME if chance.random() < 0.4)
        )
    for member in payload["members"]:
        member["communication_disabled_until"] = None
    return payload


def list_contexts(guild: discord.Guild, client: discord.Client) -> list[ActionContext]:
    """One for each member who may ask."""
    here = guild.text_channels[0] if guild.text_channels else guild.channels[0]
    warrant = OnBehalfOf(Principal(PrincipalKind.PLATFORM_USER, "discord:2", "x"), Place("discord", str(here.id)), "k")
    return [
        ActionContext(
            client=client,
            guild=guild,
            asker=each,
            me=guild.me,
            here=here,
            key="k",
            warrant=warrant,
            enter=enter_at_once,
        )
        for each in guild.members
        if each.id != ME
    ]


def is_allowed(check: Any, *given: Any) -> bool:
    try:
        check(*given)
    except NotAllowed:
        return False
    return True


class RankRules:
    """The rules, from the bare payload. Of roles that stand level the older one is higher."""

    def __init__(self, payload: dict[str, Any]) -> None:
        self.roles = {int(each["id"]): each for each in payload["roles"]}
        self.held = {int(each["user"]["id"]): [GUILD, *map(int, each["roles"])] for each in payload["members"]}

    def get_role_rank(self, role: int) -> tuple[int, int]:
        return self.roles[role]["position"], -role

    def rank(self, member: int) -> tuple[int, int]:
        return max(map(self.get_role_rank, self.held[member]))

    def may_act_against(self, asker: int, target: int) -> bool:
        if target in (OWNER, ME, asker):
            return False
        above = asker == OWNER or self.rank(asker) > self.rank(target)
        return above and self.rank(ME) > self.rank(target)

    def may_handle(self, asker: int, role: int) -> bool:
        if role == GUILD or self.roles[role]["managed"]:
            return False
        above = asker == OWNER or self.rank(asker) > self.get_role_rank(role)
        return above and self.rank(ME) > self.get_role_rank(role)

    def has_all(self, member: int, bits: int) -> bool:
        held = 0
        for role in self.held[member]:
            held |= int(self.roles[role]["permissions"])
        return member == OWNER or bool(held & ADMINISTRATOR) or not bits & ~held


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_who_may_be_acted_against_and_which_roles_may_be_handled_is_by_rank(seed: int) -> None:
    payload = random_ranks(Random(seed))
    client = client_with(payload)
    [guild] = client.guilds
    book = RankRules(payload)
    for context in list_contexts(guild, client):
        asker = context.asker.id
        for target in guild.members:
            assert is_allowed(context.require_above, target) == book.may_act_against(asker, target.id)
        for role in guild.roles:
            assert is_allowed(context.require_below, role) == book.may_handle(asker, role.id)


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.sets(st.sampled_from([*SOME, ADMINISTRATOR, 1 << 62])))
def test_nobody_hands_out_what_they_or_the_account_lack(seed: int, bits: set[int]) -> None:
    payload = random_ranks(Random(seed))
    client = client_with(payload)
    [guild] = client.guilds
    book, wanted = RankRules(payload), sum(bits)
    for context in list_contexts(guild, client):
        both = book.has_all(context.asker.id, wanted) and book.has_all(ME, wanted)
        assert is_allowed(require_held, context, discord.Permissions(wanted)) == both


def test_the_guilds_at_random_have_enough_of_everything() -> None:
    """Else the tests above would compare nothing with nothing."""
    outcomes: set[bool] = set()
    for seed in range(20):
        payload = random_ranks(Random(seed))
        book = RankRules(payload)
        people = [each for each in book.held if each != ME]
        outcomes |= {book.may_act_against(one, other) for one in people for other in people}
        outcomes |= {book.may_handle(one, role) for one in people for role in ROLES}
    assert outcomes == {True, False}
