"""Tokens, limits, stumbles and redirects: what is sent to GitHub, and what comes of it."""

from __future__ import annotations

import pytest

from denizen.adapters.github import client as requests
from denizen.adapters.github.comments import add_comment
from denizen.adapters.github.threads import GitHubThread
from denizen.domain.delivery import MessageContent
from denizen.domain.errors import InvalidInput, NeedsAttention, NotAllowed, NotFound, Unavailable
from tests.adapters.github.github_fixture import GitHubFixture, RecordingGitHubListener

pytestmark = pytest.mark.anyio

TOKENS = r"/access_tokens$"
COMMENTS = r"/comments$"


@pytest.mark.proves("S33-token")
async def test_an_installation_token_is_used_for_50_minutes(sim: GitHubFixture) -> None:
    account = sim.account()
    sim.world.open_issue(sim.ana, sim.boats, "Leak")
    for minutes, tokens in ((0, 1), (49, 1), (2, 2), (49, 2), (2, 3)):
        sim.clock.advance(minutes=minutes)
        await account.post(sim.place(1), MessageContent("Hm."), nonce="n")
        assert len(sim.github.requests_to("POST", TOKENS)) == tokens


async def test_a_token_that_was_revoked_is_replaced_once(sim: GitHubFixture) -> None:
    account, issue = sim.account(), sim.world.open_issue(sim.ana, sim.boats, "Leak")
    await account.post(sim.place(1), MessageContent("One."), nonce="n")
    sim.world.tokens.clear()
    await account.post(sim.place(1), MessageContent("Two."), nonce="n")
    assert len(issue.comments) == 2
    sim.github.fail("POST", COMMENTS, status=401, times=2)
    with pytest.raises(NeedsAttention, match="refused the credentials"):
        await account.post(sim.place(1), MessageContent("Three."), nonce="n")


async def test_a_key_that_could_not_be_read_is_called_missing(sim: GitHubFixture) -> None:
    with pytest.raises(NeedsAttention, match="cannot be used") as refused:
        await sim.account(private_key="", key_problem="There is no file app.pem.").run(RecordingGitHubListener())
    assert refused.value.why == "There is no file app.pem."


async def test_a_key_that_is_none_and_one_that_github_does_not_know_need_the_operator(sim: GitHubFixture) -> None:
    other = sim.world.add_app("other")
    for settings, code in (
        ({"private_key": "no key"}, "github_key_unusable"),
        ({"private_key": other.private_key}, "github_credentials_refused"),
        ({"app_id": "", "token": "ghp_wrong"}, "github_credentials_refused"),
    ):
        with pytest.raises(NeedsAttention) as refused:
            await sim.account(**settings).run(RecordingGitHubListener())
        assert refused.value.code == code
        assert "PRIVATE KEY" not in refused.value.explain()


@pytest.mark.parametrize("is_secondary", [False, True], ids=["the hourly limit", "a secondary limit"])
async def test_while_a_limit_lasts_nothing_is_sent(is_secondary: bool, sim: GitHubFixture) -> None:
    account, issue = sim.account(), sim.world.open_issue(sim.ana, sim.boats, "Leak")
    await account.post(sim.place(1), MessageContent("One."), nonce="n")
    sim.github.limit(seconds=90, is_secondary=is_secondary)
    with pytest.raises(Unavailable) as limited:
        await account.post(sim.place(1), MessageContent("Two."), nonce="n")
    assert limited.value.code == "github_rate_limited"
    assert 80 < (limited.value.retry_after_s or 0) <= 90
    sent = len(sim.github.requests)
    with pytest.raises(Unavailable) as limited:
        await account.post(sim.place(1), MessageContent("Two."), nonce="n")
    assert len(sim.github.requests) == sent
    sim.clock.advance(91)
    await account.post(sim.place(1), MessageContent("Two."), nonce="n")
    assert len(issue.comments) == 2


async def test_reading_is_tried_again_and_writing_is_not(sim: GitHubFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "RETRY_S", 0.0)
    account, issue = sim.account(), sim.world.open_issue(sim.ana, sim.boats, "Leak")
    sim.world.comment(sim.ben, issue, "Pump!")
    sim.github.fail("GET", COMMENTS, status=502, times=2)
    assert [post.text for post in await account.list_posts("harbour/boats#1")][1:] == ["Pump!"]
    sim.github.fail("POST", COMMENTS, status=502)
    with pytest.raises(Unavailable):
        await account.post(sim.place(1), MessageContent("Hm."), nonce="n")
    assert len(sim.github.requests_to("POST", COMMENTS)) == 1


async def test_silence_ends_after_a_while(sim: GitHubFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "RESPONSE_TIMEOUT_S", 0.05)
    account = sim.account()
    sim.world.open_issue(sim.ana, sim.boats, "Leak")
    held = sim.github.hold("POST", COMMENTS)
    with pytest.raises(Unavailable, match="could not be reached"):
        await account.post(sim.place(1), MessageContent("Hm."), nonce="n")
    held.release()


async def test_a_renamed_repository_is_found_under_its_old_name(sim: GitHubFixture) -> None:
    account, issue = sim.account(), sim.world.open_issue(sim.ana, sim.boats, "Leak", "Water.")
    await account.post(sim.place(1), MessageContent("One."), nonce="n")
    sim.world.rename(sim.boats, "harbour/ships")
    await account.post(sim.place(1), MessageContent("Two."), nonce="n")
    assert len(issue.comments) == 2
    assert [post.text for post in await account.list_posts("harbour/boats#1")] == ["Water.", "One.", "Two."]


async def test_nothing_is_written_to_where_an_issue_was_transferred(sim: GitHubFixture) -> None:
    account, issue = sim.account(), sim.world.open_issue(sim.ana, sim.boats, "Leak")
    ships = sim.world.add_repository("harbour/ships", owner=sim.ana)
    sim.installation.repositories.append(ships)
    sim.world.transfer(issue, sim.boats, ships)
    with pytest.raises(NotFound) as refused:
        await account.post(sim.place(1), MessageContent("Hm."), nonce="n")
    assert (refused.value.code, issue.comments) == ("github_moved", [])


async def test_a_redirect_to_another_server_is_not_followed(sim: GitHubFixture) -> None:
    account = sim.account()
    sim.world.open_issue(sim.ana, sim.boats, "Leak")
    sim.github.fail("POST", COMMENTS, status=307, headers={"location": "https://elsewhere.example/steal"})
    with pytest.raises(Unavailable) as refused:
        await account.post(sim.place(1), MessageContent("Hm."), nonce="n")
    assert refused.value.why == "It redirects to another server."


async def test_an_enterprise_server_has_graphql_beside_rest(sim: GitHubFixture) -> None:
    for api_url, path in (("", "/graphql"), ("/api/v3", "/api/graphql")):
        account = sim.account(api_url=sim.github.api_url + api_url)
        assert account._api._graphql_url == sim.github.api_url + path


async def test_refusals_say_who_has_to_do_what(sim: GitHubFixture) -> None:
    account, issue = sim.account(), sim.world.open_issue(sim.ana, sim.boats, "Leak")
    issue.locked = True
    with pytest.raises(NotAllowed, match="may not comment") as refused:
        await account.post(sim.place(1), MessageContent("Hm."), nonce="n")
    assert "locked" in refused.value.why
    issue.locked = False
    sim.app.permissions["issues"] = "read"
    with pytest.raises(NotAllowed, match="may not comment"):
        await account.post(sim.place(1), MessageContent("Hm."), nonce="n")
    sim.app.permissions["issues"] = "write"
    with pytest.raises(NotFound):
        await account.post(sim.place(2), MessageContent("Hm."), nonce="n")
    with pytest.raises(InvalidInput) as rejected:
        await account.post(sim.place(1), MessageContent(""), nonce="")
    assert rejected.value.code == "github_rejected"


async def test_a_comment_that_is_too_long_is_refused_and_not_cut_by_github(sim: GitHubFixture) -> None:
    account = sim.account()
    issue = sim.world.open_issue(sim.ana, sim.boats, "Leak")
    with pytest.raises(InvalidInput, match="would not let"):
        await add_comment(account._api, GitHubThread("harbour/boats", 1), "x" * 65_537)
    await account.post(sim.place(1), MessageContent("x" * 65_536), nonce="n" * 25)
    assert len(issue.comments[0].body) <= 65_536
