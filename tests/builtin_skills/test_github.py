"""GitHub for agents, on a server of this machine that answers as GitHub does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from denizen.adapters.fetch import WebFetcher
from denizen.builtin_skills.github import skill
from denizen.domain.ids import CallId
from denizen.domain.json import Json
from denizen.domain.tool import ToolCall, ToolResult
from denizen.skill import SkillToolset
from tests.local_server import Answer, LocalServer, serve
from tests.skill_fixture import ServicesFixture, scope

pytestmark = pytest.mark.anyio

SECRET = "ghp_" + "t0ken"
ISSUE = {"number": 7, "title": "The door is stuck", "state": "open", "body": "Push it.", "user": {"login": "ana"}}
ROUTES: Mapping[str, object] = {
    "/repos/club/site": {"full_name": "club/site", "description": "Our site"},
    "/repos/club/site/issues/7": ISSUE,
    "/repos/club/site/issues/7/comments": [{"user": {"login": "ben"}, "body": "I did."}],
    "/repos/club/site/issues": [ISSUE],
    "/repos/club/site/commits": [{"sha": "abcdef0123456789", "commit": {"message": "Oil the door\n\nAgain."}}],
    "/search/issues": {"items": [ISSUE]},
}


def answer_with(content: object) -> Answer:
    return lambda exchange: exchange.say(json.dumps(content), kind="application/json")


def open_github(**more: Answer) -> AbstractContextManager[LocalServer]:
    routes = {path: answer_with(content) for path, content in ROUTES.items()}
    routes["/repos/club/site/contents/docs/a b.md"] = lambda exchange: exchange.say("# Doors")
    return serve({**routes, **more})


class GitHubFixture:
    def __init__(self, root: Path, server: LocalServer, *repositories: str) -> None:
        self.fixture, self.server = ServicesFixture(root), server
        self.settings: dict[str, Json] = {"token": SECRET, "server": server.url(""), "repositories": list(repositories)}

    async def call(self, tool: str, **args: Json) -> ToolResult:
        fetcher = WebFetcher(allow_private=[self.server.address], backoff_s=(0.0,))
        services = replace(self.fixture.services(), send_request=fetcher.send)
        return await SkillToolset(skill, services, self.settings).call(ToolCall(CallId("c"), tool, args), scope())

    async def read(self, what: str, which: str = "", repository: str = "club/site") -> str:
        result = await self.call("read_github", repository=repository, what=what, which=which)
        assert not result.is_error, result.text
        return result.text

    @property
    def keys(self) -> set[str]:
        return {each.headers.get("authorization", "") for each in self.server.requests}


@pytest.mark.proves("V-skill-integrations")
async def test_repositories_issues_files_and_commits_are_read_and_searched(tmp_path: Path) -> None:
    with open_github() as server:
        github = GitHubFixture(tmp_path, server)
        assert "club/site Our site" in await github.read("repository")
        issue = await github.read("issue", "7")
        assert "#7 open The door is stuck by ana" in issue and "Push it.\nben: I did." in issue
        assert "<untrusted" in issue
        assert "#7 open" in await github.read("issues")
        assert "abcdef0123 Oil the door" in await github.read("commits")
        assert "The door is stuck" in (await github.call("search_github", query="door")).text
        assert github.keys == {""}  # the token is for listed repositories


@pytest.mark.proves("V-skill-integrations")
async def test_listed_repositories_are_read_and_written_with_the_token_and_others_are_not_written(
    tmp_path: Path,
) -> None:
    made = answer_with({"html_url": "https://github.com/club/site/issues/8"})
    with open_github(**{"/repos/club/site/issues": made}) as server:
        github = GitHubFixture(tmp_path, server, "Club/*")
        done = await github.call("create_issue", repository="club/site", title="Oil", body="It squeaks.")
        assert done.text == "Done: https://github.com/club/site/issues/8"
        await github.call("close_issue", repository="club/site", number=7)
        await github.call("comment_on_github", repository="club/site", number=7, text="Oiled.")
        assert [(each.method, json.loads(each.body)) for each in server.requests] == [
            ("POST", {"title": "Oil", "body": "It squeaks."}),
            ("PATCH", {"state": "closed"}),
            ("POST", {"body": "Oiled."}),
        ]
        assert github.keys == {f"Bearer {SECRET}"}
        asked = len(server.requests)
        refused = await github.call("create_issue", repository="other/site", title="Oil")
        assert refused.is_error and "tools.github.repositories" in refused.text
        assert len(server.requests) == asked


@pytest.mark.parametrize("name", ["club", "club/..", "club/site/../../user", "club/site?x=1", "club/site#"])
async def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with open_github() as server:
        github = GitHubFixture(tmp_path, server, "*")
        assert (await github.call("read_github", repository=name, what="repository")).is_error
        assert (await github.call("create_issue", repository=name, title="x")).is_error
        assert (await github.call("read_github", repository="club/site", what="file", which="../x")).is_error
        assert not server.requests


async def test_what_github_refuses_says_why_without_the_token(tmp_path: Path) -> None:
    def refuse(status: int) -> Answer:
        return lambda exchange: exchange.say(f'{{"message": "{SECRET}"}}', status=status)

    with open_github(
        **{"/repos/club/a": refuse(404), "/repos/club/b": refuse(403), "/repos/club/c": refuse(500)}
    ) as up:
        github = GitHubFixture(tmp_path, up, "club/*")
        for name, why in (("a", "private"), ("b", "refuses"), ("c", "500")):
            refused = await github.call("read_github", repository=f"club/{name}", what="repository")
            assert refused.is_error and why in refused.text and SECRET not in refused.text
