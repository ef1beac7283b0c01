"""`denizen run` on GitHub: who mentions the App in a thread gets an answer there, and nobody else does."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from anyio import to_thread

from denizen.testing.model_server import FailedAnswer, ModelAnswer, ModelCall
from tests.e2e.github import SECRET, SETTLED, GitHubDeployment

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@pytest.mark.proves("S32", "S33", "S33-context")
async def test_a_mention_in_an_issue_is_answered_there_by_what_was_said_before(
    github_deployment: GitHubDeployment,
) -> None:
    github_deployment.configure()
    issue = github_deployment.world.open_issue(
        github_deployment.ana,
        github_deployment.boats,
        "It leaks",
        f"Water comes in. {'w' * 1500}",
        labels=("bug", "hull"),
    )
    for number in range(12):
        github_deployment.world.comment(github_deployment.ben, issue, f"Comment {number}.")
    github_deployment.script("There is a hole.")
    async with github_deployment.run():
        asked = github_deployment.world.comment(github_deployment.ben, issue, "@Denizen why, @ana?")
        taken = github_deployment.github.deliveries[-1]
        await github_deployment.until(lambda: github_deployment.said(issue) == ["There is a hole."])
        assert taken.status == 202
        await github_deployment.until(lambda: not asked.reactions)
        assert any(
            each.body == {"content": "eyes"} for each in github_deployment.github.requests_to("POST", "/reactions$")
        )
        github_deployment.script("Salt.")
        other = github_deployment.world.open_issue(
            github_deployment.ana, github_deployment.boats, "It rusts", "All of it."
        )
        github_deployment.world.comment(github_deployment.ben, other, "Not mine.")
        github_deployment.world.comment(github_deployment.ben, other, "@denizen why?")
        await github_deployment.until(lambda: github_deployment.said(other) == ["Salt."])
    prompt, short = (str(request.body["messages"]) for request in github_deployment.requests[-2:])
    assert short.count("All of it.") == 1, "the opening is told as what the talk is about, not as a comment too"
    assert "ben: Not mine." in short
    assert "#1 It leaks" in prompt and "Labels: bug, hull" in prompt
    begin, _, rest = prompt.partition("Water comes in. ")
    assert begin and len(rest) - len(rest.lstrip("w")) == 1000 - len("Water comes in. ")
    told = [number for number in range(12) if f"Comment {number}." in prompt]
    assert told == list(range(2, 12))
    assert "why, ana?" in prompt and "@Denizen" not in prompt


@pytest.mark.proves("S7")
async def test_who_chooses_the_model_for_a_question_sees_the_thread_that_it_is_about(
    github_deployment: GitHubDeployment,
) -> None:
    github_deployment.configure(agent="model: auto", aliases={"cheap": "local/router", "fast": "local/small"})
    issue = github_deployment.world.open_issue(
        github_deployment.ana, github_deployment.boats, "It leaks", "w" * 501, labels=("bug", "hull")
    )
    route = {"complexity": "simple", "max_steps": 8, "model": "fast", "reason": "one look"}
    github_deployment.script(json.dumps(route), "There is a hole.")
    async with github_deployment.run():
        github_deployment.world.comment(github_deployment.ben, issue, "@denizen why?")
        await github_deployment.until(lambda: github_deployment.said(issue) == ["There is a hole."])
    asked, answered = (request.body for request in github_deployment.requests)
    assert (asked["model"], answered["model"]) == ("router", "small")
    told = json.loads(asked["messages"][-1]["content"].removeprefix("<question>").removesuffix("</question>"))
    assert told["thread"] == {
        "origin": "issue of harbour/boats",
        "title": "#1 It leaks",
        "body": "w" * 500,
        "labels": ["bug", "hull"],
    }


@pytest.mark.proves("S32", "S33")
async def test_pull_requests_reviews_and_discussions_are_answered_where_they_ask(
    github_deployment: GitHubDeployment,
) -> None:
    github_deployment.configure()
    async with github_deployment.run():
        github_deployment.script("The pull request.")
        pull = github_deployment.world.open_pull(
            github_deployment.ben, github_deployment.boats, "Paint it", "@denizen what do you think?"
        )
        await github_deployment.until(lambda: github_deployment.said(pull) == ["The pull request."])
        github_deployment.script("The review.")
        github_deployment.world.review(github_deployment.ana, pull, "@denizen is blue right?")
        await github_deployment.until(lambda: github_deployment.said(pull)[1:] == ["The review."])
        github_deployment.script("The line.")
        first = github_deployment.world.comment_code(github_deployment.ana, pull, "Why this line?")
        asked = github_deployment.world.comment_code(
            github_deployment.ben, pull, "@denizen can you tell?", answers=first
        )
        await github_deployment.until(lambda: pull.review_comments[-1].user is github_deployment.app.user)
        assert pull.review_comments[-1].root is first and pull.review_comments[-1].body.startswith("The line.")
        await github_deployment.until(lambda: not asked.reactions)
        github_deployment.script("The discussion.")
        talk = github_deployment.world.open_discussion(
            github_deployment.ana, github_deployment.boats, "Which sea?", "North or south?"
        )
        comment = github_deployment.world.comment(github_deployment.ben, talk, "@denizen which one?")
        await github_deployment.until(lambda: github_deployment.said(talk) == ["The discussion."])
        assert talk.comments[-1].parent is comment
    prompt = str(github_deployment.requests[-2].body["messages"])
    assert "Why this line?" in prompt and "@@ -1 +1 @@" in prompt
    assert "North or south?" in str(github_deployment.requests[-1].body["messages"])


@pytest.mark.proves("S32", "S33")
async def test_new_issues_are_answered_where_that_is_wanted(github_deployment: GitHubDeployment) -> None:
    github_deployment.configure(conduct=["reply_to_new_issues: true"])
    async with github_deployment.run():
        github_deployment.script("Try pumping.")
        issue = github_deployment.world.open_issue(github_deployment.ben, github_deployment.boats, "It sinks", "Help!")
        await github_deployment.until(lambda: github_deployment.said(issue) == ["Try pumping."])
        pull = github_deployment.world.open_pull(github_deployment.ben, github_deployment.boats, "Fix it", "A patch.")
        assert await github_deployment.settle(pull) == []


@pytest.mark.proves("S32", "S33")
async def test_nothing_but_created_comments_and_opened_issues_of_people_starts_a_turn(
    github_deployment: GitHubDeployment,
) -> None:
    github_deployment.configure()
    robot = github_deployment.world.add_user("robot[bot]", is_bot=True)
    async with github_deployment.run():
        issue = github_deployment.world.open_issue(
            github_deployment.ana, github_deployment.boats, "It leaks", "Water comes in."
        )
        assert await github_deployment.settle(issue) == []  # by then it has looked for what came while it connected
        comment = github_deployment.world.comment(github_deployment.ana, issue, "Hm.")
        github_deployment.world.edit(github_deployment.ana, issue, comment, "@denizen hm?")
        github_deployment.world.comment(robot, issue, "@denizen beep")
        github_deployment.world.comment(github_deployment.app.user, issue, "@denizen I say to myself")
        github_deployment.world.comment(
            github_deployment.ana, issue, "`@denizen` and @denizen-bot and\n> @denizen are not meant"
        )
        github_deployment.world.label(github_deployment.ana, issue, "bug")
        github_deployment.github.ping(github_deployment.app.hook, github_deployment.ana)
        pong = github_deployment.github.deliveries[-1]
        await github_deployment.until(lambda: pong.status)
        assert (pong.status, pong.answer) == (200, '{"status":"pong"}')
        assert [each for each in await github_deployment.settle(issue) if "myself" not in each] == [SETTLED]
    assert len(github_deployment.requests) == 2


@pytest.mark.proves("S-http-github-repos-get")
async def test_the_repositories_of_the_app_can_become_sources(github_deployment: GitHubDeployment) -> None:
    github_deployment.configure()
    async with github_deployment.run() as denizen:
        listed = await to_thread.run_sync(denizen.server.get, "/api/github/repos")
    assert [row["name"] for row in listed.body] == ["harbour/boats"]


@pytest.mark.proves("S33", "S-http-webhooks-post")
async def test_the_same_webhook_again_gives_no_second_answer_and_a_forged_one_none(
    github_deployment: GitHubDeployment,
) -> None:
    github_deployment.configure()
    issue = github_deployment.world.open_issue(github_deployment.ana, github_deployment.boats, "It leaks")
    async with github_deployment.run():
        github_deployment.script("A hole.")
        comment = github_deployment.world.comment(github_deployment.ana, issue, "@denizen why?")
        asked = github_deployment.github.deliveries[-1]
        await github_deployment.until(lambda: github_deployment.said(issue) == ["A hole."])
        github_deployment.world.edit(github_deployment.ana, issue, comment, "@denizen why, really?")
        github_deployment.github.redeliver(asked)
        await github_deployment.until(lambda: asked.status)
        github_deployment.app.hook.secret = "not-the-secret"
        github_deployment.world.comment(github_deployment.ana, issue, "@denizen and now?")
        forged = github_deployment.github.deliveries[-1]
        await github_deployment.until(lambda: forged.status)
        assert forged.status == 401 and "signature_wrong" in forged.answer
        github_deployment.app.hook.secret = SECRET
        assert await github_deployment.settle(issue) == ["A hole."]


@pytest.mark.proves("SW8-errors")
async def test_a_failure_is_told_in_the_thread_as_a_safe_sentence_with_a_reference(
    github_deployment: GitHubDeployment,
) -> None:
    github_deployment.configure()
    issue = github_deployment.world.open_issue(github_deployment.ana, github_deployment.boats, "It leaks")
    async with github_deployment.run() as denizen:
        github_deployment.script(FailedAnswer(400, "the key sk-internal of account 77 at /srv/secret is bad"))
        asked = github_deployment.world.comment(github_deployment.ben, issue, "@denizen why?")
        await github_deployment.until(lambda: github_deployment.said(issue))
        (told,) = github_deployment.said(issue)
        words = told.partition("<sub>")[0]  # the reference is made of digits too
        assert "internal" not in words and "/srv" not in words and "400" not in words
        reference = re.search(r"<sub>Reference: (\S+)</sub>", told)
        assert reference is not None
        await github_deployment.until(lambda: [each.content for each in asked.reactions] == ["confused"])
        assert github_deployment.rows(f"SELECT 1 FROM turns WHERE id = '{reference[1]}'")
        await denizen.kill()


async def test_strangers_are_left_without_a_word_where_only_some_are_answered(
    github_deployment: GitHubDeployment,
) -> None:
    github_deployment.configure(conduct=["answers: [owner]", "repositories: [harbour/*]"])
    issue = github_deployment.world.open_issue(github_deployment.ana, github_deployment.boats, "It leaks")
    async with github_deployment.run():
        github_deployment.world.comment(github_deployment.ben, issue, "@denizen why?")
        github_deployment.script("A hole.")
        github_deployment.world.comment(github_deployment.ana, issue, "@denizen why?")
        await github_deployment.until(lambda: github_deployment.said(issue))
        assert github_deployment.said(issue) == ["A hole."]
    assert len(github_deployment.requests) == 1


@pytest.mark.proves("P1")
async def test_what_is_asked_while_no_webhook_comes_is_answered_once_after_the_start(
    github_deployment: GitHubDeployment,
) -> None:
    github_deployment.configure()
    github_deployment.clock.offset = timedelta(seconds=-5)
    old = github_deployment.world.open_issue(
        github_deployment.ana, github_deployment.boats, "Old", "@denizen from before it was ever there?"
    )
    github_deployment.clock.offset = timedelta()
    async with github_deployment.run() as first:
        assert await github_deployment.settle(old) == []
        await first.stop()
    github_deployment.github.sends_webhooks = False
    github_deployment.clock.offset += timedelta(seconds=1)
    new = github_deployment.world.open_issue(
        github_deployment.ana, github_deployment.boats, "New", "@denizen is anybody there?"
    )
    github_deployment.world.comment(github_deployment.ben, old, "@denizen and here?")
    github_deployment.github.sends_webhooks = True
    github_deployment.script("Yes.", "Yes.")
    async with github_deployment.run():
        await github_deployment.until(
            lambda: github_deployment.said(new) == ["Yes."] and github_deployment.said(old)[1:] == ["Yes."]
        )
        assert await github_deployment.settle(new) == ["Yes."]


async def test_a_private_repository_comes_up_nowhere_else(github_deployment: GitHubDeployment) -> None:
    github_deployment.configure()
    vault = github_deployment.world.add_repository("harbour/vault", owner=github_deployment.ana, private=True)
    github_deployment.app.installations[0].repositories.append(vault)
    issue = github_deployment.world.open_issue(github_deployment.ana, github_deployment.boats, "Public")
    async with github_deployment.run():
        secret = github_deployment.world.open_issue(
            github_deployment.ana, vault, "Combination", "The combination is 4711."
        )
        github_deployment.script("Kept.")
        github_deployment.world.comment(github_deployment.ana, secret, "@denizen keep that, the combination is 4711")
        await github_deployment.until(lambda: github_deployment.said(secret) == ["Kept."])
        github_deployment.script(
            ModelAnswer(calls=[ModelCall("search_archive", {"words": "combination"})]), "I know none."
        )
        github_deployment.world.comment(github_deployment.ben, issue, "@denizen what is it?")
        await github_deployment.until(lambda: github_deployment.said(issue))
    assert len(github_deployment.requests) == 3
    assert "4711" in str(github_deployment.requests[0].body) and "4711" not in str(github_deployment.requests[2].body)


async def test_what_the_asker_would_decide_is_denied_since_strangers_read_along(
    github_deployment: GitHubDeployment,
) -> None:
    github_deployment.configure(rest="gate: {rules: [{tool: calculator, action: ask, deciders: requester}]}\n")
    issue = github_deployment.world.open_issue(github_deployment.ana, github_deployment.boats, "It leaks")
    async with github_deployment.run():
        github_deployment.script(
            ModelAnswer(calls=[ModelCall("calculator", {"expression": "6 * 7"})]), "I may not count."
        )
        github_deployment.world.comment(github_deployment.ben, issue, "@denizen how many planks?")
        await github_deployment.until(lambda: github_deployment.said(issue))
        assert github_deployment.said(issue) == ["I may not count."]
        assert github_deployment.rows("SELECT 1 FROM approvals") == []


async def test_what_owners_decide_waits_for_them_elsewhere_and_nothing_of_it_is_shown_in_the_thread(
    github_deployment: GitHubDeployment,
) -> None:
    github_deployment.configure(rest="gate: {rules: [{tool: calculator, action: ask, deciders: role, role: owner}]}\n")
    issue = github_deployment.world.open_issue(github_deployment.ana, github_deployment.boats, "It leaks")
    async with github_deployment.run():
        github_deployment.script(ModelAnswer(calls=[ModelCall("calculator", {"expression": "6 * 7"})]), "42.")
        github_deployment.world.comment(github_deployment.ben, issue, "@denizen how many planks?")
        await github_deployment.until(
            lambda: github_deployment.rows("SELECT 1 FROM approvals WHERE status = 'pending'")
        )
        ((approval,),) = github_deployment.rows("SELECT id FROM approvals")
        assert github_deployment.said(issue) == [] and github_deployment.rows("SELECT 1 FROM deliveries") == []
        done = await to_thread.run_sync(github_deployment.home.do, "approvals", "approve", str(approval))
        assert done.code == 0, done.err
        await github_deployment.until(lambda: github_deployment.said(issue) == ["42."])
