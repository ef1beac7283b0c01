"""Talk as documents: days, threads, an index, and nothing in it that could pass for somebody else's words."""

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.archiving import ArchivePolicy
from denizen.domain.channel_documents import ChannelDocuments, RoomPosts, write_channel_documents
from denizen.domain.message import Author
from denizen.domain.room import Attachment, Post, PostChanges, Room, RoomKind
from tests.clock import NOON

POLICY = ArchivePolicy(post_links={"discord": "https://discord.com/channels/{guild}/{room}/{post}"})
GENERAL = Room("discord", "10", "general", guild="1", guild_name="Harbour")
THREAD = Room("discord", "101", "Sails & masts", RoomKind.THREAD, "1", "Harbour", "10", "general")


def make_post(number: int, text: str, *, author: str = "Ana", at: datetime = NOON, room: Room = GENERAL) -> Post:
    return Post(
        "discord", str(number), room.id, Author(author.lower(), author), text, at, guild="1", parent=room.parent
    )


def test_each_day_and_each_thread_is_a_document_with_names_times_links_and_replies() -> None:
    first = make_post(101, "Who can sew\na sail?")
    second = replace(
        make_post(102, "I can.", author="Ben", at=NOON + timedelta(minutes=3)),
        reply_to="101",
        changes=PostChanges(edited_at=NOON + timedelta(hours=1)),
        attachments=(Attachment("plan.pdf", "application/pdf", 10, "https://cdn.example/secret"),),
    )
    third = replace(make_post(104, "Late.", at=NOON + timedelta(days=1)), reply_to="9")
    inside = make_post(103, "Bring cloth.", at=NOON + timedelta(minutes=5), room=THREAD)
    found = dict(
        write_channel_documents(
            ChannelDocuments(RoomPosts(GENERAL, [first, second, third]), [RoomPosts(THREAD, [inside])], POLICY)
        )
    )
    assert list(found) == ["2026/2026-11-21.md", "2026/2026-11-22.md", "threads/101-sails-masts.md", "index.md"]
    assert found["2026/2026-11-21.md"] == (
        '---\ntitle: "#general on 2026-11-21"\nchannel: "#general"\nserver: "Harbour"\n'
        'date: "2026-11-21"\nmessages: 2\n'
        "---\n\n# #general on 2026-11-21\n\nTimes are UTC.\n\n"
        "## 12:00 Ana (id ana)\n\n[message](https://discord.com/channels/1/10/101); "
        "[thread](../threads/101-sails-masts.md)\n\n"
        "> Who can sew\n> a sail?\n\n"
        "## 12:03 Ben (id ben)\n\n[message](https://discord.com/channels/1/10/102); edited 2026-11-21 13:00; "
        "in reply to Ana (id ana), 2026-11-21 12:00: “Who can sew a sail?”\n\n> I can.\n"
        "> [file] plan.pdf (application/pdf)\n"
    )
    assert "in reply to a message that is not here" in found["2026/2026-11-22.md"]
    assert "## 2026-11-21 12:05 Ana (id ana)\n" in found["threads/101-sails-masts.md"]
    assert found["index.md"].endswith(
        "- [2026-11-22](2026/2026-11-22.md): 1 message\n- [2026-11-21](2026/2026-11-21.md): 2 messages\n\n"
        "## Threads\n\n- 2026-11-21 [Sails & masts](threads/101-sails-masts.md): 1 message\n"
    )
    assert "cdn.example" not in "".join(found.values())


def test_the_revision_tells_of_every_edit_and_deletion_and_of_nothing_else() -> None:
    posts = [make_post(1, "a"), make_post(2, "b")]
    one = ChannelDocuments(RoomPosts(GENERAL, posts), [])
    assert one.revision == ChannelDocuments(RoomPosts(GENERAL, list(posts)), []).revision
    assert (
        len(
            {
                one.revision,
                ChannelDocuments(RoomPosts(GENERAL, posts[:1]), []).revision,
                ChannelDocuments(RoomPosts(GENERAL, []), []).revision,
                ChannelDocuments(RoomPosts(GENERAL, [posts[0], replace(posts[1], text="c")]), []).revision,
                ChannelDocuments(RoomPosts(replace(GENERAL, name="harbour"), posts), []).revision,
                ChannelDocuments(
                    RoomPosts(GENERAL, posts), [RoomPosts(THREAD, [make_post(3, "c", room=THREAD)])]
                ).revision,
            }
        )
        == 6
    )


def test_a_nickname_does_not_pass_for_somebody_else() -> None:
    post = replace(make_post(1, "Pay me."), author=Author("666", "Ana (id ana)"))
    reply = replace(make_post(2, "Why?"), reply_to="1")
    text = write_channel_documents(ChannelDocuments(RoomPosts(GENERAL, [post, reply]), []))[0][1]
    assert "## 12:00 Ana (id ana) (id 666)\n" in text
    assert "in reply to Ana (id ana) (id 666), " in text


@given(st.text(max_size=60), st.text(max_size=200))
def test_nobody_can_write_a_heading_or_a_message_of_somebody_else(name: str, text: str) -> None:
    post = make_post(1, f"{text}\n## 12:00 Ben\r# Ben\u2028# Ben\x0b# Ben\n---\n> x", author=f"x{name}\n# Ben\n")
    for _, document in write_channel_documents(
        ChannelDocuments(RoomPosts(replace(GENERAL, name=f"g{name}\n# x"), [post]), [])
    ):
        body = document.split("\n---\n", 1)[1]
        headings = [line for line in body.splitlines() if line.startswith(("#", "---"))]
        assert len(headings) == (2 if "Times are UTC.\n\n##" in document else 1)
