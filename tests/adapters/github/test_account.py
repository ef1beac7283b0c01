"""An account on GitHub as a channel: what it hears, what it reads, and what it does."""

from __future__ import annotations

import anyio
import pytest

from denizen.adapters.github import account as account_module
from denizen.adapters.github.account import GitHubAccount
from denizen.adapters.github.arriving import NO_WORDS
from denizen.adapters.github.threads import Thread
from denizen.domain.delivery import Content
from denizen.domain.errors import NotAllowed, NotFound, Unavailable
from denizen.domain.message import FilePart, text_of
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.room import RoomKind
from denizen.testing.github.state import Repository, User
from tests.adapters.github.yard import Heard, Yard, running

pytestmark = pytest.mark.anyio


def principal(user: User) -> Principal:
    return Principal(PrincipalKind.PLATFORM_USER, f"github:{user.id}", user.login)


# --- hearing ---------------------------------------------------------------------------------------------------------


@pytest.mark.proves("S32", "S33-context")
async def test_a_comment_arrives_with_who_is_called_and_what_it_is_about(yard: Yard) -> None:
    issue = yard.world.open_issue(yard.ana, yard.boats, "Leak", "Water.", labels=("bug",))
    async with running(yard) as (account, heard):
        yard.world.comment(yard.ben, issue, "@Denizen why, @ana?")
        assert await account.take(*yard.payload())
    (arrival,) = heard.arrivals
    assert (arrival.mentions.me, arrival.mentions.others, arrival.is_mine) == (True, True, False)
    assert arrival.question == "why, ana?"
    assert text_of(await arrival.load_parts()) == "why, ana?"
    assert arrival.roles == {"none"}
    assert arrival.subject is not None
    assert (arrival.subject.origin, arrival.subject.number, arrival.subject.title) == ("harbour/boats", 1, "Leak")
    assert arrival.subject.labels == ("bug",)
    assert (arrival.room.id, arrival.room.guild) == ("harbour/boats#1", "harbour/boats")


@pytest.mark.proves("S33-context")
async def test_the_opening_and_the_last_ten_comments_are_what_was_said_earlier(yard: Yard) -> None:
    issue = yard.world.open_issue(yard.ana, yard.boats, "Leak", "Water.")
    for number in range(150):
        yard.world.comment(yard.ben, issue, f"Comment {number}.")
    async with running(yard) as (account, heard):
        yard.world.comment(yard.ben, issue, "@denizen why?")
        await account.take(*yard.payload())
        earlier = await heard.arrivals[0].load_earlier()
        assert [each.post.text for each in earlier] == ["Water.", *(f"Comment {n}." for n in range(140, 150))]
        yard.github.fail("GET", r"/issues/1/comments$", status=404)
        assert [each.post.text for each in await heard.arrivals[0].load_earlier()] == ["Water."]


async def test_a_bare_mention_is_about_what_was_said_before(yard: Yard) -> None:
    issue = yard.world.open_issue(yard.ana, yard.boats, "Leak")
    async with running(yard) as (account, heard):
        yard.world.comment(yard.ben, issue, "@denizen")
        await account.take(*yard.payload())
    assert heard.questions == [NO_WORDS]


async def test_a_comment_on_code_brings_the_code_as_a_file_of_somebody_else(yard: Yard) -> None:
    pull = yard.world.open_pull(yard.ana, yard.boats, "Paint")
    async with running(yard) as (account, heard):
        yard.world.comment_code(yard.ben, pull, "@denizen why?")
        await account.take(*yard.payload())
    parts = await heard.arrivals[0].load_parts()
    assert isinstance(parts[1], FilePart) and "+new" in parts[1].text
    assert heard.arrivals[0].room.kind is RoomKind.THREAD


@pytest.mark.proves("S32")
@pytest.mark.parametrize("wanted", [True, False])
async def test_a_new_issue_is_meant_where_that_is_wanted_and_a_new_pull_request_never(wanted: bool, yard: Yard) -> None:
    async with running(yard, reply_to_new_issues=wanted) as (account, heard):
        yard.world.open_issue(yard.ben, yard.boats, "Sinks", "Help!")
        await account.take(*yard.payload())
        yard.world.open_pull(yard.ben, yard.boats, "Patch", "Here.")
        await account.take(*yard.payload())
    assert [each.mentions.me for each in heard.arrivals] == [wanted, False]
    assert heard.questions[0] == "Sinks\n\nHelp!"


async def test_bots_and_the_account_itself_are_known_as_such(yard: Yard) -> None:
    issue, robot = yard.world.open_issue(yard.ana, yard.boats, "Leak"), yard.world.add_user("r[bot]", is_bot=True)
    async with running(yard) as (account, heard):
        for user in (robot, yard.app.user):
            yard.world.comment(user, issue, "@denizen beep")
            await account.take(*yard.payload())
        assert account.user_id == str(yard.app.user.id)
    assert [(each.post.author.is_bot, each.is_mine) for each in heard.arrivals] == [(True, False), (True, True)]


async def test_the_same_webhook_again_is_heard_once_and_edits_and_deletions_are_told(yard: Yard) -> None:
    issue = yard.world.open_issue(yard.ana, yard.boats, "Leak")
    async with running(yard) as (account, heard):
        comment = yard.world.comment(yard.ben, issue, "@denizen why?")
        for _ in range(2):
            await account.take(*yard.payload())
        yard.world.edit(yard.ben, issue, comment, "@denizen how?")
        await account.take(*yard.payload())
        yard.world.remove(yard.ben, issue, comment)
        await account.take(*yard.payload())
    assert [(each.is_edit, each.question) for each in heard.arrivals] == [(False, "why?"), (True, "how?")]
    assert heard.deleted == [heard.arrivals[0].post.id]


async def test_an_edit_back_to_what_was_there_before_is_told_too(yard: Yard) -> None:
    issue = yard.world.open_issue(yard.ana, yard.boats, "Leak")
    async with running(yard) as (account, heard):
        comment = yard.world.comment(yard.ben, issue, "one")
        for text in ("two", "one", "two"):
            yard.clock.advance(seconds=2)
            yard.world.edit(yard.ben, issue, comment, text)
            for _ in range(2):
                await account.take(*yard.payload())
    assert heard.questions == ["two", "one", "two"]


async def test_an_issue_that_is_deleted_takes_its_room_along(yard: Yard) -> None:
    issue = yard.world.open_issue(yard.ana, yard.boats, "Leak")
    name, opened = yard.payload()
    async with running(yard) as (account, heard):
        yard.world.comment(yard.ben, issue, "@denizen why?")
        await account.take(*yard.payload())
        await account.take(name, {**opened, "action": "deleted"})
    assert heard.gone == [heard.arrivals[0].room.id]


async def test_other_repositories_and_other_events_are_nothing_for_it(yard: Yard) -> None:
    issue = yard.world.open_issue(yard.ana, yard.boats, "Leak")
    async with running(yard, repositories=("harbour/docs-*",)) as (account, heard):
        yard.world.comment(yard.ben, issue, "@denizen why?")
        assert not await account.take(*yard.payload())
    async with running(yard) as (account, heard):
        yard.world.label(yard.ana, issue, "bug")
        assert not await account.take(*yard.payload())
        assert not await account.take("push", {"repository": {"full_name": "harbour/boats"}})
    assert heard.arrivals == []


async def test_before_it_is_connected_nothing_is_taken(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_module, "START_PATIENCE_S", 0.0)
    yard.world.open_issue(yard.ana, yard.boats, "Leak", "@denizen help")
    with pytest.raises(Unavailable, match="not connected"):
        await yard.account().take(*yard.payload())


async def test_a_webhook_that_comes_while_it_connects_waits_for_that(yard: Yard) -> None:
    account, heard = yard.account(), Heard()
    held = yard.github.hold("GET", r"/issues$")
    async with anyio.create_task_group() as group:
        group.start_soon(account.run, heard)
        await held.wait_reached()
        yard.world.open_issue(yard.ana, yard.boats, "Leak", "@denizen help")
        group.start_soon(account.take, *yard.payload())
        held.release()
        await yard.github.until(lambda: heard.arrivals)
        group.cancel_scope.cancel()
    assert len(heard.arrivals) == 1


async def test_when_it_is_ready_it_names_the_rooms_with_news_and_their_newest_posts(yard: Yard) -> None:
    issue = yard.world.open_issue(yard.ana, yard.boats, "Leak", "Water.")
    pull = yard.world.open_pull(yard.ana, yard.boats, "Paint")
    yard.world.comment(yard.ben, issue, "@denizen why?")
    line = yard.world.comment_code(yard.ben, pull, "Hm.")
    async with running(yard) as (account, heard):
        rooms = {room.id: room for room in heard.rooms}
        review = f"harbour/boats#2/review/{line.id}"
        assert set(rooms) == {"harbour/boats", "harbour/boats#1", "harbour/boats#2", review}
        (found,) = await account.list_arrivals(rooms["harbour/boats#1"], after=str(int(await newest(account)) - 1))
        assert (found.question, found.post.id) == ("why?", rooms["harbour/boats#1"].latest_post)
        assert await account.list_arrivals(rooms["harbour/boats"], after="0") == ()


async def newest(account: GitHubAccount) -> str:
    return (await account.list_posts("harbour/boats#1"))[-1].id


async def test_what_webhooks_did_not_tell_is_found_by_looking_again(yard: Yard) -> None:
    issue = yard.world.open_issue(yard.ana, yard.boats, "Leak")
    async with running(yard, rescan_s=0.01) as (account, heard):
        yard.world.comment(yard.ben, issue, "@denizen why?")
        await yard.github.until(lambda: "why?" in heard.questions)
        await account.take(*yard.payload())
        yard.github.fail("GET", r"/issues$", status=404, times=2)
        yard.world.comment(yard.ben, issue, "@denizen and now?")
        await yard.github.until(lambda: "and now?" in heard.questions)
    assert heard.questions.count("why?") == 1


async def test_what_was_edited_before_it_was_read_may_be_the_words_of_somebody_else(yard: Yard) -> None:
    issue = yard.world.open_issue(yard.ana, yard.boats, "Leak")
    own = yard.world.comment(yard.ana, issue, "@denizen own")
    yard.world.comment(yard.ana, issue, "@denizen untouched")
    yard.clock.advance(minutes=1)
    yard.world.edit(yard.ben, issue, own, "@denizen changed")
    async with running(yard) as (account, heard):
        (room,) = [each for each in heard.rooms if each.id == "harbour/boats#1"]
        found = await account.list_arrivals(room, after="0")
        assert [(each.question, each.is_unsure) for each in found[1:]] == [("changed", True), ("untouched", False)]
        edited = yard.world.comment(yard.ben, issue, "@denizen so?")
        name, made = yard.payload()
        yard.clock.advance(minutes=1)
        yard.world.edit(yard.ana, issue, edited, "@denizen how?")
        edited_to = yard.payload()
        await account.take(name, made)
        await account.take(*edited_to)
    unsure = {each.question: each.is_unsure for each in heard.arrivals}
    async with running(yard, rescan_s=0.01) as (account, heard):
        late = yard.world.comment(yard.ben, issue, "@denizen hm")
        yard.clock.advance(minutes=1)
        yard.world.edit(yard.ana, issue, late, "@denizen found")
        await yard.github.until(lambda: "found" in heard.questions)
    unsure |= {each.question: each.is_unsure for each in heard.arrivals if each.question == "found"}
    assert (unsure["so?"], unsure["how?"], unsure["found"]) == (False, True, True)


async def test_a_users_token_works_too_and_its_name_is_the_login(yard: Yard) -> None:
    helper = yard.world.add_user("helper")
    yard.boats.members[helper.id] = "COLLABORATOR"
    issue = yard.world.open_issue(yard.ana, yard.boats, "Leak")
    async with running(yard, app_id="", private_key="", token=helper.token) as (account, heard):
        yard.world.comment(yard.ben, issue, "@helper why?")
        await account.take(*yard.payload())
        await account.post(yard.place(1), Content("A hole."), nonce="n")
    assert heard.arrivals[0].mentions.me
    assert issue.comments[-1].user is helper


# --- doing -----------------------------------------------------------------------------------------------------------


async def test_it_writes_where_it_was_asked(yard: Yard) -> None:
    account = yard.account()
    pull = yard.world.open_pull(yard.ana, yard.boats, "Paint")
    line = yard.world.comment_code(yard.ana, pull, "Why?")
    talk = yard.world.open_discussion(yard.ana, yard.boats, "Sea?")
    root = yard.world.comment(yard.ben, talk, "South.")
    for tail, number in (("", 1), (f"/review/{line.id}", 1), ("/discussion", 2), (f"/discussion/{root.id}", 2)):
        place = yard.place(number, tail)
        made = await account.post(place, Content(f"At {tail}."), nonce="abc")
        (found,) = [each for each in await account.list_posts(place.thread or place.channel) if each.id == made]
        assert (found.text, found.nonce) == (f"At {tail}.", "abc")
        await account.edit(place, made, Content("Changed."))
        posts = await account.list_posts(place.thread or place.channel, after=str(int(made) - 1))
        assert [each.text for each in posts] == ["Changed."]
        await account.delete(place, made)
        await account.delete(place, made)
        assert made not in [each.id for each in await account.list_posts(place.thread or place.channel)]


async def test_reactions_come_and_go_but_not_on_reviews(yard: Yard) -> None:
    issue, pull = yard.world.open_issue(yard.ana, yard.boats, "Leak"), yard.world.open_pull(yard.ana, yard.boats, "P")
    talk = yard.world.open_discussion(yard.ana, yard.boats, "Sea?")
    yard.world.comment(yard.ben, issue, "Pump!")
    yard.world.comment_code(yard.ben, pull, "Why?")
    yard.world.comment(yard.ben, talk, "South.")
    yard.world.review(yard.ben, pull, "Fine.")
    async with running(yard) as (account, heard):
        for at in range(len(yard.happened)):
            await account.take(*yard.payload(at))
        issue_at = {each.post.id: each for each in heard.arrivals}
        targets = [
            issue, pull, talk, issue.comments[0], pull.review_comments[0], talk.comments[0], None,
        ]  # fmt: skip
        for arrival, target in zip(issue_at.values(), targets, strict=True):
            await account.react(arrival.room.place, arrival.post.id, "eyes")
            if target is not None:
                assert [(each.user, each.content) for each in target.reactions] == [(yard.app.user, "eyes")]
                yard.world.react(yard.ana, target, "eyes")
            await account.react(arrival.room.place, arrival.post.id, "eyes", on=False)
            if target is not None:
                assert [each.user for each in target.reactions] == [yard.ana]
            await account.react(arrival.room.place, arrival.post.id, "unknown")
        await account.react(yard.place(1), next(iter(issue_at)), "\N{WHITE HEAVY CHECK MARK}")
        assert [each.content for each in issue.reactions] == ["eyes", "+1"]


async def test_only_who_is_named_is_called(yard: Yard) -> None:
    account, issue = yard.account(), yard.world.open_issue(yard.ana, yard.boats, "Leak")
    content = Content(f"<@{yard.ben.id}> and @ana", ping_users=frozenset({str(yard.ben.id)}))
    await account.post(yard.place(1), content, nonce="")
    assert issue.comments[0].body == "@ben and `@ana`"


async def test_nothing_else_can_be_done(yard: Yard) -> None:
    account = yard.account()
    with pytest.raises(NotAllowed):
        await account.open_thread(yard.place(1), "1", "x")
    assert await account.may_moderate("harbour/boats#1", principal(yard.ana)) is False


# --- knowing ---------------------------------------------------------------------------------------------------------


async def test_posts_are_listed_before_and_after_one(yard: Yard) -> None:
    account, issue = yard.account(), yard.world.open_issue(yard.ana, yard.boats, "Leak", "Water.")
    for number in range(250):
        yard.world.comment(yard.ben, issue, f"{number}")
    room = "harbour/boats#1"
    newest = await account.list_posts(room, limit=100)
    assert [each.text for each in newest] == [str(n) for n in range(150, 250)]
    older = await account.list_posts(room, before=newest[0].id, limit=100)
    assert [each.text for each in older] == [str(n) for n in range(50, 150)]
    rest = await account.list_posts(room, before=older[0].id, limit=100)
    assert [each.text for each in rest] == ["Water.", *(str(n) for n in range(50))]
    assert await account.list_posts(room, before=rest[0].id) == []
    after = await account.list_posts(room, after=newest[-3].id)
    assert [each.text for each in after] == ["248", "249"]


async def test_a_thread_sees_itself_and_nothing_else(yard: Yard) -> None:
    seen = await yard.account().visible_rooms(yard.place(1, "/review/7"), principal(yard.ben))
    assert seen == {"harbour/boats#1", "harbour/boats#1/review/7"}


async def test_only_threads_of_public_repositories_are_open(yard: Yard) -> None:
    account, room = yard.account(), Thread("harbour/boats", 1).room("Leak")
    assert await account.is_open(room)
    yard.boats.private = True
    assert not await account.is_open(room)
    assert not await account.is_open(Thread("harbour/gone", 1).room("Gone"))


async def test_who_may_write_is_asked_of_github(yard: Yard) -> None:
    account = yard.account()
    issue = yard.world.open_issue(yard.ana, yard.boats, "Leak")
    place, ana, ben = yard.place(1), principal(yard.ana), principal(yard.ben)
    assert await account.may_write(place, ben)
    issue.locked = True
    assert (await account.may_write(place, ana), await account.may_write(place, ben)) == (True, False)
    issue.locked = False
    yard.boats.private = True
    assert (await account.may_write(place, ana), await account.may_write(place, ben)) == (True, False)
    assert not await account.may_write(yard.place(99), ana)
    assert not await account.may_write(place, Principal(PrincipalKind.PLATFORM_USER, "github:1", "gone"))


async def test_what_the_app_cannot_see_is_not_there(yard: Yard) -> None:
    vault: Repository = yard.world.add_repository("harbour/vault", owner=yard.ana, private=True)
    yard.world.open_issue(yard.ana, vault, "Secret", "4711")
    with pytest.raises(NotFound):
        await yard.account().list_posts("harbour/vault#1")
    assert [each.name for each in await yard.account().list_repositories()] == ["harbour/boats"]


async def test_however_often_repositories_are_asked_for_github_is_asked_once_a_minute(yard: Yard) -> None:
    account = yard.account()

    def asked() -> int:
        return len(yard.github.requests_to("GET", "/installation/repositories"))

    yard.github.fail("GET", "/installation/repositories", status=404)
    with pytest.raises(NotFound):
        await account.list_repositories()
    before = asked()
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(account.list_repositories)
    assert [each.name for each in await account.list_repositories()] == ["harbour/boats"]
    assert asked() == before + 1
    yard.clock.advance(seconds=61)
    await account.list_repositories()
    assert asked() == before + 2
