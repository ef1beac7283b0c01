"""The platform in memory behaves like one: what is posted is heard once, seen by those who may, and fails on demand."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
import pytest

from denizen.domain.conversation import Place
from denizen.domain.delivery import MessageContent
from denizen.domain.errors import Conflict, DenizenError, InvalidInput, NotAllowed, NotFound, Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.message import TextPart
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.room import Room, RoomKind
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.ports.channel import (
    ButtonPress,
    Channel,
    ChannelListener,
    CommandCall,
    CommandReply,
    CommandSpec,
    CommunityEvent,
    IncomingMessage,
    ReactionChange,
)
from tests.memory_channel import MemoryChannel
from tests.memory_platform import MemoryPlatform

pytestmark = pytest.mark.anyio

ANA = Principal(PrincipalKind.PLATFORM_USER, "discord:ana", "Ana")


@dataclass
class RecordingChannelListener:
    """Writes down what it hears."""

    commands: Sequence[CommandSpec] = ()
    told: list[str] = field(default_factory=list[str])
    arrivals: list[IncomingMessage] = field(default_factory=list[IncomingMessage])
    answers: MemoryChannel | None = None

    async def on_ready(self, rooms: Sequence[Room]) -> None:
        self.told.append(f"ready {' '.join(room.name for room in rooms)}")

    async def on_message(self, message: IncomingMessage) -> None:
        self.arrivals.append(message)
        self.told.append(f"{'edit' if message.is_edit else 'message'} {message.question}")
        if self.answers is not None and message.mentions.me:
            await self.answers.post(message.room.place, MessageContent("hi"), nonce="n", reply_to=message.post.id)

    async def on_delete(self, room: Room, post_ids: Sequence[str]) -> None:
        self.told.append(f"delete {' '.join(post_ids)}")

    async def on_reaction(self, reaction: ReactionChange) -> None:
        put = "on" if reaction.is_on else "off"
        self.told.append(f"reaction {reaction.emoji} {put} by {reaction.user_id}")

    def awaits(self, kind: str) -> bool:
        return False

    async def on_event(self, event: CommunityEvent) -> None:
        self.told.append(f"event {event.kind}")

    async def on_room(self, room: Room) -> None:
        self.told.append(f"room {room.name}")

    async def on_room_gone(self, platform: str, room_id: str, *, is_deleted: bool) -> None:
        self.told.append(f"gone {room_id}")

    async def on_command(self, call: CommandCall) -> CommandReply:
        self.told.append(f"command {call.name}")
        return CommandReply()

    async def on_suggest(self, call: CommandCall, option: str, typed: str) -> Sequence[str]:
        self.told.append(f"suggest {typed}")
        return ()

    async def on_press(self, press: ButtonPress) -> str:
        self.told.append(f"press {press.value}")
        return ""


@dataclass
class ChannelFixture:
    platform: MemoryPlatform = field(default_factory=MemoryPlatform)

    def __post_init__(self) -> None:
        self.platform.add_person("ana", "Ana", roles=["r1"])
        self.platform.add_role("r1", "crew")
        self.ada = MemoryChannel(self.platform, AgentName("ada"), name="Ada Lovelace")
        self.general = self.platform.add_room("general")
        self.place = self.general.place


def test_it_is_a_channel_and_its_listener_a_listener() -> None:
    channel: Channel = ChannelFixture().ada
    listener: ChannelListener = RecordingChannelListener()
    assert (channel.platform, channel.agent, channel.user_id) == ("discord", "ada", "bot-ada")
    assert listener.commands == ()


async def test_a_connected_account_hears_everything_in_order_and_itself_too() -> None:
    fixture, listener = ChannelFixture(), RecordingChannelListener()
    listener.answers = fixture.ada
    fixture.platform.say(fixture.general, "ana", "too early")
    text = "@Ada Lovelace and @crew hello"
    post = fixture.platform.write(fixture.general, "ana", text, parts=(TextPart("more"),))
    async with anyio.create_task_group() as group:
        await group.start(fixture.ada.run, listener)
        fixture.platform.repeat(post.id)
        fixture.platform.repeat(post.id)
        fixture.platform.edit(post.id, "hello again")
        fixture.platform.react("ana", post.id, "📚")
        fixture.platform.react("ana", post.id, "📚")
        fixture.platform.react("bot-ada", post.id, "👀")
        fixture.platform.react("ana", post.id, "📚", on=False)
        fixture.platform.delete(post.id)
        fixture.platform.remove_room(fixture.platform.add_room("other", room_id="other"))
        await fixture.platform.settled()
        group.cancel_scope.cancel()
    assert listener.told == [
        "ready general",
        "message and @crew hello",
        "message and @crew hello",
        "edit hello again",
        "reaction 📚 on by ana",
        "reaction 📚 off by ana",
        f"delete {post.id}",
        "room other",
        "gone other",
        "message hi",
    ]
    first, answer = listener.arrivals[0], listener.arrivals[-1]
    assert first.mentions.me and not first.mentions.replies_to_me and not first.is_mine
    assert (first.mentions.roles, first.roles) == ({"r1"}, {"r1"})
    assert await first.load_parts() == (TextPart("and @crew hello"), TextPart("more"))
    assert answer.is_mine
    fixture.platform.say(fixture.general, "ana", "too late")
    await fixture.platform.settled()
    assert len(listener.arrivals) == 4


async def test_a_reply_to_the_account_is_seen_as_one_and_missed_messages_can_be_listed() -> None:
    fixture = ChannelFixture()
    mine = await fixture.ada.post(fixture.place, MessageContent("hi"), nonce="a")
    reply = fixture.platform.say(fixture.general, "ana", "thanks", reply_to=mine)
    arrivals = await fixture.ada.list_arrivals(fixture.general, after=mine)
    assert [(arrival.post.id, arrival.mentions.replies_to_me) for arrival in arrivals] == [(reply.id, True)]


async def test_pages_are_as_the_contract_says() -> None:
    fixture = ChannelFixture()
    ids = [fixture.platform.write(fixture.general, "ana", str(number)).id for number in range(150)]

    async def page(before: str = "", after: str = "", limit: int = 100) -> list[str]:
        return [
            post.id
            for post in await fixture.ada.list_posts(fixture.general.id, before=before, after=after, limit=limit)
        ]

    assert await page() == ids[50:]
    assert await page(before=ids[50]) == ids[:50]
    assert await page(after=ids[9]) == ids[10:110]
    assert await page(before=ids[9], limit=2) == ids[7:9]
    assert len(await fixture.ada.list_arrivals(fixture.general, after="")) == 100


async def test_the_same_nonce_posts_once_even_when_the_answer_was_lost() -> None:
    fixture = ChannelFixture()
    fixture.ada.fail("post", Unavailable("lost"), after=True)
    with pytest.raises(Unavailable):
        await fixture.ada.post(fixture.place, MessageContent("one"), nonce="n1")
    again = await fixture.ada.post(fixture.place, MessageContent("one"), nonce="n1")
    assert [sent.id for sent in fixture.ada.sent] == [again]
    assert await fixture.ada.post(fixture.place, MessageContent("two"), nonce="n2") != again
    assert [post.text for post in fixture.platform.list_posts(fixture.general.id)] == ["one", "two"]


async def test_a_failure_happens_as_often_as_it_was_asked_for() -> None:
    fixture = ChannelFixture()
    fixture.ada.fail("post", Unavailable("down"), times=2)
    for _ in range(2):
        with pytest.raises(Unavailable):
            await fixture.ada.post(fixture.place, MessageContent("one"), nonce="n1")
    assert fixture.platform.list_posts(fixture.general.id) == []
    assert await fixture.ada.post(fixture.place, MessageContent("one"), nonce="n1")
    assert fixture.ada.asked == ["post"] * 3


async def test_own_messages_are_edited_and_deleted_and_those_of_others_are_not() -> None:
    fixture = ChannelFixture()
    theirs = fixture.platform.write(fixture.general, "ana", "hers")
    mine = await fixture.ada.post(fixture.place, MessageContent("one"), nonce="n1", reply_to=theirs.id)
    await fixture.ada.edit(fixture.place, mine, MessageContent("two"))
    assert fixture.ada.sent[0].content == MessageContent("two")
    assert fixture.ada.sent[0].reply_to == theirs.id
    with pytest.raises(NotAllowed):
        await fixture.ada.edit(fixture.place, theirs.id, MessageContent("mine"))
    with pytest.raises(NotAllowed):
        await fixture.ada.delete(fixture.place, theirs.id)
    await fixture.ada.delete(fixture.place, mine)
    await fixture.ada.delete(fixture.place, mine)
    with pytest.raises(NotFound):
        await fixture.ada.edit(fixture.place, mine, MessageContent("three"))
    fixture.platform.delete(theirs.id)
    plain = await fixture.ada.post(fixture.place, MessageContent("late"), nonce="n2", reply_to=theirs.id)
    assert fixture.ada.sent[-1].id == plain
    assert fixture.ada.sent[-1].reply_to == ""


async def test_a_ticket_that_holds_is_answered() -> None:
    fixture = ChannelFixture()
    fixture.ada.tickets.add("t1")
    await fixture.ada.post(fixture.place, MessageContent("one"), nonce="n1", ticket="t1")
    fixture.ada.tickets.clear()
    await fixture.ada.post(fixture.place, MessageContent("two"), nonce="n2", ticket="t1")
    assert [sent.ticket for sent in fixture.ada.sent] == ["t1", ""]


@pytest.mark.parametrize(
    ("place", "content", "error"),
    [
        (Place("discord", "no"), MessageContent("one"), NotFound),
        (Place("discord", "staff"), MessageContent("one"), NotAllowed),
        (Place("discord", "open"), MessageContent(""), InvalidInput),
        (Place("discord", "open"), MessageContent("x" * 2001), InvalidInput),
    ],
)
async def test_what_the_platform_refuses_is_not_posted(
    place: Place, content: MessageContent, error: type[DenizenError]
) -> None:
    fixture = ChannelFixture()
    fixture.platform.add_room("staff", readers=["ana"], room_id="staff")
    fixture.platform.add_room("open", room_id="open")
    with pytest.raises(error):
        await fixture.ada.post(place, content, nonce="n")
    assert fixture.ada.sent == []


async def test_reactions_typing_threads_and_names_work_as_on_a_platform() -> None:
    fixture = ChannelFixture()
    post = fixture.platform.write(fixture.general, "ana", "hello")
    for _ in range(2):
        await fixture.ada.react(fixture.place, post.id, "👀")
    assert fixture.platform.reactions[post.id] == [("bot-ada", "👀")]
    await fixture.ada.react(fixture.place, post.id, "👀", on=False)
    assert fixture.platform.reactions[post.id] == []
    with suppress(Unavailable):
        async with fixture.ada.typing(fixture.place):
            assert fixture.ada.typing_in == [fixture.place]
            raise Unavailable("the turn failed")
    assert fixture.ada.typing_in == []
    assert fixture.ada.typed == [fixture.place]
    thread = await fixture.ada.open_thread(fixture.place, post.id, "topic")
    assert await fixture.ada.open_thread(fixture.place, post.id, "another") == thread
    assert (thread.kind, thread.place) == (RoomKind.THREAD, Place("discord", fixture.general.id, post.id))
    names = await fixture.ada.find_names(thread.place, "hey @ana and @Crew, not Ada")
    assert (names.users, names.roles) == ({"Ana": "ana"}, {"crew": "r1"})


async def test_rooms_are_visible_when_the_asker_every_reader_and_the_account_see_them() -> None:
    fixture = ChannelFixture()
    staff = fixture.platform.add_room("staff", readers=["ana", "bot-ada"])
    topic = fixture.platform.add_room("topic", RoomKind.THREAD, parent=staff)
    private = fixture.platform.add_room("private", RoomKind.PRIVATE_THREAD, parent=staff, readers=["ana"])
    fixture.platform.add_person("bea", "Bea")
    assert await fixture.ada.visible_rooms(fixture.place, ANA) == {fixture.general.id}
    assert await fixture.ada.visible_rooms(staff.place, ANA) == {fixture.general.id, staff.id, topic.id}
    assert private.id not in await fixture.ada.visible_rooms(private.place, ANA)
    assert await fixture.ada.visible_rooms(Place("discord", "no"), ANA) == frozenset()
    fixture.platform.set_moderators(staff, ["ana"])
    assert await fixture.ada.may_moderate(topic.id, ANA)
    assert not await fixture.ada.may_moderate(fixture.general.id, ANA)
    assert not await fixture.ada.may_moderate(topic.id, Principal(PrincipalKind.WEB_USER, "ana", "Ana"))


async def test_the_registry_knows_one_account_for_an_agent_and_platform() -> None:
    fixture, channels = ChannelFixture(), ConnectedAccounts()
    channels.add(fixture.ada)
    channels.add(fixture.ada)
    assert channels.find("discord", fixture.ada.agent) is fixture.ada
    assert channels.find("github", fixture.ada.agent) is None
    duplicate = MemoryChannel(fixture.platform, fixture.ada.agent)
    with pytest.raises(Conflict):
        channels.add(duplicate)
    channels.remove(duplicate)
    assert channels.list_platform("discord") == [fixture.ada]
    channels.remove(fixture.ada)
    channels.remove(fixture.ada)
    assert channels.list_platform("discord") == []
