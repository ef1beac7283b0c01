"""Moderating in somebody's name: what is done, and that nobody gets more than they could do themselves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from denizen.domain.errors import InvalidInput, NotAllowed, NotFound
from denizen.domain.json import Json
from denizen.testing.discord import DiscordPermission, SimMessage, SimUser
from denizen.testing.discord.state.channels import SimOverwrite
from tests.adapters.discord.account_fixture import AccountFixture
from tests.adapters.discord.actions.action_fixture import ActionRequest, RunAction, open_actions
from tests.adapters.discord.actions.ranked_members import (
    MODERATING,
    RUNNING,
    add_ranked_members,
    get_audit_reason,
    list_direct_texts,
    writes,
)

pytestmark = [pytest.mark.anyio, pytest.mark.proves("V-skill-moderation")]

P = DiscordPermission
AGAINST: list[tuple[str, DiscordPermission, dict[str, Json]]] = [
    ("warn_member", P.MODERATE_MEMBERS, {"reason": "spam"}),
    ("timeout_member", P.MODERATE_MEMBERS, {"until": "2099-01-01T00:00:00+00:00"}),
    ("end_timeout", P.MODERATE_MEMBERS, {}),
    ("kick_member", P.KICK_MEMBERS, {}),
    ("ban_member", P.BAN_MEMBERS, {}),
]


async def test_a_warning_reaches_its_member_once_and_says_who_gave_it(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, MODERATING, P(0))
    async with open_actions(sim) as act:
        done = await act(ActionRequest(crew.mo, key="call"), "warn_member", member="Ben", reason="no spam")
        await act(ActionRequest(crew.mo, key="call"), "warn_member", member="Ben", reason="no spam")
    assert done == {"id": str(sim.ben.id), "name": "ben", "told": True}
    assert list_direct_texts(sim, sim.ben) == ["You were warned in Harbour by Mo: no spam"]


async def test_a_warning_to_one_who_takes_no_direct_messages_says_so(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, MODERATING, P(0))
    sim.ben.accepts_dms = False
    async with open_actions(sim) as act:
        assert (await act(crew.mo, "warn_member", member="Ben", reason="no spam"))["told"] is False


async def test_a_time_out_ends_when_it_was_said_or_earlier(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, MODERATING, MODERATING)
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    async with open_actions(sim) as act:
        await act(crew.mo, "timeout_member", member=sim.ben.mention, until=until.isoformat(), reason="rest")
        assert sim.guild.members[sim.ben.id].timeout_until == until
        await act(crew.mo, "end_timeout", member=sim.ben.mention)
        assert sim.guild.members[sim.ben.id].timeout_until is None
    assert get_audit_reason(sim, "PATCH", "members") == f"Asked for by mo ({crew.mo.id})"


async def test_an_administrator_is_not_timed_out(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, MODERATING, MODERATING)
    crew.crew.permissions = P.ADMINISTRATOR
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="administrators"):
            await act(crew.mo, "timeout_member", member="Ben", until="2099-01-01T00:00:00+00:00")


async def test_who_is_kicked_is_gone_and_kicking_them_again_says_so(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, MODERATING, MODERATING)
    async with open_actions(sim) as act:
        await act(crew.mo, "kick_member", member=str(sim.ben.id), reason="bye")
        assert sim.ben.id not in sim.guild.members
        assert (await act(crew.mo, "kick_member", member=str(sim.ben.id)))["was_gone"] is True
    assert get_audit_reason(sim, "DELETE", "members") == f"Asked for by mo ({crew.mo.id}): bye"


async def test_a_ban_takes_what_was_written_and_holds_until_it_is_lifted(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, MODERATING, MODERATING)
    sim.world.say(sim.ben, sim.general, "buy this")
    kept = sim.say("no")
    async with open_actions(sim) as act:
        for _ in range(2):
            await act(crew.mo, "ban_member", member=str(sim.ben.id), delete_days=1, reason="spam")
        assert list(sim.guild.bans) == [sim.ben.id]
        assert sim.general.messages == [kept]
        bans = (await act(crew.mo, "list_bans"))["bans"]
        assert bans == [{"id": str(sim.ben.id), "name": "ben", "reason": f"Asked for by mo ({crew.mo.id}): spam"}]
        assert (await act(crew.mo, "unban_member", user="ben"))["id"] == str(sim.ben.id)
        assert not sim.guild.bans
        assert (await act(crew.mo, "unban_member", user=str(sim.ben.id)))["was_free"] is True


async def test_somebody_who_never_came_is_banned_by_id(sim: AccountFixture) -> None:
    crew, stranger = add_ranked_members(sim, MODERATING, MODERATING), sim.world.add_person("Dot")
    async with open_actions(sim) as act:
        await act(crew.mo, "ban_member", member=str(stranger.id))
    assert stranger.id in sim.guild.bans


async def test_a_rank_that_discord_does_not_tell_is_not_passed_over(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, MODERATING, MODERATING)
    async with open_actions(sim) as act:
        sim.discord.faults.fail("GET", rf"/members/{crew.cy.id}", status=403)
        with pytest.raises(NotAllowed):
            await act(crew.mo, "ban_member", member=str(crew.cy.id))
    assert not sim.guild.bans


@pytest.mark.parametrize(("name", "permission", "details"), AGAINST)
async def test_without_the_permission_nothing_is_done_to_anybody(
    sim: AccountFixture, name: str, permission: DiscordPermission, details: dict[str, Json]
) -> None:
    crew = add_ranked_members(sim, MODERATING & ~permission, MODERATING)
    async with open_actions(sim) as act:
        for asker in (crew.mo, sim.ben):
            with pytest.raises(NotAllowed, match="You may not"):
                await act(asker, name, member=sim.ben.mention, **details)
    assert writes(sim) == []


@pytest.mark.parametrize(("name", "permission", "details"), AGAINST[1:])
async def test_nothing_is_done_that_the_account_may_not(
    sim: AccountFixture, name: str, permission: DiscordPermission, details: dict[str, Json]
) -> None:
    add_ranked_members(sim, MODERATING, MODERATING & ~permission)
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="I may not"):
            await act(sim.ana, name, member="Ben", **details)
    assert writes(sim) == []


@pytest.mark.parametrize(("name", "permission", "details"), AGAINST)
async def test_nobody_acts_against_equals_or_betters_the_owner_the_account_or_themselves(
    sim: AccountFixture, name: str, permission: DiscordPermission, details: dict[str, Json]
) -> None:
    del permission
    crew = add_ranked_members(sim, MODERATING, MODERATING)
    peer = sim.world.add_person("Peer")
    sim.guild.join(peer, [crew.mods])
    async with open_actions(sim) as act:
        for target in (crew.cy, peer, sim.ana, sim.ada.user, crew.mo):
            with pytest.raises(NotAllowed) as caught:
                await act(crew.mo, name, member=target.mention, **details)
            assert caught.value.code in {"discord_rank", "discord_protected", "discord_yourself"}
    assert writes(sim) == []


@pytest.mark.parametrize(("name", "permission", "details"), AGAINST)
async def test_the_owner_does_not_get_the_account_to_act_against_its_betters(
    sim: AccountFixture, name: str, permission: DiscordPermission, details: dict[str, Json]
) -> None:
    del permission
    crew = add_ranked_members(sim, MODERATING, MODERATING)
    crew.captains.position, crew.own.position = crew.own.position, crew.captains.position
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="as high as mine"):
            await act(sim.ana, name, member=crew.cy.mention, **details)
    assert writes(sim) == []


async def test_only_moderators_are_told_about_warnings(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, MODERATING, P(0))
    async with open_actions(sim) as act:
        assert await act(crew.mo, "judge_member", member="Ben") == {"id": str(sim.ben.id), "name": "ben"}
        assert await act(crew.mo, "judge_member") == {}
        with pytest.raises(NotAllowed):
            await act(sim.ben, "judge_member", member="Ben")


# --- purges ----------------------------------------------------------------------------------------------------------


async def purge(act: RunAction, asker: SimUser, since: datetime | None = None, **details: Json) -> int:
    start = since or datetime(2020, 1, 1, tzinfo=UTC)
    chosen = await act(asker, "choose_messages", since=start.isoformat(), **details)
    done = await act(asker, "purge_messages", messages=chosen["messages"], channel=chosen["channel"])
    return int(str(done["deleted"]))


def post_texts(sim: AccountFixture, author: SimUser, *texts: str) -> list[SimMessage]:
    return [sim.world.say(author, sim.general, text) for text in texts]


async def test_the_newest_messages_are_purged_but_for_the_request_pins_and_what_the_account_said(
    sim: AccountFixture,
) -> None:
    crew = add_ranked_members(sim, MODERATING, MODERATING | P.READ_MESSAGE_HISTORY)
    post_texts(sim, sim.ben, "oldest", "pinned", "a", "b")
    sim.world.pin(sim.ana, sim.general.messages[1])
    sim.world.say(sim.ada.user, sim.general, "hi, I am Ada")
    post_texts(sim, crew.mo, "delete the last two")
    async with open_actions(sim) as act:
        assert await purge(act, crew.mo, count=3) == 3  # Discord's note about the pin, too
    left = [text for text in sim.general.texts if text]
    assert left == ["oldest", "pinned", "hi, I am Ada", "delete the last two"]


async def test_a_purge_can_be_about_one_author_or_about_words(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, MODERATING, MODERATING)
    post_texts(sim, sim.ben, "buy CHEAP boats", "hello", "cheap shots")
    post_texts(sim, crew.cy, "cheap boats are bad")
    async with open_actions(sim) as act:
        assert await purge(act, crew.mo, count=50, author="Ben", words="boats cheap") == 1
        assert sim.general.texts == ["hello", "cheap shots", "cheap boats are bad"]
        assert await purge(act, crew.mo, count=50, author=sim.ben.mention) == 2
        assert sim.general.texts == ["cheap boats are bad"]


async def test_messages_that_discord_would_not_delete_in_bulk_are_not_chosen(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, MODERATING, MODERATING)
    post_texts(sim, sim.ben, "old")
    async with open_actions(sim) as act:
        later = datetime.now(UTC) + timedelta(hours=1)
        assert await purge(act, crew.mo, since=later, count=5) == 0


async def test_a_purge_of_more_than_a_hundred_goes_in_packs_and_again_does_no_harm(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, MODERATING, MODERATING)
    post_texts(sim, sim.ben, *(str(each) for each in range(105)))
    async with open_actions(sim) as act:
        chosen = await act(crew.mo, "choose_messages", since="2020-01-01T00:00:00+00:00", count=101)
        for _ in range(2):
            done = await act(crew.mo, "purge_messages", messages=chosen["messages"], channel=chosen["channel"])
            assert done["deleted"] == 101
    assert sim.general.texts == ["0", "1", "2", "3"]


@pytest.mark.parametrize("missing", [P.MANAGE_MESSAGES, P.READ_MESSAGE_HISTORY])
async def test_a_purge_takes_the_right_of_both(sim: AccountFixture, missing: DiscordPermission) -> None:
    crew = add_ranked_members(sim, MODERATING, MODERATING)
    post_texts(sim, sim.ben, "stay")
    for user in (crew.mo, sim.ada.user):
        sim.general.overwrites[user.id] = SimOverwrite(user.id, 1, deny=missing)
        async with open_actions(sim) as act:
            for name, details in (
                ("choose_messages", {"since": "2020-01-01T00:00:00+00:00"}),
                ("purge_messages", {"messages": [str(sim.general.messages[0].id)], "channel": ""}),
            ):
                with pytest.raises(NotAllowed):
                    await act(crew.mo, name, **details)
        del sim.general.overwrites[user.id]
    assert sim.general.texts == ["stay"]


async def test_a_hidden_channel_is_neither_purged_nor_slowed(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, MODERATING | P.MANAGE_CHANNELS, MODERATING | RUNNING)
    cellar = sim.guild.add_channel("cellar", private_to=[sim.ada.user])
    said = sim.world.say(sim.ana, cellar, "secret")
    async with open_actions(sim) as act:
        for channel in ("cellar", cellar.mention):
            with pytest.raises(NotFound):
                await act(crew.mo, "choose_messages", since="2020-01-01T00:00:00+00:00", channel=channel)
            with pytest.raises(NotFound):
                await act(crew.mo, "purge_messages", messages=[str(said.id)], channel=channel)
            with pytest.raises(NotFound):
                await act(crew.mo, "set_slow_mode", seconds=5, channel=channel)
    assert cellar.texts == ["secret"]


async def test_slow_mode_is_set_in_channels_and_threads_by_who_manages_them(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.MANAGE_CHANNELS | P.MANAGE_THREADS, RUNNING)
    thread = sim.world.open_thread(sim.ben, sim.general, "talk")
    sim.guild.add_channel("decks", kind="category")
    async with open_actions(sim) as act:
        await act(crew.mo, "set_slow_mode", seconds=30)
        await act(crew.mo, "set_slow_mode", seconds=5, channel=thread.mention)
        assert (sim.general.settings.slowmode_s, thread.settings.slowmode_s) == (30, 5)
        with pytest.raises(InvalidInput, match="category"):
            await act(crew.mo, "set_slow_mode", seconds=30, channel="decks")
        with pytest.raises(NotAllowed, match="Manage Channels"):
            await act(sim.ben, "set_slow_mode", seconds=0)
