"""The forgetting contract of the store: posts go with everything that was made of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.conversation import Place, Session
from denizen.domain.ids import ConversationId, MessageId, TurnId
from denizen.domain.message import Author, Message, Role
from denizen.domain.mirror import FORGOTTEN
from denizen.domain.room import Post, PostChanges
from denizen.ports.archive import AuthorCount, PostQuery
from denizen.ports.store import Store
from tests.contracts.store.records import (
    PLACE,
    PLATFORM,
    at,
    make_message,
    make_post,
    make_room,
    make_turn,
    open_conversation,
)


async def mirror_posts(store: Store, *posts: Post) -> Session:
    """Posts with an earlier text, and their copies in a session."""
    conversation, session = await open_conversation(store)
    assert conversation.place.platform == PLATFORM
    async with store.work() as work:
        await work.archive.put([replace(post, text=f"draft of {post.text}") for post in posts])
        await work.archive.put([replace(post, changes=PostChanges(edited_at=at(20))) for post in posts])
        for post in posts:
            await work.messages.add(copy_post(session, post))
    return session


def copy_post(session: Session, post: Post) -> Message:
    message = make_message(session, f"copy of {post.id}", post.text)
    return replace(message, platform_id=post.id, author=post.author, meta={"speaker": post.author.name})


async def is_there(store: Store, post: Post) -> bool:
    """All of it, or nothing."""
    async with store.work(write=False) as work:
        found = await work.archive.find(PLATFORM, post.id)
        versions = await work.archive.list_versions(PLATFORM, post.id)
        hits = await work.archive.search(PostQuery(post.text, platform=PLATFORM, rooms=[post.room]))
        copies = await work.messages.search(post.text, conversation_ids=[PLACE.conversation_id])
        copy = await work.messages.get(MessageId(f"copy of {post.id}"))
    signs = {
        found is not None,
        bool(versions),
        post.id in {hit.post.id for hit in hits},
        copy.id in {hit.message.id for hit in copies},
        copy.text == post.text,
        bool(copy.meta),
    }
    assert len(signs) == 1, post.id
    return signs.pop()


async def list_kept(store: Store, *posts: Post) -> list[str]:
    return [post.id for post in posts if await is_there(store, post)]


POSTS = (
    make_post("1", "one", room="10", author="1"),
    make_post("2", "two", room="10", author="2"),
    replace(make_post("3", "three", room="30", author="1"), parent="10"),
    make_post("4", "four", room="40", author="2"),
    make_post("5", "five", room="50", author="1"),
)


@pytest.mark.anyio
class ForgettingContract:
    async def test_nothing_is_forgotten_before_it_is_asked_for(self, store: Store) -> None:
        await mirror_posts(store, *POSTS)
        assert await list_kept(store, *POSTS) == ["1", "2", "3", "4", "5"]

    async def test_forgotten_posts_are_gone_with_versions_words_and_copies(self, store: Store) -> None:
        session = await mirror_posts(store, *POSTS)
        async with store.work() as work:
            await work.messages.add(make_message(session, "typed"))
            assert await work.archive.forget_posts(PLATFORM, ["1", "4", "4", "none", ""]) == 2
            assert await work.archive.forget_posts(PLATFORM, ["1"]) == 0
            assert await work.archive.forget_posts(PLATFORM, []) == 0
            assert await work.archive.total(PLATFORM) == 3
            tail = await work.messages.list_tail(session.id, limit=9)
        assert [message.parts == FORGOTTEN for message in tail] == [True, False, False, True, False, False]
        assert [message.sequence for message in tail] == [1, 2, 3, 4, 5, 6]
        assert await list_kept(store, *POSTS) == ["2", "3", "5"]

    async def test_a_deleted_room_takes_its_posts_and_those_of_its_threads_along_in_pieces(self, store: Store) -> None:
        await mirror_posts(store, *POSTS)
        async with store.work() as work:
            await work.archive.put_room(replace(make_room("40"), parent="10"))
            for room in ("", "none"):
                assert await work.archive.mark_room_deleted(PLATFORM, room, at=at(9), limit=9) == 0
            assert await work.archive.mark_room_deleted("other", "10", at=at(9), limit=9) == 0
            assert await work.archive.mark_room_deleted(PLATFORM, "10", at=at(9), limit=0) == 0
            marked = 0
            while piece := await work.archive.mark_room_deleted(PLATFORM, "10", at=at(9), limit=2):
                assert piece <= 2
                marked += piece
            assert marked == 4
            found = [await work.archive.find(PLATFORM, post.id) for post in POSTS]
            assert [post and post.changes.deleted_at for post in found] == [at(9), at(9), at(9), at(9), None]
            assert await work.archive.total(PLATFORM) == 1

    async def test_an_author_is_forgotten_also_where_their_words_were_not_archived(self, store: Store) -> None:
        session = await mirror_posts(store, *POSTS)
        _, elsewhere = await open_conversation(store, Place("web", "here"))
        loose = replace(make_message(session, "loose", "typed"), author=Author("1", "Ana"))
        other = replace(make_message(elsewhere, "other", "typed"), author=Author("1", "Somebody"))
        own = replace(
            make_message(session, "own", "typed", role=Role.ASSISTANT), author=Author("", "denizen", is_bot=True)
        )
        async with store.work() as work:
            for message in (loose, other, own):
                await work.messages.add(message)
            assert await work.archive.count_author(PLATFORM, "1") == AuthorCount(3, 4)
            assert await work.archive.forget_author(PLATFORM, "1") == 3
            assert await work.archive.count_author(PLATFORM, "1") == AuthorCount(0, 0)
            assert await work.archive.forget_author(PLATFORM, "1") == 0
            assert await work.archive.forget_author(PLATFORM, "") == 0
        assert await list_kept(store, *POSTS) == ["2", "4"]
        async with store.work(write=False) as work:
            found = [(await work.messages.get(MessageId(key))).text for key in ("loose", "other", "own")]
        assert found == ["[forgotten]", "typed", "typed"]

    async def test_an_author_of_very_many_posts_is_forgotten(self, store: Store) -> None:
        _, session = await open_conversation(store)
        posts = [make_post(str(number), author=str(number % 2)) for number in range(1, 2601)]
        async with store.work() as work:
            assert await work.archive.put(posts) == 2600
            for post in posts[:1200]:
                await work.messages.add(replace(copy_post(session, post), platform_id=""))
        async with store.work() as work:
            assert await work.archive.forget_author(PLATFORM, "1") == 1300
            assert await work.archive.total(PLATFORM) == 1300
            hits = await work.archive.search(PostQuery("post", platform=PLATFORM, rooms=["10"], limit=5000))
            tail = await work.messages.list_tail(session.id, limit=5000)
        assert {hit.post.author.id for hit in hits} == {"0"}
        assert {message.author.id for message in tail if message.parts == FORGOTTEN} == {"1"}
        assert len([message for message in tail if message.parts == FORGOTTEN]) == 600

    async def test_a_room_is_forgotten_with_its_threads(self, store: Store) -> None:
        await mirror_posts(store, *POSTS)
        async with store.work() as work:
            await work.archive.put_room(make_room("40", parent="10"))
            await work.archive.put_room(make_room("50"))
            assert await work.archive.forget_room("other", "10") == 0
            assert await work.archive.forget_room(PLATFORM, "10") == 4
            assert await work.archive.forget_room(PLATFORM, "") == 0
        assert await list_kept(store, *POSTS) == ["5"]

    async def test_the_oldest_posts_are_forgotten_a_piece_at_a_time(self, store: Store) -> None:
        late = replace(make_post("6", "six"), created_at=at(10))
        posts = (late, *POSTS[::-1])
        await mirror_posts(store, *posts)
        async with store.work() as work:
            assert await work.archive.forget_before(PLATFORM, at(0), limit=10) == 0
            assert await work.archive.forget_before(PLATFORM, at(9), limit=0) == 0
            assert await work.archive.forget_before("other", at(9), limit=9) == 0
            assert await work.archive.forget_before(PLATFORM, at(9), limit=2) == 2
        assert await list_kept(store, *posts) == ["6", "5", "4", "3"]
        async with store.work() as work:
            assert await work.archive.forget_before(PLATFORM, POSTS[4].created_at, limit=10) == 2
        assert await list_kept(store, *posts) == ["6", "5"]

    async def test_old_posts_of_one_guild_are_forgotten_without_those_of_others(self, store: Store) -> None:
        first, second = make_post("1", "one"), replace(make_post("2", "two"), guild="other")
        await mirror_posts(store, first, second)
        async with store.work() as work:
            assert await work.archive.forget_before(PLATFORM, at(1), limit=9, guild="other") == 1
        assert (await is_there(store, first), await is_there(store, second)) == (True, False)

    async def test_rows_that_name_a_member_are_counted_by_what_they_are(self, store: Store) -> None:
        key = f"platform_user:{PLATFORM}:1"
        async with store.work() as work:
            await work.user_settings.put(key, "model", "fast", now=at(0))
            await work.user_settings.put(f"{key}2", "model", "fast", now=at(0))
            counts = await work.personal_data.count_member(key)
        assert {name: count for name, count in counts.items() if count} == {"settings": 1}
        assert {"memories", "reminders", "records of usage"} <= counts.keys()

    async def test_deleted_posts_are_forgotten_like_others(self, store: Store) -> None:
        for forget in ("author", "room", "posts", "before"):
            post = make_post("1", "one")
            async with store.work() as work:
                await work.archive.put([post])
                await work.archive.mark_deleted(PLATFORM, ["1"], at=at(5))
                gone = {
                    "author": lambda archive=work.archive: archive.forget_author(PLATFORM, "1"),
                    "room": lambda archive=work.archive: archive.forget_room(PLATFORM, "10"),
                    "posts": lambda archive=work.archive: archive.forget_posts(PLATFORM, ["1"]),
                    "before": lambda archive=work.archive: archive.forget_before(PLATFORM, at(9), limit=1),
                }
                assert await gone[forget]() == 1
                assert await work.archive.find(PLATFORM, "1") is None

    async def test_copies_of_another_platform_with_the_same_id_stay(self, store: Store) -> None:
        await mirror_posts(store, *POSTS)
        _, elsewhere = await open_conversation(store, Place("other", "general"))
        async with store.work() as work:
            await work.archive.put([replace(POSTS[0], platform="other")])
            await work.messages.add(
                replace(make_message(elsewhere, "other", "one"), platform_id="1", author=Author("1", "Bo"))
            )
            await work.archive.forget_posts(PLATFORM, ["1"])
            await work.archive.forget_author(PLATFORM, "1")
            await work.archive.forget_room(PLATFORM, "10")
            assert await work.archive.total("other") == 1
            assert (await work.messages.get(MessageId("other"))).text == "one"

    async def test_a_forgotten_post_may_be_archived_again_without_its_past(self, store: Store) -> None:
        await mirror_posts(store, POSTS[0])
        async with store.work() as work:
            await work.archive.forget_posts(PLATFORM, ["1"])
            assert await work.archive.put([POSTS[0]]) == 1
            assert await work.archive.list_versions(PLATFORM, "1") == []

    async def test_a_unit_that_fails_forgets_nothing(self, store: Store) -> None:
        session = await mirror_posts(store, *POSTS)
        async with store.work() as work:
            await work.messages.add(replace(make_message(session, "m1", "asked"), turn_id=TurnId("t1")))
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - all of it is to be undone
            async with store.work() as work:
                await work.archive.forget_author(PLATFORM, "1")
                await work.archive.forget_room(PLATFORM, "10")
                await work.messages.forget_turn(TurnId("t1"))
                await work.archive.put([make_post("9"), replace(POSTS[3], text="new")])
                raise ZeroDivisionError
        assert await list_kept(store, *POSTS) == ["1", "2", "3", "4", "5"]
        async with store.work(write=False) as work:
            assert await work.archive.find(PLATFORM, "9") is None
            assert len(await work.archive.list_versions(PLATFORM, "4")) == 1
            tail = await work.messages.list_tail(session.id, limit=9)
        assert [message.id for message in tail][-2:] == ["copy of 5", "m1"]

    async def test_a_turn_that_is_asked_anew_leaves_its_session(self, store: Store) -> None:
        conversation, session = await open_conversation(store)

        async def found() -> list[str]:
            async with store.work(write=False) as work:
                hits = await work.messages.search("said", conversation_ids=[ConversationId(conversation.id)])
            return [hit.message.id for hit in hits]

        async with store.work() as work:
            for turn, keys in (("t1", ["a", "b"]), ("t2", ["c", "d"]), ("t3", ["e"])):
                await work.turns.open(make_turn(session, turn))
                for key in keys:
                    await work.messages.add(replace(make_message(session, key, f"said {key}"), turn_id=TurnId(turn)))
            await work.messages.add(make_message(session, "f", "said f"))
            await work.messages.forget_turn(TurnId("t2"))
            await work.messages.forget_turn(TurnId("none"))
        async with store.work() as work:
            tail = await work.messages.list_tail(session.id, limit=9)
            assert [(row.id, row.sequence) for row in tail] == [("a", 1), ("b", 2), ("e", 5), ("f", 6)]
            page = await work.messages.list_tail(session.id, limit=2, before=5)
            assert [row.id for row in page] == ["a", "b"]
            left = await work.messages.get(MessageId("c"))
            assert (left.session_id, left.sequence, left.text) == (None, 0, "said c")
            assert (await work.messages.add(make_message(session, "g", "said g"))).sequence == 7
        assert sorted(await found()) == ["a", "b", "e", "f", "g"]

    async def test_a_session_whose_only_turn_is_asked_anew_begins_anew(self, store: Store) -> None:
        _, session = await open_conversation(store)
        async with store.work() as work:
            await work.messages.add(replace(make_message(session, "m1"), turn_id=TurnId("t1")))
            await work.messages.forget_turn(TurnId("t1"))
            assert (await work.messages.add(make_message(session, "m2"))).sequence == 1
