"""A small GitHub, a listener that writes down what it hears, and accounts that run.

async with running(sim) as (account, heard):
    sim.github.world.comment(...)     # webhooks go nowhere here: `take` is given what the simulator would send
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from denizen.adapters.github.account import GitHubAccount
from denizen.adapters.github.settings import GitHubAccountSettings
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName
from denizen.domain.room import Room
from denizen.ports.channel import (
    ButtonPress,
    CommandCall,
    CommandReply,
    CommandSpec,
    CommunityEvent,
    IncomingMessage,
    ReactionChange,
)
from tests.clock import ManualClock
from tests.github_simulator import App, GitHubServer, GitHubWorld, Repository, User
from tests.github_simulator.hooks import WebhookDelivery, make_payload
from tests.github_simulator.state import Installation
from tests.github_simulator.world import WebhookEvent

SECRET = "a-secret-of-the-webhook"


@dataclass(slots=True)
class GitHubFixture:
    """Ana owns `harbour/boats`, Ben is a stranger; the App is `denizen`. `happened` is what webhooks would tell."""

    github: GitHubServer
    clock: ManualClock
    happened: list[WebhookEvent] = field(default_factory=list[WebhookEvent])
    ana: User = field(init=False)
    ben: User = field(init=False)
    boats: Repository = field(init=False)
    app: App = field(init=False)
    installation: Installation = field(init=False)
    accounts: list[GitHubAccount] = field(default_factory=list[GitHubAccount])

    def __post_init__(self) -> None:
        world = self.github.world
        self.ana, self.ben = world.add_user("ana"), world.add_user("ben")
        self.boats = world.add_repository("harbour/boats", owner=self.ana)
        self.app = world.add_app("denizen", secret=SECRET)
        self.installation = world.install(self.app, self.boats)
        world.told.append(self.happened.append)

    @property
    def world(self) -> GitHubWorld:
        return self.github.world

    def settings(self, **more: Any) -> GitHubAccountSettings:
        """Those of the App."""
        own = GitHubAccountSettings(
            AgentName("ada"),
            self.github.api_url,
            app_id=str(self.app.id),
            private_key=self.app.private_key,
            webhook_secret=SECRET,
            rescan_s=0,
        )
        return replace(own, **more)

    def account(self, **more: Any) -> GitHubAccount:
        self.accounts.append(GitHubAccount(self.settings(**more), self.clock))
        return self.accounts[-1]

    async def aclose(self) -> None:
        for account in self.accounts:
            await account.aclose()

    def payload(self, at: int = -1) -> tuple[str, dict[str, Any]]:
        """Of what happened last: the event and its payload, as they are now."""
        happened = self.happened[at]
        told = make_payload(happened, self.github.url) | {"installation": {"id": self.installation.id}}
        return happened.event, json.loads(json.dumps(told))

    def place(self, number: int, tail: str = "") -> Place:
        channel = f"harbour/boats#{number}"
        if tail.startswith("/discussion"):
            return Place("github", f"{channel}/discussion", f"{channel}{tail}" if tail != "/discussion" else "")
        return Place("github", channel, f"{channel}{tail}" if tail else "")

    def signed(self, delivery: WebhookDelivery) -> tuple[dict[str, str], bytes]:
        return delivery.headers, delivery.body


class RecordingGitHubListener:
    """Implements `ports.channel.Listener`: writes down what it hears."""

    def __init__(self) -> None:
        self.commands: Sequence[CommandSpec] = ()
        self.rooms: list[Room] = []
        self.arrivals: list[IncomingMessage] = []
        self.told_rooms: list[Room] = []
        self.deleted: list[str] = []
        self.gone: list[str] = []
        self.ready = anyio.Event()

    @property
    def questions(self) -> list[str]:
        return [each.question for each in self.arrivals]

    async def on_ready(self, rooms: Sequence[Room]) -> None:
        self.rooms = list(rooms)
        self.ready.set()

    async def on_message(self, message: IncomingMessage) -> None:
        self.arrivals.append(message)

    async def on_delete(self, room: Room, post_ids: Sequence[str]) -> None:
        self.deleted += post_ids

    async def on_reaction(self, reaction: ReactionChange) -> None:
        raise AssertionError(f"GitHub tells of no reactions, but of {reaction.emoji}")

    def awaits(self, kind: str) -> bool:
        return False

    async def on_event(self, event: CommunityEvent) -> None:
        raise AssertionError(f"GitHub tells of no events, but of {event.kind}")

    async def on_room(self, room: Room) -> None:
        self.told_rooms.append(room)

    async def on_room_gone(self, platform: str, room_id: str, *, is_deleted: bool) -> None:
        if is_deleted:
            self.gone.append(room_id)

    async def on_command(self, call: CommandCall) -> CommandReply:
        return CommandReply()

    async def on_suggest(self, call: CommandCall, option: str, typed: str) -> Sequence[str]:
        return ()

    async def on_press(self, press: ButtonPress) -> str:
        return ""


@asynccontextmanager
async def running(sim: GitHubFixture, **more: Any) -> AsyncGenerator[tuple[GitHubAccount, RecordingGitHubListener]]:
    """An account that is connected."""
    account, heard = sim.account(**more), RecordingGitHubListener()
    async with anyio.create_task_group() as group:
        group.start_soon(account.run, heard)
        await sim.github.until(lambda: account.is_connected)
        yield account, heard
        group.cancel_scope.cancel()
