"""Reactions, polls, threads and posts of forums in somebody's name, and what is refused."""

from __future__ import annotations

import pytest

from denizen.domain.action import Action
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound
from denizen.domain.json import Json
from denizen.testing.discord import DiscordPermission, SimPollDraft
from denizen.testing.discord.state.channels import SimOverwrite
from tests.adapters.discord.acting import Asked, deck, deck_heard, message_of, warrant_of
from tests.adapters.discord.listening import Harbour, running

pytestmark = [pytest.mark.anyio, pytest.mark.proves("V-skill-discord")]

P = DiscordPermission


async def test_a_reaction_is_put_on_counted_and_taken_away(harbour: Harbour) -> None:
    said = harbour.say("pizza?")
    tide = harbour.guild.add_emoji("tide")
    harbour.world.react(harbour.ana, said, "🍕")
    async with deck(harbour) as act:
        for emoji in ("🍕", "tide"):
            await act(harbour.ben, "add_reaction", message=str(said.id), emoji=emoji)
        counted = await act(harbour.ben, "read_reactions", message=str(said.id))
        assert counted["reactions"] == {"🍕": 2, f"<:tide:{tide.id}>": 1}
        chosen = await act(harbour.ben, "read_reactions", message=str(said.id), emoji="🍕")
        assert chosen["names"] in (["Ada", "Ana"], ["Ana", "Ada"])
        await act(harbour.ben, "remove_reaction", message=str(said.id), emoji="tide")
        with pytest.raises(NotFound, match="no emoji"):
            await act(harbour.ben, "add_reaction", message=str(said.id), emoji=":wave:")
    assert [(each.emoji.name, len(each.users)) for each in said.reactions] == [("🍕", 2)]


async def test_who_may_not_react_gets_no_new_reaction_but_may_join_one(harbour: Harbour) -> None:
    quiet = harbour.guild.add_channel("quiet", overwrites=[SimOverwrite(harbour.ben.id, 1, deny=P.ADD_REACTIONS)])
    said = harbour.world.say(harbour.ana, quiet, "well")
    async with deck(harbour) as act:
        with pytest.raises(NotAllowed, match=r"You may not.*'Add Reactions'"):
            await act(harbour.ben, "add_reaction", message=str(said.id), emoji="🍕", channel="quiet")
        harbour.world.react(harbour.ana, said, "🍕")
        await act(harbour.ben, "add_reaction", message=str(said.id), emoji="🍕", channel="quiet")
    assert len(said.reactions[0].users) == 2


async def test_what_not_everybody_here_may_read_is_not_read_out_here(harbour: Harbour) -> None:
    office = harbour.guild.add_channel("office", private_to=[harbour.ana, harbour.ada.user])
    said = harbour.world.say(harbour.ana, office, "raise for all?")
    harbour.world.react(harbour.ana, said, "🍕")
    polled = harbour.world.say(harbour.ana, office, poll=SimPollDraft("Raise?", ["yes", "no"]))
    async with deck(harbour) as act:
        with pytest.raises(NotFound, match="not everybody here"):
            await act(harbour.ana, "read_reactions", message=str(said.id), channel="office")
        with pytest.raises(NotFound, match="not everybody here"):
            await act(harbour.ana, "read_poll", message=str(polled.id), channel="office")
        assert await act(Asked(harbour.ana, office), "read_reactions", message=str(said.id))


@pytest.mark.proves("V-skill-utility")
async def test_a_poll_is_asked_read_and_ended(harbour: Harbour) -> None:
    async with deck(harbour) as act:
        done = await act(Asked(harbour.ana, key="one"), "create_poll", question="Tea?", answers=["yes", "no"], hours=2)
        assert done == await act(
            Asked(harbour.ana, key="one"), "create_poll", question="Tea?", answers=["yes", "no"], hours=2
        )
        polled = message_of(harbour, done)
        assert polled.poll is not None
        assert (polled.poll.question, [text for text, _ in polled.poll.answers]) == ("Tea?", ["yes", "no"])
        harbour.world.vote(harbour.ben, polled, 1)
        stands = await act(harbour.ben, "read_poll", message=str(polled.id))
        assert (stands["answers"], stands["ended"]) == ([["yes", 1], ["no", 0]], False)
        with pytest.raises(NotAllowed):
            await act(harbour.ben, "end_poll", message=str(polled.id))
        await act(harbour.ana, "end_poll", message=str(polled.id))
        assert polled.poll.finalized
        assert (await act(harbour.ben, "read_poll", message=str(polled.id)))["ended"] is True


async def test_a_poll_takes_the_right_to_make_one_and_a_form_that_discord_takes(harbour: Harbour) -> None:
    quiet = harbour.guild.add_channel("quiet", overwrites=[SimOverwrite(harbour.ben.id, 1, deny=P.SEND_POLLS)])
    said = harbour.say("no poll")
    async with deck(harbour) as act:
        with pytest.raises(NotAllowed, match=r"You may not.*'Create Polls'"):
            await act(harbour.ben, "create_poll", question="Tea?", answers=["yes"], channel="quiet")
        wrongs: list[dict[str, Json]] = [{"answers": []}, {"answers": ["x" * 56]}, {"answers": ["yes"], "hours": 0}]
        for wrong in wrongs:
            with pytest.raises(InvalidInput, match="cannot be a poll"):
                await act(harbour.ben, "create_poll", question="Tea?", **wrong)
        with pytest.raises(InvalidInput, match="no poll"):
            await act(harbour.ben, "read_poll", message=str(said.id))
    assert not harbour.mine(quiet)


async def test_a_thread_is_opened_once_under_a_message_or_under_a_new_one(harbour: Harbour) -> None:
    said = harbour.say("lunch")
    async with deck(harbour) as act:
        under = await act(harbour.ben, "create_thread", name="Where to eat", message=str(said.id))
        assert under == await act(harbour.ben, "create_thread", name="Where to eat", message=str(said.id))
        new = [
            await act(Asked(harbour.ben, key="one"), "create_thread", name="Dinner", text="And tonight?") for _ in "12"
        ]
        assert new[0] == new[1]
        with pytest.raises(InvalidInput, match="begins under a message"):
            await act(harbour.ben, "create_thread", name="Nothing")
    threads = list(harbour.guild.threads.values())
    assert [(each.id, each.name) for each in threads] == [
        (said.id, "Where to eat"),
        (message_of(harbour, new[0]).id, "Dinner"),
    ]
    assert [each.content for each in harbour.mine()] == ["And tonight?"]


async def test_a_private_thread_lets_its_asker_in(harbour: Harbour) -> None:
    async with deck(harbour) as act:
        done = await act(harbour.ben, "create_thread", name="Gift", text="For Ana", private=True)
    thread = harbour.guild.threads[int(str(done["thread"]))]
    assert thread.thread is not None
    assert set(thread.thread.members) == {harbour.ben.id, harbour.ada.user.id}
    assert [each.content for each in harbour.mine(thread)] == ["For Ana"]


async def test_who_may_open_no_threads_gets_none(harbour: Harbour) -> None:
    quiet = harbour.guild.add_channel(
        "quiet", overwrites=[SimOverwrite(harbour.ben.id, 1, deny=P.CREATE_PUBLIC_THREADS)]
    )
    async with deck(harbour) as act:
        with pytest.raises(NotAllowed, match="'Create Public Threads'"):
            await act(harbour.ben, "create_thread", name="Talk", text="hi", channel="quiet")
    assert not harbour.mine(quiet)


async def test_a_thread_is_renamed_and_archived_by_its_owner_and_locked_by_who_manages_threads(
    harbour: Harbour,
) -> None:
    harbour.guild.set_roles(harbour.ada.user, [harbour.guild.add_role("keeper", permissions=P.MANAGE_THREADS)])
    thread = harbour.world.open_thread(harbour.ben, harbour.general, "talk", text="hi")
    cleo = harbour.world.add_person("Cleo")
    harbour.guild.join(cleo)
    assert thread.thread is not None
    async with deck_heard(harbour) as (act, heard):
        await act(harbour.ben, "edit_thread", thread=str(thread.id), name="Better")
        with pytest.raises(NotAllowed, match="'Manage Threads'"):
            await act(cleo, "edit_thread", thread=str(thread.id), archived=True)
        with pytest.raises(NotAllowed, match="'Manage Threads'"):
            await act(harbour.ben, "edit_thread", thread=str(thread.id), locked=True)
        await act(Asked(harbour.ben, thread), "edit_thread", archived=True)
        assert thread.thread.archived
        await act(harbour.ben, "edit_thread", thread=str(thread.id), archived=False)
        await act(harbour.ana, "edit_thread", thread=str(thread.id), locked=True)
        assert (thread.name, thread.thread.archived, thread.thread.locked) == ("Better", False, True)
        harbour.say("so far")  # heard after all that came before it
        await heard.until(lambda: "so far" in heard.texts())
        with pytest.raises(NotAllowed, match="'Manage Threads'"):
            await act(harbour.ben, "send_message", text="hi", channel=str(thread.id))


async def test_a_thread_that_was_locked_is_not_opened_or_renamed_again_by_its_owner(harbour: Harbour) -> None:
    harbour.guild.set_roles(harbour.ada.user, [harbour.guild.add_role("keeper", permissions=P.MANAGE_THREADS)])
    thread = harbour.world.open_thread(harbour.ben, harbour.general, "talk", text="hi")
    assert thread.thread is not None
    async with deck_heard(harbour) as (act, heard):
        await act(harbour.ana, "edit_thread", thread=str(thread.id), locked=True, archived=True)
        harbour.say("so far")
        await heard.until(lambda: "so far" in heard.texts())
        for change in ({"archived": False}, {"name": "mine"}):
            with pytest.raises(NotAllowed, match="'Manage Threads'"):
                await act(harbour.ben, "edit_thread", thread=str(thread.id), **change)
    assert (thread.name, thread.thread.archived, thread.thread.locked) == ("talk", True, True)


async def test_somebody_is_added_to_a_thread_who_can_see_its_channel(harbour: Harbour) -> None:
    crew = harbour.guild.add_role("crew")
    harbour.guild.set_roles(harbour.ben, [crew])
    room = harbour.guild.add_channel("room", private_to=[crew, harbour.ada.user])
    thread = harbour.world.open_thread(harbour.ana, room, "talk", text="hi")
    cleo = harbour.world.add_person("Cleo")
    harbour.guild.join(cleo)
    assert thread.thread is not None
    async with deck(harbour) as act:
        await act(harbour.ana, "add_to_thread", thread="talk", member="Ben")
        with pytest.raises(NotAllowed, match="Cleo cannot see"):
            await act(harbour.ana, "add_to_thread", thread="talk", member="Cleo")
        with pytest.raises(NotFound):
            await act(cleo, "add_to_thread", thread="talk", member="Cleo")
    assert harbour.ben.id in thread.thread.members
    assert cleo.id not in thread.thread.members


async def test_without_the_members_intent_somebody_is_found_by_name_too(harbour: Harbour) -> None:
    thread = harbour.world.open_thread(harbour.ana, harbour.general, "talk", text="hi")
    async with running(harbour, members_intent=False) as (account, _):
        action = Action("add_to_thread", {"thread": str(thread.id), "member": "ben"})
        await account.act(action, warrant_of(harbour, harbour.ana))
    assert thread.thread is not None
    assert harbour.ben.id in thread.thread.members


async def test_a_post_stands_in_the_forum_once_with_its_tags(harbour: Harbour) -> None:
    forum = harbour.guild.add_channel("help", kind="forum", tags=["open", "bug"])
    plan: dict[str, Json] = {"channel": "help", "title": "It leaks", "text": "Under pier 3", "tags": ["Bug"]}
    async with deck(harbour) as act:
        done = [await act(harbour.ben, "create_forum_post", **plan) for _ in "12"]
        with pytest.raises(NotFound, match="no tag 'nope'"):
            await act(harbour.ben, "create_forum_post", **{**plan, "tags": ["nope"]})
        with pytest.raises(InvalidInput, match="no forum"):
            await act(harbour.ben, "create_forum_post", **{**plan, "channel": "general"})
    assert done[0] == done[1]
    (thread,) = harbour.guild.threads.values()
    assert (thread.parent, thread.name) == (forum, "It leaks")
    assert thread.thread is not None
    assert thread.thread.tags == [forum.tags[1].id]
    assert [each.content for each in harbour.mine(thread)] == ["Under pier 3"]


async def test_who_may_not_post_in_a_forum_does_not(harbour: Harbour) -> None:
    harbour.guild.add_channel("help", kind="forum", overwrites=[SimOverwrite(harbour.ben.id, 1, deny=P.SEND_MESSAGES)])
    async with deck(harbour) as act:
        with pytest.raises(NotAllowed, match="You may not"):
            await act(harbour.ben, "create_forum_post", channel="help", title="Hi", text="there")
    assert not harbour.guild.threads
