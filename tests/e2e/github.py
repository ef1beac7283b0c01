"""Denizen on a GitHub that is simulated in the process of the test: a repository with people and an App, and
`denizen run` processes that its webhooks reach.

    async with open_github_deployment(home, provider) as deployment:
        deployment.configure()
        async with deployment.run():
            issue = deployment.world.open_issue(deployment.ana, deployment.boats, "It leaks", "Water comes in.")
            deployment.world.comment(deployment.ana, issue, "@denizen why?")
            await deployment.until(lambda: deployment.said(issue) == ["A hole."])
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio import to_thread

from denizen.adapters.github.markdown import from_body
from tests.clock import OffsetClock
from tests.e2e.deployment import SETTLED, Denizen, Deployment
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.github_simulator import App, GitHubServer, GitHubWorld, Issue, Repository, User, open_github
from tests.github_simulator.state import Talk

SECRET = "a-secret-of-the-webhook"

CONFIG = """\
models:
  providers:
    local: {{kind: openai-compatible, base_url: "{url}"}}
  aliases: {{balanced: local/scripted{aliases}}}
default_agent: ada
agents: {{ada: {{{agent}}}}}
channels:
  github:
    api_url: "{api_url}"
    accounts:
      ada: {{app_id: "{app_id}", private_key_file: app.pem, webhook_secret: "${{HOOK_SECRET}}"}}
{conduct}{rest}"""


@dataclass(slots=True)
class GitHubDeployment(Deployment):
    """Ana owns the repository `harbour/boats`, Ben is a stranger; the App is `denizen`, of the agent `ada`."""

    github: GitHubServer
    clock: OffsetClock
    provider: Provider
    home: Home
    boats: Repository
    ana: User
    ben: User
    app: App
    denizens: list[Denizen] = field(default_factory=list[Denizen])

    @property
    def simulator(self) -> GitHubServer:
        return self.github

    @property
    def world(self) -> GitHubWorld:
        return self.github.world

    def configure(
        self, *, conduct: Sequence[str] = (), agent: str = "", aliases: Mapping[str, str] | None = None, rest: str = ""
    ) -> None:
        """`conduct` are lines of `channels.github`, `agent` the inside of Ada's section, `aliases` a further alias to
        its model.
        """
        text = CONFIG.format(
            url=self.provider.server.openai_url,
            api_url=self.github.api_url,
            app_id=self.app.id,
            agent=agent,
            aliases="".join(f", {alias}: {model}" for alias, model in (aliases or {}).items()),
            conduct="".join(f"    {line}\n" for line in conduct),
            rest=rest,
        )
        self.home.write(text)
        self._write("app.pem", self.app.private_key)
        self._write("secrets.env", f"HOOK_SECRET={SECRET}\n")

    def _write(self, name: str, text: str) -> None:
        file = self.home.folder / name
        file.write_text(text, encoding="utf-8")
        os.chmod(file, 0o600)  # noqa: PTH101

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[Denizen]:
        """A `denizen run` that has its account ready and gets webhooks; it is dead at the end of the block."""
        denizen = Denizen(await to_thread.run_sync(self.home.serve))
        self.denizens.append(denizen)
        self.app.hook.url = f"{denizen.server.url}/api/webhooks/github"
        try:
            await self.until(lambda: denizen.lines("account ready"))
            yield denizen
        finally:
            with anyio.CancelScope(shield=True):
                await denizen.kill()

    def said(self, talk: Talk) -> list[str]:
        """What the App has there now, without the marks."""
        return [from_body(each.body)[0] for each in talk.comments if each.user is self.app.user]

    async def settle(self, issue: Issue) -> list[str]:
        """Everything that was said there before is decided and answered; texts before that answer are returned."""
        before = self.said(issue).count(SETTLED)
        self.script(SETTLED)
        self.world.comment(self.ben, issue, "@denizen was that all?")
        await self.until(lambda: self.said(issue).count(SETTLED) > before)
        *earlier, last = self.said(issue)
        assert last == SETTLED
        return earlier


@asynccontextmanager
async def open_github_deployment(home: Home, provider: Provider) -> AsyncGenerator[GitHubDeployment]:
    """A GitHub with a small world, and a home that is pointed at it."""
    clock = OffsetClock()
    async with open_github(clock=clock) as github:
        world = github.world
        ana, ben = world.add_user("ana"), world.add_user("ben")
        boats = world.add_repository("harbour/boats", owner=ana)
        app = world.add_app("denizen", secret=SECRET)
        world.install(app, boats)
        yield GitHubDeployment(github, clock, provider, home, boats, ana, ben, app)
