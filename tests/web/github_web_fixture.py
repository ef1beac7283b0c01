"""A server with an account on the simulated GitHub, for tests of webhooks and repositories over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio
import httpx2

from denizen.adapters.github.account import GitHubAccount
from denizen.adapters.github.events import sign
from denizen.adapters.github.settings import GitHubAccountSettings
from denizen.app.accounts import ConnectedRepositoryHosts
from denizen.domain.clock import SystemClock
from denizen.domain.ids import AgentName
from denizen.testing.scripted_model import ScriptedModel
from denizen.web.http.auth import ApiKey
from tests.adapters.github.github_fixture import SECRET, RecordingGitHubListener
from tests.github_simulator import GitHubServer, Issue, User, open_github
from tests.github_simulator.hooks import make_payload
from tests.github_simulator.world import WebhookEvent
from tests.web_fixture import WebFixture, open_web

ROUTE = "/api/webhooks/github"


class GitHubWebFixture:
    """A server with an account on GitHub, and what happened there last."""

    def __init__(
        self, web: WebFixture, github: GitHubServer, heard: RecordingGitHubListener, ana: User, issue: Issue
    ) -> None:
        self.web = web
        self.github = github
        self.heard = heard
        self.ana = ana
        self.issue = issue
        self.happened: list[WebhookEvent] = []
        github.world.told.append(self.happened.append)

    def body(self) -> bytes:
        self.github.world.comment(self.ana, self.issue, "@denizen why?")
        return json.dumps(make_payload(self.happened[-1], self.github.url)).encode()

    async def send(
        self, body: bytes, *, event: str = "issue_comment", route: str = ROUTE, **headers: str
    ) -> httpx2.Response:
        sent = make_headers(body) | {"x-github-event": event}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.web.client() as client:
            return await client.post(route, content=body, headers={k: v for k, v in sent.items() if v})


def make_headers(body: bytes) -> dict[str, str]:
    """As GitHub sends them with a comment."""
    signature = sign(SECRET, body)
    return {"content-type": "application/json", "x-github-event": "issue_comment", "x-hub-signature-256": signature}


@asynccontextmanager
async def open_github_web(
    *, secret: str = SECRET, keys: Sequence[ApiKey] = (), connected: bool = True
) -> AsyncGenerator[GitHubWebFixture]:
    clock, heard = SystemClock(), RecordingGitHubListener()
    async with open_github(clock=clock) as github:
        ana = github.world.add_user("ana")
        boats = github.world.add_repository("harbour/boats", owner=ana, description="Things that float")
        vault = github.world.add_repository("harbour/vault", owner=ana, private=True)
        app = github.world.add_app("denizen")
        github.world.install(app, boats, vault)
        issue = github.world.open_issue(ana, boats, "Leak")
        settings = GitHubAccountSettings(
            AgentName("ada"),
            github.api_url,
            app_id=str(app.id),
            private_key=app.private_key,
            webhook_secret=secret,
            rescan_s=0,
        )
        account = GitHubAccount(settings, clock)
        async with (
            open_web(ScriptedModel(), keys=keys, hosting=ConnectedRepositoryHosts(lambda: [account])) as web,
            anyio.create_task_group() as group,
        ):
            if connected:
                group.start_soon(account.run, heard)
                await github.until(lambda: account.is_connected)
            yield GitHubWebFixture(web, github, heard, ana, issue)
            group.cancel_scope.cancel()
