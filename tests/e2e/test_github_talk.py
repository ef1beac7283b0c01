"""`denizen run` on GitHub: who mentions the App in a thread gets an answer there, and nobody else does."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from anyio import to_thread

from denizen.testing.model_server import FailedAnswer, ModelAnswer, ModelCall
from tests.e2e.github import SECRET, SETTLED, Yard

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@pytest.mark.proves("S32", "S33", "S33-context")
async def test_a_mention_in_an_issue_is_answered_there_by_what_was_said_before(yard: Yard) -> None:
    yard.configure()
    issue = yard.world.open_issue(yard.ana, yard.boats, "It leaks", "Water comes in.", labels=("bug", "hull"))
    for number in range(12):
        yard.world.comment(yard.ben, issue, f"Comment {number}.")
    yard.script("There is a hole.")
    async with yard.run():
        asked = yard.world.comment(yard.ben, issue, "@Denizen why, @ana?")
        taken = yard.github.deliveries[-1]
        await yard.until(lambda: yard.said(issue) == ["There is a hole."])
        assert taken.status == 202
        await yard.until(lambda: not asked.reactions)
        assert any(each.body == {"content": "eyes"} for each in yard.github.requests_to("POST", "/reactions$"))
    prompt = str(yard.requests[-1].body["messages"])
    assert "#1 It leaks" in prompt and "Labels: bug, hull" in prompt and "Water comes in." in prompt
    told = [number for number in range(12) if f"Comment {number}." in prompt]
    assert told == list(range(2, 12))
    assert "why, ana?" in prompt and "@Denizen" not in prompt


@pytest.mark.proves("S32")
async def test_pull_requests_reviews_and_discussions_are_answered_where_they_ask(yard: Yard) -> None:
    yard.configure()
    async with yard.run():
        yard.script("The pull request.")
        pull = yard.world.open_pull(yard.ben, yard.boats, "Paint it", "@denizen what do you think?")
        await yard.until(lambda: yard.said(pull) == ["The pull request."])
        yard.script("The review.")
        yard.world.review(yard.ana, pull, "@denizen is blue right?")
        await yard.until(lambda: yard.said(pull)[1:] == ["The review."])
        yard.script("The line.")
        first = yard.world.comment_code(yard.ana, pull, "Why this line?")
        asked = yard.world.comment_code(yard.ben, pull, "@denizen can you tell?", answers=first)
        await yard.until(lambda: pull.review_comments[-1].user is yard.app.user)
        assert pull.review_comments[-1].root is first and pull.review_comments[-1].body.startswith("The line.")
        await yard.until(lambda: not asked.reactions)
        yard.script("The discussion.")
        talk = yard.world.open_discussion(yard.ana, yard.boats, "Which sea?", "North or south?")
        comment = yard.world.comment(yard.ben, talk, "@denizen which one?")
        await yard.until(lambda: yard.said(talk) == ["The discussion."])
        assert talk.comments[-1].parent is comment
    prompt = str(yard.requests[-2].body["messages"])
    assert "Why this line?" in prompt and "@@ -1 +1 @@" in prompt
    assert "North or south?" in str(yard.requests[-1].body["messages"])


@pytest.mark.proves("S32")
async def test_new_issues_are_answered_where_that_is_wanted(yard: Yard) -> None:
    yard.configure(conduct=["reply_to_new_issues: true"])
    async with yard.run():
        yard.script("Try pumping.")
        issue = yard.world.open_issue(yard.ben, yard.boats, "It sinks", "Help!")
        await yard.until(lambda: yard.said(issue) == ["Try pumping."])
        pull = yard.world.open_pull(yard.ben, yard.boats, "Fix it", "A patch.")
        assert await yard.settle(pull) == []


@pytest.mark.proves("S33")
async def test_nothing_but_created_comments_and_opened_issues_of_people_starts_a_turn(yard: Yard) -> None:
    yard.configure()
    robot = yard.world.add_user("robot[bot]", is_bot=True)
    async with yard.run():
        issue = yard.world.open_issue(yard.ana, yard.boats, "It leaks", "Water comes in.")
        assert await yard.settle(issue) == []  # by then it has looked for what came while it connected
        comment = yard.world.comment(yard.ana, issue, "Hm.")
        yard.world.edit(yard.ana, issue, comment, "@denizen hm?")
        yard.world.comment(robot, issue, "@denizen beep")
        yard.world.comment(yard.app.user, issue, "@denizen I say to myself")
        yard.world.comment(yard.ana, issue, "`@denizen` and @denizen-bot and\n> @denizen are not meant")
        yard.world.label(yard.ana, issue, "bug")
        yard.github.ping(yard.app.hook, yard.ana)
        pong = yard.github.deliveries[-1]
        await yard.until(lambda: pong.status)
        assert (pong.status, pong.answer) == (200, '{"status":"pong"}')
        assert [each for each in await yard.settle(issue) if "myself" not in each] == [SETTLED]
    assert len(yard.requests) == 2


@pytest.mark.proves("S33", "S-http-webhooks-post")
async def test_the_same_webhook_again_gives_no_second_answer_and_a_forged_one_none(yard: Yard) -> None:
    yard.configure()
    issue = yard.world.open_issue(yard.ana, yard.boats, "It leaks")
    async with yard.run():
        yard.script("A hole.")
        yard.world.comment(yard.ana, issue, "@denizen why?")
        asked = yard.github.deliveries[-1]
        await yard.until(lambda: yard.said(issue) == ["A hole."])
        yard.github.redeliver(asked)
        await yard.until(lambda: asked.status)
        yard.app.hook.secret = "not-the-secret"
        yard.world.comment(yard.ana, issue, "@denizen and now?")
        forged = yard.github.deliveries[-1]
        await yard.until(lambda: forged.status)
        assert forged.status == 401 and "signature_wrong" in forged.answer
        yard.app.hook.secret = SECRET
        assert await yard.settle(issue) == ["A hole."]


@pytest.mark.proves("SW8-errors")
async def test_a_failure_is_told_in_the_thread_as_a_safe_sentence_with_a_reference(yard: Yard) -> None:
    yard.configure()
    issue = yard.world.open_issue(yard.ana, yard.boats, "It leaks")
    async with yard.run() as denizen:
        yard.script(FailedAnswer(400, "the key sk-internal of account 77 at /srv/secret is bad"))
        asked = yard.world.comment(yard.ben, issue, "@denizen why?")
        await yard.until(lambda: yard.said(issue))
        (told,) = yard.said(issue)
        words = told.partition("<sub>")[0]  # the reference is made of digits too
        assert "internal" not in words and "/srv" not in words and "400" not in words
        reference = re.search(r"<sub>Reference: (\S+)</sub>", told)
        assert reference is not None
        await yard.until(lambda: [each.content for each in asked.reactions] == ["confused"])
        assert yard.rows(f"SELECT 1 FROM turns WHERE id = '{reference[1]}'")
        await denizen.kill()


async def test_strangers_are_left_without_a_word_where_only_some_are_answered(yard: Yard) -> None:
    yard.configure(conduct=["answers: [owner]", "repositories: [harbour/*]"])
    issue = yard.world.open_issue(yard.ana, yard.boats, "It leaks")
    async with yard.run():
        yard.world.comment(yard.ben, issue, "@denizen why?")
        yard.script("A hole.")
        yard.world.comment(yard.ana, issue, "@denizen why?")
        await yard.until(lambda: yard.said(issue))
        assert yard.said(issue) == ["A hole."]
    assert len(yard.requests) == 1


async def test_what_is_asked_while_no_webhook_comes_is_answered_once_after_the_start(yard: Yard) -> None:
    yard.configure()
    yard.clock.ahead = timedelta(seconds=-5)
    old = yard.world.open_issue(yard.ana, yard.boats, "Old", "@denizen from before it was ever there?")
    yard.clock.ahead = timedelta()
    async with yard.run() as first:
        assert await yard.settle(old) == []
        await first.stop()
    yard.github.sends_webhooks = False
    yard.clock.ahead += timedelta(seconds=1)
    new = yard.world.open_issue(yard.ana, yard.boats, "New", "@denizen is anybody there?")
    yard.world.comment(yard.ben, old, "@denizen and here?")
    yard.github.sends_webhooks = True
    yard.script("Yes.", "Yes.")
    async with yard.run():
        await yard.until(lambda: yard.said(new) == ["Yes."] and yard.said(old)[1:] == ["Yes."])
        assert await yard.settle(new) == ["Yes."]


async def test_a_private_repository_comes_up_nowhere_else(yard: Yard) -> None:
    yard.configure()
    vault = yard.world.add_repository("harbour/vault", owner=yard.ana, private=True)
    yard.app.installations[0].repositories.append(vault)
    issue = yard.world.open_issue(yard.ana, yard.boats, "Public")
    async with yard.run():
        secret = yard.world.open_issue(yard.ana, vault, "Combination", "The combination is 4711.")
        yard.script("Kept.")
        yard.world.comment(yard.ana, secret, "@denizen keep that, the combination is 4711")
        await yard.until(lambda: yard.said(secret) == ["Kept."])
        yard.script(ModelAnswer(calls=[ModelCall("search_archive", {"words": "combination"})]), "I know none.")
        yard.world.comment(yard.ben, issue, "@denizen what is it?")
        await yard.until(lambda: yard.said(issue))
    assert len(yard.requests) == 3
    assert "4711" in str(yard.requests[0].body) and "4711" not in str(yard.requests[2].body)


async def test_what_the_asker_would_decide_is_denied_since_strangers_read_along(yard: Yard) -> None:
    yard.configure(rest="gate: {rules: [{tool: calculator, action: ask, deciders: requester}]}\n")
    issue = yard.world.open_issue(yard.ana, yard.boats, "It leaks")
    async with yard.run():
        yard.script(ModelAnswer(calls=[ModelCall("calculator", {"expression": "6 * 7"})]), "I may not count.")
        yard.world.comment(yard.ben, issue, "@denizen how many planks?")
        await yard.until(lambda: yard.said(issue))
        assert yard.said(issue) == ["I may not count."]
        assert yard.rows("SELECT 1 FROM approvals") == []


async def test_what_owners_decide_waits_for_them_elsewhere_and_nothing_of_it_is_shown_in_the_thread(yard: Yard) -> None:
    yard.configure(rest="gate: {rules: [{tool: calculator, action: ask, deciders: role, role: owner}]}\n")
    issue = yard.world.open_issue(yard.ana, yard.boats, "It leaks")
    async with yard.run():
        yard.script(ModelAnswer(calls=[ModelCall("calculator", {"expression": "6 * 7"})]), "42.")
        yard.world.comment(yard.ben, issue, "@denizen how many planks?")
        await yard.until(lambda: yard.rows("SELECT 1 FROM approvals WHERE status = 'pending'"))
        ((approval,),) = yard.rows("SELECT id FROM approvals")
        assert yard.said(issue) == [] and yard.rows("SELECT 1 FROM deliveries") == []
        done = await to_thread.run_sync(yard.home.do, "approvals", "approve", str(approval))
        assert done.code == 0, done.err
        await yard.until(lambda: yard.said(issue) == ["42."])
