"""Reactions, polls, threads and posts of forums in somebody's name, and what is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from denizen.domain.action import PlatformAction
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound
from denizen.domain.json import Json
from denizen.testing.discord import DiscordPermission, SimPollDraft
from denizen.testing.discord.state.channels import SimOverwrite
from tests.adapters.discord.account_fixture import AccountFixture, running
from tests.adapters.discord.actions.action_fixture import (
    ActionRequest,
    build_on_behalf_of,
    get_posted_message,
    open_actions,
    open_actions_and_listener,
)
from tests.memory_channel import enter_at_once

pytestmark = [pytest.mark.anyio, pytest.mark.proves("V-skill-discord")]

P = DiscordPermission


async def test_a_reaction_is_put_on_counted_and_taken_away(sim: AccountFixture) -> None:
    said = sim.say("pizza?")
    tide = sim.guild.add_emoji("tide")
    sim.world.react(sim.ana, said, "🍕")
    async with open_actions(sim) as act:
        for emoji in ("🍕", "tide"):
            await act(sim.ben, "add_reaction", message=str(said.id), emoji=emoji)
        counted = await act(sim.ben, "read_reactions", message=str(said.id))
        assert counted["reactions"] == {"🍕": 2, f"<:tide:{tide.id}>": 1}
        chosen = await act(sim.ben, "read_reactions", message=str(said.id), emoji="🍕")
        assert chosen["names"] in (["Ada", "Ana"], ["Ana", "Ada"])
        await act(sim.ben, "remove_reaction", message=str(said.id), emoji="tide")
        with pytest.raises(NotFound, match="no emoji"):
            await act(sim.ben, "add_reaction", message=str(said.id), emoji=":wave:")
    assert [(each.emoji.name, len(each.users)) for each in said.state.reactions] == [("🍕", 2)]


async def test_who_may_not_react_gets_no_new_reaction_but_may_join_one(sim: AccountFixture) -> None:
    quiet = sim.guild.add_channel("quiet", overwrites=[SimOverwrite(sim.ben.id, 1, deny=P.ADD_REACTIONS)])
    said = sim.world.say(sim.ana, quiet, "well")
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match=r"You may not.*'Add Reactions'"):
            await act(sim.ben, "add_reaction", message=str(said.id), emoji="🍕", channel="quiet")
        sim.world.react(sim.ana, said, "🍕")
        await act(sim.ben, "add_reaction", message=str(said.id), emoji="🍕", channel="quiet")
    assert len(said.state.reactions[0].users) == 2


async def test_what_not_everybody_here_may_read_is_not_read_out_here(sim: AccountFixture) -> None:
    office = sim.guild.add_channel("office", private_to=[sim.ana, sim.ada.user])
    said = sim.world.say(sim.ana, office, "raise for all?")
    sim.world.react(sim.ana, said, "🍕")
    polled = sim.world.say(sim.ana, office, poll=SimPollDraft("Raise?", ["yes", "no"]))
    async with open_actions(sim) as act:
        with pytest.raises(NotFound, match="not everybody here"):
            await act(sim.ana, "read_reactions", message=str(said.id), channel="office")
        with pytest.raises(NotFound, match="not everybody here"):
            await act(sim.ana, "read_poll", message=str(polled.id), channel="office")
        assert await act(ActionRequest(sim.ana, office), "read_reactions", message=str(said.id))


@pytest.mark.proves("V-skill-utility")
async def test_a_poll_is_asked_read_and_ended(sim: AccountFixture) -> None:
    async with open_actions(sim) as act:
        done = await act(
            ActionRequest(sim.ana, key="one"), "create_poll", question="Tea?", answers=["yes", "no"], hours=2
        )
        assert done == await act(
            ActionRequest(sim.ana, key="one"), "create_poll", question="Tea?", answers=["yes", "no"], hours=2
        )
        polled = get_posted_message(sim, done)
        assert polled.body.poll is not None
        assert timedelta(hours=1) < polled.body.poll.expiry - sim.world.store.clock.now() <= timedelta(hours=2)
        assert (polled.body.poll.question, [text for text, _ in polled.body.poll.answers]) == ("Tea?", ["yes", "no"])
        sim.world.vote(sim.ben, polled, 1)
        stands = await act(sim.ben, "read_poll", message=str(polled.id))
        assert (stands["answers"], stands["ended"]) == ([["yes", 1], ["no", 0]], False)
        with pytest.raises(NotAllowed):
            await act(sim.ben, "end_poll", message=str(polled.id))
        await act(sim.ana, "end_poll", message=str(polled.id))
        assert polled.body.poll.finalized
        assert (await act(sim.ben, "read_poll", message=str(polled.id)))["ended"] is True


async def test_a_poll_takes_the_right_to_make_one_and_a_form_that_discord_takes(sim: AccountFixture) -> None:
    quiet = sim.guild.add_channel("quiet", overwrites=[SimOverwrite(sim.ben.id, 1, deny=P.SEND_POLLS)])
    said = sim.say("no poll")
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match=r"You may not.*'Create Polls'"):
            await act(sim.ben, "create_poll", question="Tea?", answers=["yes"], channel="quiet")
        wrongs: list[dict[str, Json]] = [{"answers": []}, {"answers": ["x" * 56]}, {"answers": ["yes"], "hours": 0}]
        for wrong in wrongs:
            with pytest.raises(InvalidInput, match="cannot be a poll"):
                await act(sim.ben, "create_poll", question="Tea?", **wrong)
        with pytest.raises(InvalidInput, match="no poll"):
            await act(sim.ben, "read_poll", message=str(said.id))
    assert not sim.mine(quiet)


async def test_a_thread_is_opened_once_under_a_message_or_under_a_new_one(sim: AccountFixture) -> None:
    said = sim.say("lunch")
    async with open_actions(sim) as act:
        under = await act(sim.ben, "create_thread", name="Where to eat", message=str(said.id))
        assert under == await act(sim.ben, "create_thread", name="Where to eat", message=str(said.id))
        new = [
            await act(ActionRequest(sim.ben, key="one"), "create_thread", name="Dinner", text="And tonight?")
            for _ in "12"
        ]
        assert new[0] == new[1]
        with pytest.raises(InvalidInput, match="begins under a message"):
            await act(sim.ben, "create_thread", name="Nothing")
    threads = list(sim.guild.threads.values())
    assert [(each.id, each.name) for each in threads] == [
        (said.id, "Where to eat"),
        (get_posted_message(sim, new[0]).id, "Dinner"),
    ]
    assert [each.content for each in sim.mine()] == ["And tonight?"]


async def test_a_private_thread_lets_its_asker_in(sim: AccountFixture) -> None:
    async with open_actions(sim) as act:
        done = await act(sim.ben, "create_thread", name="Gift", text="For Ana", private=True)
    thread = sim.guild.threads[int(str(done["thread"]))]
    assert thread.thread is not None
    assert set(thread.thread.members) == {sim.ben.id, sim.ada.user.id}
    assert [each.content for each in sim.mine(thread)] == ["For Ana"]


async def test_who_may_open_no_threads_gets_none(sim: AccountFixture) -> None:
    quiet = sim.guild.add_channel("quiet", overwrites=[SimOverwrite(sim.ben.id, 1, deny=P.CREATE_PUBLIC_THREADS)])
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="'Create Public Threads'"):
            await act(sim.ben, "create_thread", name="Talk", text="hi", channel="quiet")
    assert not sim.mine(quiet)


async def test_a_thread_is_renamed_and_archived_by_its_owner_and_locked_by_who_manages_threads(
    sim: AccountFixture,
) -> None:
    sim.guild.set_roles(sim.ada.user, [sim.guild.add_role("keeper", permissions=P.MANAGE_THREADS)])
    thread = sim.world.open_thread(sim.ben, sim.general, "talk", text="hi")
    cleo = sim.world.add_person("Cleo")
    sim.guild.join(cleo)
    assert thread.thread is not None
    async with open_actions_and_listener(sim) as (act, heard):
        await act(sim.ben, "edit_thread", thread=str(thread.id), name="Better")
        with pytest.raises(NotAllowed, match="'Manage Threads'"):
            await act(cleo, "edit_thread", thread=str(thread.id), archived=True)
        with pytest.raises(NotAllowed, match="'Manage Threads'"):
            await act(sim.ben, "edit_thread", thread=str(thread.id), locked=True)
        await act(ActionRequest(sim.ben, thread), "edit_thread", archived=True)
        assert thread.thread.archived
        await act(sim.ben, "edit_thread", thread=str(thread.id), archived=False)
        await act(sim.ana, "edit_thread", thread=str(thread.id), locked=True)
        assert (thread.name, thread.thread.archived, thread.thread.locked) == ("Better", False, True)
        sim.say("so far")  # heard after all that came before it
        await heard.until(lambda: "so far" in heard.texts())
        with pytest.raises(NotAllowed, match="'Manage Threads'"):
            await act(sim.ben, "send_message", text="hi", channel=str(thread.id))


async def test_a_thread_that_was_locked_is_not_opened_or_renamed_again_by_its_owner(sim: AccountFixture) -> None:
    sim.guild.set_roles(sim.ada.user, [sim.guild.add_role("keeper", permissions=P.MANAGE_THREADS)])
    thread = sim.world.open_thread(sim.ben, sim.general, "talk", text="hi")
    assert thread.thread is not None
    async with open_actions_and_listener(sim) as (act, heard):
        await act(sim.ana, "edit_thread", thread=str(thread.id), locked=True, archived=True)
        sim.say("so far")
        await heard.until(lambda: "so far" in heard.texts())
        for change in ({"archived": False}, {"name": "mine"}):
            with pytest.raises(NotAllowed, match="'Manage Threads'"):
                await act(sim.ben, "edit_thread", thread=str(thread.id), **change)
    assert (thread.name, thread.thread.archived, thread.thread.locked) == ("talk", True, True)


async def test_somebody_is_added_to_a_thread_who_can_see_its_channel(sim: AccountFixture) -> None:
    crew = sim.guild.add_role("crew")
    sim.guild.set_roles(sim.ben, [crew])
    room = sim.guild.add_channel("room", private_to=[crew, sim.ada.user])
    thread = sim.world.open_thread(sim.ana, room, "talk", text="hi")
    cleo = sim.world.add_person("Cleo")
    sim.guild.join(cleo)
    assert thread.thread is not None
    async with open_actions(sim) as act:
        await act(sim.ana, "add_to_thread", thread="talk", member="Ben")
        with pytest.raises(NotAllowed, match=f"<@{cleo.id}> cannot see"):
            await act(sim.ana, "add_to_thread", thread="talk", member="Cleo")
        with pytest.raises(NotFound):
            await act(cleo, "add_to_thread", thread="talk", member="Cleo")
    assert sim.ben.id in thread.thread.members
    assert cleo.id not in thread.thread.members


async def test_without_the_members_intent_somebody_is_found_by_name_too(sim: AccountFixture) -> None:
    thread = sim.world.open_thread(sim.ana, sim.general, "talk", text="hi")
    async with running(sim, members_intent=False) as (account, _):
        action = PlatformAction("add_to_thread", {"thread": str(thread.id), "member": "ben"})
        await account.act(action, build_on_behalf_of(sim, sim.ana), enter=enter_at_once)
    assert thread.thread is not None
    assert sim.ben.id in thread.thread.members


async def test_a_post_stands_in_the_forum_once_with_its_tags(sim: AccountFixture) -> None:
    forum = sim.guild.add_channel("help", kind="forum", tags=["open", "bug"])
    plan: dict[str, Json] = {"channel": "help", "title": "It leaks", "text": "Under pier 3", "tags": ["Bug"]}
    async with open_actions(sim) as act:
        done = [await act(sim.ben, "create_forum_post", **plan) for _ in "12"]
        with pytest.raises(NotFound, match="no tag 'nope'"):
            await act(sim.ben, "create_forum_post", **{**plan, "tags": ["nope"]})
        with pytest.raises(InvalidInput, match="no forum"):
            await act(sim.ben, "create_forum_post", **{**plan, "channel": "general"})
    assert done[0] == done[1]
    (thread,) = sim.guild.threads.values()
    assert (thread.parent, thread.name) == (forum, "It leaks")
    assert thread.thread is not None
    assert thread.thread.tags == [forum.settings.tags[1].id]
    assert [each.content for each in sim.mine(thread)] == ["Under pier 3"]


async def test_who_may_not_post_in_a_forum_does_not(sim: AccountFixture) -> None:
    sim.guild.add_channel("help", kind="forum", overwrites=[SimOverwrite(sim.ben.id, 1, deny=P.SEND_MESSAGES)])
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="You may not"):
            await act(sim.ben, "create_forum_post", channel="help", title="Hi", text="there")
    assert not sim.guild.threads
