"""An account on GitHub as a channel: what it hears, what it reads, and what it does."""

from __future__ import annotations

import anyio
import pytest

from denizen.adapters.github import account as account_module
from denizen.adapters.github.account import NO_WORDS, GitHubAccount
from denizen.adapters.github.threads import GitHubThread
from denizen.domain.delivery import MessageContent
from denizen.domain.errors import NotAllowed, NotFound, Unavailable
from denizen.domain.message import FilePart, join_text
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.room import RoomKind
from tests.adapters.github.github_fixture import GitHubFixture, RecordingGitHubListener, running
from tests.github_simulator.state import Repository, User

pytestmark = pytest.mark.anyio


def principal(user: User) -> Principal:
    return Principal(PrincipalKind.PLATFORM_USER, f"github:{user.id}", user.login)


# --- hearing ---------------------------------------------------------------------------------------------------------


@pytest.mark.proves("S32", "S33-context")
async def test_a_comment_arrives_with_who_is_called_and_what_it_is_about(sim: GitHubFixture) -> None:
    issue = sim.world.open_issue(sim.ana, sim.boats, "Leak", "Water.", labels=("bug",))
    async with running(sim) as (account, heard):
        sim.world.comment(sim.ben, issue, "@Denizen why, @ana?")
        assert await account.take(*sim.payload())
    (arrival,) = heard.arrivals
    assert (arrival.mentions.me, arrival.mentions.others, arrival.is_mine) == (True, True, False)
    assert arrival.question == "why, ana?"
    assert join_text(await arrival.load_parts()) == "why, ana?"
    assert arrival.roles == {"none"}
    assert arrival.subject is not None
    assert (arrival.subject.origin, arrival.subject.number, arrival.subject.title) == ("harbour/boats", 1, "Leak")
    assert arrival.subject.labels == ("bug",)
    assert (arrival.room.id, arrival.room.guild) == ("harbour/boats#1", "harbour/boats")


@pytest.mark.proves("S33-context")
async def test_the_opening_and_the_last_ten_comments_are_what_was_said_earlier(sim: GitHubFixture) -> None:
    issue = sim.world.open_issue(sim.ana, sim.boats, "Leak", "Water.")
    for number in range(150):
        sim.world.comment(sim.ben, issue, f"Comment {number}.")
    async with running(sim) as (account, heard):
        sim.world.comment(sim.ben, issue, "@denizen why?")
        await account.take(*sim.payload())
        earlier = await heard.arrivals[0].load_earlier()
        assert [each.post.text for each in earlier] == ["Water.", *(f"Comment {n}." for n in range(140, 150))]
        sim.github.fail("GET", r"/issues/1/comments$", status=404)
        assert [each.post.text for each in await heard.arrivals[0].load_earlier()] == ["Water."]


async def test_a_bare_mention_is_about_what_was_said_before(sim: GitHubFixture) -> None:
    issue = sim.world.open_issue(sim.ana, sim.boats, "Leak")
    async with running(sim) as (account, heard):
        sim.world.comment(sim.ben, issue, "@denizen")
        await account.take(*sim.payload())
    assert heard.questions == [NO_WORDS]


async def test_a_comment_on_code_brings_the_code_as_a_file_of_somebody_else(sim: GitHubFixture) -> None:
    pull = sim.world.open_pull(sim.ana, sim.boats, "Paint")
    async with running(sim) as (account, heard):
        sim.world.comment_code(sim.ben, pull, "@denizen why?")
        await account.take(*sim.payload())
    parts = await heard.arrivals[0].load_parts()
    assert isinstance(parts[1], FilePart) and "+new" in parts[1].text
    assert heard.arrivals[0].room.kind is RoomKind.THREAD


@pytest.mark.proves("S32")
@pytest.mark.parametrize("wanted", [True, False])
async def test_a_new_issue_is_meant_where_that_is_wanted_and_a_new_pull_request_never(
    wanted: bool, sim: GitHubFixture
) -> None:
    async with running(sim, reply_to_new_issues=wanted) as (account, heard):
        sim.world.open_issue(sim.ben, sim.boats, "Sinks", "Help!")
        await account.take(*sim.payload())
        sim.world.open_pull(sim.ben, sim.boats, "Patch", "Here.")
        await account.take(*sim.payload())
    assert [each.mentions.me for each in heard.arrivals] == [wanted, False]
    assert heard.questions[0] == "Sinks\n\nHelp!"


async def test_bots_and_the_account_itself_are_known_as_such(sim: GitHubFixture) -> None:
    issue, robot = sim.world.open_issue(sim.ana, sim.boats, "Leak"), sim.world.add_user("r[bot]", is_bot=True)
    async with running(sim) as (account, heard):
        for user in (robot, sim.app.user):
            sim.world.comment(user, issue, "@denizen beep")
            await account.take(*sim.payload())
        assert account.user_id == str(sim.app.user.id)
    assert [(each.post.author.is_bot, each.is_mine) for each in heard.arrivals] == [(True, False), (True, True)]


async def test_the_same_webhook_again_is_heard_once_and_edits_and_deletions_are_told(sim: GitHubFixture) -> None:
    issue = sim.world.open_issue(sim.ana, sim.boats, "Leak")
    async with running(sim) as (account, heard):
        comment = sim.world.comment(sim.ben, issue, "@denizen why?")
        for _ in range(2):
            await account.take(*sim.payload())
        sim.world.edit(sim.ben, issue, comment, "@denizen how?")
        await account.take(*sim.payload())
        sim.world.remove(sim.ben, issue, comment)
        await account.take(*sim.payload())
    assert [(each.is_edit, each.question) for each in heard.arrivals] == [(False, "why?"), (True, "how?")]
    assert heard.deleted == [heard.arrivals[0].post.id]


async def test_an_edit_back_to_what_was_there_before_is_told_too(sim: GitHubFixture) -> None:
    issue = sim.world.open_issue(sim.ana, sim.boats, "Leak")
    async with running(sim) as (account, heard):
        comment = sim.world.comment(sim.ben, issue, "one")
        for text in ("two", "one", "two"):
            sim.clock.advance(2)
            sim.world.edit(sim.ben, issue, comment, text)
            for _ in range(2):
                await account.take(*sim.payload())
    assert heard.questions == ["two", "one", "two"]


async def test_an_issue_that_is_deleted_takes_its_room_along(sim: GitHubFixture) -> None:
    issue = sim.world.open_issue(sim.ana, sim.boats, "Leak")
    name, opened = sim.payload()
    async with running(sim) as (account, heard):
        sim.world.comment(sim.ben, issue, "@denizen why?")
        await account.take(*sim.payload())
        await account.take(name, {**opened, "action": "deleted"})
    assert heard.gone == [heard.arrivals[0].room.id]


async def test_other_repositories_and_other_events_are_nothing_for_it(sim: GitHubFixture) -> None:
    issue = sim.world.open_issue(sim.ana, sim.boats, "Leak")
    async with running(sim, repositories=("harbour/docs-*",)) as (account, heard):
        sim.world.comment(sim.ben, issue, "@denizen why?")
        assert not await account.take(*sim.payload())
    async with running(sim) as (account, heard):
        sim.world.label(sim.ana, issue, "bug")
        assert not await account.take(*sim.payload())
        assert not await account.take("push", {"repository": {"full_name": "harbour/boats"}})
    assert heard.arrivals == []


async def test_before_it_is_connected_nothing_is_taken(sim: GitHubFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_module, "START_PATIENCE_S", 0.0)
    sim.world.open_issue(sim.ana, sim.boats, "Leak", "@denizen help")
    with pytest.raises(Unavailable, match="not connected"):
        await sim.account().take(*sim.payload())


async def test_a_webhook_that_comes_while_it_connects_waits_for_that(sim: GitHubFixture) -> None:
    account, heard = sim.account(), RecordingGitHubListener()
    held = sim.github.hold("GET", r"/issues$")
    async with anyio.create_task_group() as group:
        group.start_soon(account.run, heard)
        await held.wait_reached()
        sim.world.open_issue(sim.ana, sim.boats, "Leak", "@denizen help")
        group.start_soon(account.take, *sim.payload())
        held.release()
        await sim.github.until(lambda: heard.arrivals)
        group.cancel_scope.cancel()
    assert len(heard.arrivals) == 1


async def test_when_it_is_ready_it_names_the_rooms_with_news_and_their_newest_posts(sim: GitHubFixture) -> None:
    issue = sim.world.open_issue(sim.ana, sim.boats, "Leak", "Water.")
    pull = sim.world.open_pull(sim.ana, sim.boats, "Paint")
    sim.world.comment(sim.ben, issue, "@denizen why?")
    line = sim.world.comment_code(sim.ben, pull, "Hm.")
    async with running(sim) as (account, heard):
        rooms = {room.id: room for room in heard.rooms}
        review = f"harbour/boats#2/review/{line.id}"
        assert set(rooms) == {"harbour/boats", "harbour/boats#1", "harbour/boats#2", review}
        (found,) = await account.list_arrivals(rooms["harbour/boats#1"], after=str(int(await newest(account)) - 1))
        assert (found.question, found.post.id) == ("why?", rooms["harbour/boats#1"].latest_post)
        assert await account.list_arrivals(rooms["harbour/boats"], after="0") == ()


async def newest(account: GitHubAccount) -> str:
    return (await account.list_posts("harbour/boats#1"))[-1].id


async def test_what_webhooks_did_not_tell_is_found_by_looking_again(sim: GitHubFixture) -> None:
    issue = sim.world.open_issue(sim.ana, sim.boats, "Leak")
    async with running(sim, rescan_s=0.01) as (account, heard):
        sim.world.comment(sim.ben, issue, "@denizen why?")
        await sim.github.until(lambda: "why?" in heard.questions)
        await account.take(*sim.payload())
        sim.github.fail("GET", r"/issues$", status=404, times=2)
        sim.world.comment(sim.ben, issue, "@denizen and now?")
        await sim.github.until(lambda: "and now?" in heard.questions)
    assert heard.questions.count("why?") == 1


async def test_what_was_edited_before_it_was_read_may_be_the_words_of_somebody_else(sim: GitHubFixture) -> None:
    issue = sim.world.open_issue(sim.ana, sim.boats, "Leak")
    own = sim.world.comment(sim.ana, issue, "@denizen own")
    sim.world.comment(sim.ana, issue, "@denizen untouched")
    sim.clock.advance(minutes=1)
    sim.world.edit(sim.ben, issue, own, "@denizen changed")
    async with running(sim) as (account, heard):
        (room,) = [each for each in heard.rooms if each.id == "harbour/boats#1"]
        found = await account.list_arrivals(room, after="0")
        assert [(each.question, each.is_unsure) for each in found[1:]] == [("changed", True), ("untouched", False)]
        edited = sim.world.comment(sim.ben, issue, "@denizen so?")
        name, made = sim.payload()
        sim.clock.advance(minutes=1)
        sim.world.edit(sim.ana, issue, edited, "@denizen how?")
        edited_to = sim.payload()
        await account.take(name, made)
        await account.take(*edited_to)
    unsure = {each.question: each.is_unsure for each in heard.arrivals}
    async with running(sim, rescan_s=0.01) as (account, heard):
        late = sim.world.comment(sim.ben, issue, "@denizen hm")
        sim.clock.advance(minutes=1)
        sim.world.edit(sim.ana, issue, late, "@denizen found")
        await sim.github.until(lambda: "found" in heard.questions)
    unsure |= {each.question: each.is_unsure for each in heard.arrivals if each.question == "found"}
    assert (unsure["so?"], unsure["how?"], unsure["found"]) == (False, True, True)


async def test_a_users_token_works_too_and_its_name_is_the_login(sim: GitHubFixture) -> None:
    helper = sim.world.add_user("helper")
    sim.boats.members[helper.id] = "COLLABORATOR"
    issue = sim.world.open_issue(sim.ana, sim.boats, "Leak")
    async with running(sim, app_id="", private_key="", token=helper.token) as (account, heard):
        sim.world.comment(sim.ben, issue, "@helper why?")
        await account.take(*sim.payload())
        await account.post(sim.place(1), MessageContent("A hole."), nonce="n")
    assert heard.arrivals[0].mentions.me
    assert issue.comments[-1].user is helper


# --- doing -----------------------------------------------------------------------------------------------------------


async def test_an_answer_is_written_where_the_question_was_asked(sim: GitHubFixture) -> None:
    account = sim.account()
    pull = sim.world.open_pull(sim.ana, sim.boats, "Paint")
    line = sim.world.comment_code(sim.ana, pull, "Why?")
    talk = sim.world.open_discussion(sim.ana, sim.boats, "Sea?")
    root = sim.world.comment(sim.ben, talk, "South.")
    for tail, number in (("", 1), (f"/review/{line.id}", 1), ("/discussion", 2), (f"/discussion/{root.id}", 2)):
        place = sim.place(number, tail)
        made = await account.post(place, MessageContent(f"At {tail}."), nonce="abc")
        (found,) = [each for each in await account.list_posts(place.thread or place.channel) if each.id == made]
        assert (found.text, found.nonce) == (f"At {tail}.", "abc")
        await account.edit(place, made, MessageContent("Changed."))
        posts = await account.list_posts(place.thread or place.channel, after=str(int(made) - 1))
        assert [each.text for each in posts] == ["Changed."]
        await account.delete(place, made)
        await account.delete(place, made)
        assert made not in [each.id for each in await account.list_posts(place.thread or place.channel)]


async def test_reactions_come_and_go_but_not_on_reviews(sim: GitHubFixture) -> None:
    issue, pull = sim.world.open_issue(sim.ana, sim.boats, "Leak"), sim.world.open_pull(sim.ana, sim.boats, "P")
    talk = sim.world.open_discussion(sim.ana, sim.boats, "Sea?")
    sim.world.comment(sim.ben, issue, "Pump!")
    sim.world.comment_code(sim.ben, pull, "Why?")
    sim.world.comment(sim.ben, talk, "South.")
    sim.world.review(sim.ben, pull, "Fine.")
    async with running(sim) as (account, heard):
        for at in range(len(sim.happened)):
            await account.take(*sim.payload(at))
        issue_at = {each.post.id: each for each in heard.arrivals}
        targets = [issue, pull, talk, issue.comments[0], pull.review_comments[0], talk.comments[0], None]
        for arrival, target in zip(issue_at.values(), targets, strict=True):
            await account.react(arrival.room.place, arrival.post.id, "eyes")
            if target is not None:
                assert [(each.user, each.content) for each in target.reactions] == [(sim.app.user, "eyes")]
                sim.world.react(sim.ana, target, "eyes")
            await account.react(arrival.room.place, arrival.post.id, "eyes", on=False)
            if target is not None:
                assert [each.user for each in target.reactions] == [sim.ana]
            await account.react(arrival.room.place, arrival.post.id, "unknown")
        await account.react(sim.place(1), next(iter(issue_at)), "\N{WHITE HEAVY CHECK MARK}")
        assert [each.content for each in issue.reactions] == ["eyes", "+1"]


async def test_only_who_is_named_is_called(sim: GitHubFixture) -> None:
    account, issue = sim.account(), sim.world.open_issue(sim.ana, sim.boats, "Leak")
    content = MessageContent(f"<@{sim.ben.id}> and @ana", ping_users=frozenset({str(sim.ben.id)}))
    await account.post(sim.place(1), content, nonce="")
    assert issue.comments[0].body == "@ben and `@ana`"


async def test_threads_and_moderation_are_refused_on_github(sim: GitHubFixture) -> None:
    account = sim.account()
    with pytest.raises(NotAllowed):
        await account.open_thread(sim.place(1), "1", "x")
    assert await account.may_moderate("harbour/boats#1", principal(sim.ana)) is False


# --- knowing ---------------------------------------------------------------------------------------------------------


async def test_posts_are_listed_before_and_after_one(sim: GitHubFixture) -> None:
    account, issue = sim.account(), sim.world.open_issue(sim.ana, sim.boats, "Leak", "Water.")
    for number in range(250):
        sim.world.comment(sim.ben, issue, f"{number}")
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


async def test_a_thread_sees_itself_and_nothing_else(sim: GitHubFixture) -> None:
    seen = await sim.account().visible_rooms(sim.place(1, "/review/7"), principal(sim.ben))
    assert seen == {"harbour/boats#1", "harbour/boats#1/review/7"}


async def test_only_threads_of_public_repositories_are_open(sim: GitHubFixture) -> None:
    account, room = sim.account(), GitHubThread("harbour/boats", 1).room("Leak")
    assert await account.is_open(room)
    sim.boats.private = True
    assert not await account.is_open(room)
    assert not await account.is_open(GitHubThread("harbour/gone", 1).room("Gone"))


async def test_who_may_write_is_asked_of_github(sim: GitHubFixture) -> None:
    account = sim.account()
    issue = sim.world.open_issue(sim.ana, sim.boats, "Leak")
    place, ana, ben = sim.place(1), principal(sim.ana), principal(sim.ben)
    assert await account.may_write(place, ben)
    issue.locked = True
    assert (await account.may_write(place, ana), await account.may_write(place, ben)) == (True, False)
    issue.locked = False
    sim.boats.private = True
    assert (await account.may_write(place, ana), await account.may_write(place, ben)) == (True, False)
    assert not await account.may_write(sim.place(99), ana)
    assert not await account.may_write(place, Principal(PrincipalKind.PLATFORM_USER, "github:1", "gone"))


async def test_what_the_app_cannot_see_is_not_there(sim: GitHubFixture) -> None:
    vault: Repository = sim.world.add_repository("harbour/vault", owner=sim.ana, private=True)
    sim.world.open_issue(sim.ana, vault, "Secret", "4711")
    with pytest.raises(NotFound):
        await sim.account().list_posts("harbour/vault#1")
    assert [each.name for each in await sim.account().list_repositories()] == ["harbour/boats"]


async def test_however_often_repositories_are_asked_for_github_is_asked_once_a_minute(sim: GitHubFixture) -> None:
    account = sim.account()

    def asked() -> int:
        return len(sim.github.requests_to("GET", "/installation/repositories"))

    sim.github.fail("GET", "/installation/repositories", status=404)
    with pytest.raises(NotFound):
        await account.list_repositories()
    before = asked()
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(account.list_repositories)
    assert [each.name for each in await account.list_repositories()] == ["harbour/boats"]
    assert asked() == before + 1
    sim.clock.advance(61)
    await account.list_repositories()
    assert asked() == before + 2
