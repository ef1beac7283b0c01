"""Moderating in somebody's name: what is done, and that nobody gets more than they could do themselves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from denizen.domain.errors import InvalidInput, NotAllowed, NotFound
from denizen.domain.json import Json
from denizen.testing.discord import DiscordPermission, SimMessage, SimUser
from denizen.testing.discord.state.channels import SimOverwrite
from tests.adapters.discord.acting import Act, Asked, deck
from tests.adapters.discord.listening import Harbour
from tests.adapters.discord.rights import MODERATING, RUNNING, muster, reason_of, texts_to, writes

pytestmark = [pytest.mark.anyio, pytest.mark.proves("V-skill-moderation")]

P = DiscordPermission
AGAINST: list[tuple[str, DiscordPermission, dict[str, Json]]] = [
    ("warn_member", P.MODERATE_MEMBERS, {"reason": "spam"}),
    ("timeout_member", P.MODERATE_MEMBERS, {"until": "2099-01-01T00:00:00+00:00"}),
    ("end_timeout", P.MODERATE_MEMBERS, {}),
    ("kick_member", P.KICK_MEMBERS, {}),
    ("ban_member", P.BAN_MEMBERS, {}),
]


async def test_a_warning_reaches_its_member_once_and_says_who_gave_it(harbour: Harbour) -> None:
    crew = muster(harbour, MODERATING, P(0))
    async with deck(harbour) as act:
        done = await act(Asked(crew.mo, key="call"), "warn_member", member="Ben", reason="no spam")
        await act(Asked(crew.mo, key="call"), "warn_member", member="Ben", reason="no spam")
    assert done == {"id": str(harbour.ben.id), "name": "ben", "told": True}
    assert texts_to(harbour, harbour.ben) == ["You were warned in Harbour by Mo: no spam"]


async def test_a_warning_to_one_who_takes_no_direct_messages_says_so(harbour: Harbour) -> None:
    crew = muster(harbour, MODERATING, P(0))
    harbour.ben.accepts_dms = False
    async with deck(harbour) as act:
        assert (await act(crew.mo, "warn_member", member="Ben", reason="no spam"))["told"] is False


async def test_a_time_out_ends_when_it_was_said_or_earlier(harbour: Harbour) -> None:
    crew = muster(harbour, MODERATING, MODERATING)
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    async with deck(harbour) as act:
        await act(crew.mo, "timeout_member", member=harbour.ben.mention, until=until.isoformat(), reason="rest")
        assert harbour.guild.members[harbour.ben.id].timeout_until == until
        await act(crew.mo, "end_timeout", member=harbour.ben.mention)
        assert harbour.guild.members[harbour.ben.id].timeout_until is None
    assert reason_of(harbour, "PATCH", "members") == f"Asked for by mo ({crew.mo.id})"


async def test_an_administrator_is_not_timed_out(harbour: Harbour) -> None:
    crew = muster(harbour, MODERATING, MODERATING)
    crew.crew.permissions = P.ADMINISTRATOR
    async with deck(harbour) as act:
        with pytest.raises(NotAllowed, match="administrators"):
            await act(crew.mo, "timeout_member", member="Ben", until="2099-01-01T00:00:00+00:00")


async def test_who_is_kicked_is_gone_and_kicking_them_again_says_so(harbour: Harbour) -> None:
    crew = muster(harbour, MODERATING, MODERATING)
    async with deck(harbour) as act:
        await act(crew.mo, "kick_member", member=str(harbour.ben.id), reason="bye")
        assert harbour.ben.id not in harbour.guild.members
        assert (await act(crew.mo, "kick_member", member=str(harbour.ben.id)))["was_gone"] is True
    assert reason_of(harbour, "DELETE", "members") == f"Asked for by mo ({crew.mo.id}): bye"


async def test_a_ban_takes_what_was_written_and_holds_until_it_is_lifted(harbour: Harbour) -> None:
    crew = muster(harbour, MODERATING, MODERATING)
    harbour.world.say(harbour.ben, harbour.general, "buy this")
    kept = harbour.say("no")
    async with deck(harbour) as act:
        for _ in range(2):
            await act(crew.mo, "ban_member", member=str(harbour.ben.id), delete_days=1, reason="spam")
        assert list(harbour.guild.bans) == [harbour.ben.id]
        assert harbour.general.messages == [kept]
        bans = (await act(crew.mo, "list_bans"))["bans"]
        assert bans == [{"id": str(harbour.ben.id), "name": "ben", "reason": f"Asked for by mo ({crew.mo.id}): spam"}]
        assert (await act(crew.mo, "unban_member", user="ben"))["id"] == str(harbour.ben.id)
        assert not harbour.guild.bans
        assert (await act(crew.mo, "unban_member", user=str(harbour.ben.id)))["was_free"] is True


async def test_somebody_who_never_came_is_banned_by_id(harbour: Harbour) -> None:
    crew, stranger = muster(harbour, MODERATING, MODERATING), harbour.world.add_person("Dot")
    async with deck(harbour) as act:
        await act(crew.mo, "ban_member", member=str(stranger.id))
    assert stranger.id in harbour.guild.bans


async def test_a_rank_that_discord_does_not_tell_is_not_passed_over(harbour: Harbour) -> None:
    crew = muster(harbour, MODERATING, MODERATING)
    async with deck(harbour) as act:
        harbour.discord.faults.fail("GET", rf"/members/{crew.cy.id}", status=403)
        with pytest.raises(NotAllowed):
            await act(crew.mo, "ban_member", member=str(crew.cy.id))
    assert not harbour.guild.bans


@pytest.mark.parametrize(("name", "permission", "details"), AGAINST)
async def test_without_the_permission_nothing_is_done_to_anybody(
    harbour: Harbour, name: str, permission: DiscordPermission, details: dict[str, Json]
) -> None:
    crew = muster(harbour, MODERATING & ~permission, MODERATING)
    async with deck(harbour) as act:
        for asker in (crew.mo, harbour.ben):
            with pytest.raises(NotAllowed, match="You may not"):
                await act(asker, name, member=harbour.ben.mention, **details)
    assert writes(harbour) == []


@pytest.mark.parametrize(("name", "permission", "details"), AGAINST[1:])
async def test_nothing_is_done_that_the_account_may_not(
    harbour: Harbour, name: str, permission: DiscordPermission, details: dict[str, Json]
) -> None:
    muster(harbour, MODERATING, MODERATING & ~permission)
    async with deck(harbour) as act:
        with pytest.raises(NotAllowed, match="I may not"):
            await act(harbour.ana, name, member="Ben", **details)
    assert writes(harbour) == []


@pytest.mark.parametrize(("name", "permission", "details"), AGAINST)
async def test_nobody_acts_against_equals_or_betters_the_owner_the_account_or_themselves(
    harbour: Harbour, name: str, permission: DiscordPermission, details: dict[str, Json]
) -> None:
    del permission
    crew = muster(harbour, MODERATING, MODERATING)
    peer = harbour.world.add_person("Peer")
    harbour.guild.join(peer, [crew.mods])
    async with deck(harbour) as act:
        for target in (crew.cy, peer, harbour.ana, harbour.ada.user, crew.mo):
            with pytest.raises(NotAllowed) as caught:
                await act(crew.mo, name, member=target.mention, **details)
            assert caught.value.code in {"discord_rank", "discord_protected", "discord_yourself"}
    assert writes(harbour) == []


@pytest.mark.parametrize(("name", "permission", "details"), AGAINST)
async def test_the_owner_does_not_get_the_account_to_act_against_its_betters(
    harbour: Harbour, name: str, permission: DiscordPermission, details: dict[str, Json]
) -> None:
    del permission
    crew = muster(harbour, MODERATING, MODERATING)
    crew.captains.position, crew.own.position = crew.own.position, crew.captains.position
    async with deck(harbour) as act:
        with pytest.raises(NotAllowed, match="as high as mine"):
            await act(harbour.ana, name, member=crew.cy.mention, **details)
    assert writes(harbour) == []


async def test_only_moderators_are_told_about_warnings(harbour: Harbour) -> None:
    crew = muster(harbour, MODERATING, P(0))
    async with deck(harbour) as act:
        assert await act(crew.mo, "judge_member", member="Ben") == {"id": str(harbour.ben.id), "name": "ben"}
        assert await act(crew.mo, "judge_member") == {}
        with pytest.raises(NotAllowed):
            await act(harbour.ben, "judge_member", member="Ben")


# --- purges ----------------------------------------------------------------------------------------------------------


async def purge(act: Act, asker: SimUser, since: datetime | None = None, **details: Json) -> int:
    start = since or datetime(2020, 1, 1, tzinfo=UTC)
    chosen = await act(asker, "choose_messages", since=start.isoformat(), **details)
    done = await act(asker, "purge_messages", messages=chosen["messages"], channel=chosen["channel"])
    return int(str(done["deleted"]))


def chatter(harbour: Harbour, author: SimUser, *texts: str) -> list[SimMessage]:
    return [harbour.world.say(author, harbour.general, text) for text in texts]


async def test_the_newest_messages_are_purged_but_for_the_request_pins_and_what_the_account_said(
    harbour: Harbour,
) -> None:
    crew = muster(harbour, MODERATING, MODERATING | P.READ_MESSAGE_HISTORY)
    chatter(harbour, harbour.ben, "oldest", "pinned", "a", "b")
    harbour.world.pin(harbour.ana, harbour.general.messages[1])
    harbour.world.say(harbour.ada.user, harbour.general, "hi, I am Ada")
    chatter(harbour, crew.mo, "delete the last two")
    async with deck(harbour) as act:
        assert await purge(act, crew.mo, count=3) == 3  # Discord's note about the pin, too
    left = [text for text in harbour.general.texts if text]
    assert left == ["oldest", "pinned", "hi, I am Ada", "delete the last two"]


async def test_a_purge_can_be_about_one_author_or_about_words(harbour: Harbour) -> None:
    crew = muster(harbour, MODERATING, MODERATING)
    chatter(harbour, harbour.ben, "buy CHEAP boats", "hello", "cheap shots")
    chatter(harbour, crew.cy, "cheap boats are bad")
    async with deck(harbour) as act:
        assert await purge(act, crew.mo, count=50, author="Ben", words="boats cheap") == 1
        assert harbour.general.texts == ["hello", "cheap shots", "cheap boats are bad"]
        assert await purge(act, crew.mo, count=50, author=harbour.ben.mention) == 2
        assert harbour.general.texts == ["cheap boats are bad"]


async def test_messages_that_discord_would_not_delete_in_bulk_are_not_chosen(harbour: Harbour) -> None:
    crew = muster(harbour, MODERATING, MODERATING)
    chatter(harbour, harbour.ben, "old")
    async with deck(harbour) as act:
        later = datetime.now(UTC) + timedelta(hours=1)
        assert await purge(act, crew.mo, since=later, count=5) == 0


async def test_a_purge_of_more_than_a_hundred_goes_in_packs_and_again_does_no_harm(harbour: Harbour) -> None:
    crew = muster(harbour, MODERATING, MODERATING)
    chatter(harbour, harbour.ben, *(str(each) for each in range(105)))
    async with deck(harbour) as act:
        chosen = await act(crew.mo, "choose_messages", since="2020-01-01T00:00:00+00:00", count=101)
        for _ in range(2):
            done = await act(crew.mo, "purge_messages", messages=chosen["messages"], channel=chosen["channel"])
            assert done["deleted"] == 101
    assert harbour.general.texts == ["0", "1", "2", "3"]


@pytest.mark.parametrize("missing", [P.MANAGE_MESSAGES, P.READ_MESSAGE_HISTORY])
async def test_a_purge_takes_the_right_of_both(harbour: Harbour, missing: DiscordPermission) -> None:
    crew = muster(harbour, MODERATING, MODERATING)
    chatter(harbour, harbour.ben, "stay")
    for user in (crew.mo, harbour.ada.user):
        harbour.general.overwrites[user.id] = SimOverwrite(user.id, 1, deny=missing)
        async with deck(harbour) as act:
            for name, details in (
                ("choose_messages", {"since": "2020-01-01T00:00:00+00:00"}),
                ("purge_messages", {"messages": [str(harbour.general.messages[0].id)], "channel": ""}),
            ):
                with pytest.raises(NotAllowed):
                    await act(crew.mo, name, **details)
        del harbour.general.overwrites[user.id]
    assert harbour.general.texts == ["stay"]


async def test_a_hidden_channel_is_neither_purged_nor_slowed(harbour: Harbour) -> None:
    crew = muster(harbour, MODERATING | P.MANAGE_CHANNELS, MODERATING | RUNNING)
    cellar = harbour.guild.add_channel("cellar", private_to=[harbour.ada.user])
    said = harbour.world.say(harbour.ana, cellar, "secret")
    async with deck(harbour) as act:
        for channel in ("cellar", cellar.mention):
            with pytest.raises(NotFound):
                await act(crew.mo, "choose_messages", since="2020-01-01T00:00:00+00:00", channel=channel)
            with pytest.raises(NotFound):
                await act(crew.mo, "purge_messages", messages=[str(said.id)], channel=channel)
            with pytest.raises(NotFound):
                await act(crew.mo, "set_slow_mode", seconds=5, channel=channel)
    assert cellar.texts == ["secret"]


async def test_slow_mode_is_set_in_channels_and_threads_by_who_manages_them(harbour: Harbour) -> None:
    crew = muster(harbour, P.MANAGE_CHANNELS | P.MANAGE_THREADS, RUNNING)
    thread = harbour.world.open_thread(harbour.ben, harbour.general, "talk")
    harbour.guild.add_channel("decks", kind="category")
    async with deck(harbour) as act:
        await act(crew.mo, "set_slow_mode", seconds=30)
        await act(crew.mo, "set_slow_mode", seconds=5, channel=thread.mention)
        assert (harbour.general.slowmode_s, thread.slowmode_s) == (30, 5)
        with pytest.raises(InvalidInput, match="category"):
            await act(crew.mo, "set_slow_mode", seconds=30, channel="decks")
        with pytest.raises(NotAllowed, match="Manage Channels"):
            await act(harbour.ben, "set_slow_mode", seconds=0)
