"""An open home folder with the wizard of set-up, a provider of models and a Discord, each a real server on loopback."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
import pytest

from denizen.app.build import Denizen
from denizen.app.configuration import HomeConfiguration
from denizen.app.home.environment import DISCORD_API_VARIABLE, DISCORD_GATEWAY_VARIABLE
from denizen.app.reload import Reloader
from denizen.app.setup_wizard import SetupWizard
from denizen.domain.snapshot import RemoteRepository
from denizen.testing.discord import SimApplication, open_discord
from denizen.testing.discord.fixtures import DiscordFixture, build_discord_fixture
from denizen.testing.model_server import ModelServer, model_server
from denizen.web.http.dependencies import KnowledgeServices
from tests.app.home_folder import Home, open_home
from tests.web.knowledge_web_fixture import OWNER
from tests.web_fixture import ADA, UserRegistration, WebFixture, open_web

FRESH = "# Ours, since today.\nagents:\n  denizen:\n    description: The first inhabitant\n"
"""A home as `denizen setup --non-interactive` leaves it: the built-in model, and nothing else."""


@dataclass
class SetupFixture:
    """`send` posts a form of the wizard as an owner, `read` gets a page; both return the text that people see, too."""

    home: Home
    denizen: Denizen
    wizard: SetupWizard
    web: WebFixture
    client: httpx2.AsyncClient
    models: ModelServer
    sim: DiscordFixture

    @property
    def config(self) -> str:
        return self.home.config.read_text(encoding="utf-8")

    @property
    def secrets(self) -> str:
        file = self.home.path / "secrets.env"
        return file.read_text(encoding="utf-8") if file.exists() else ""

    @property
    def bot(self) -> SimApplication:
        return self.sim.ada

    async def read(self, path: str = "", key: str = "key-of-olga") -> str:
        answer = await self.client.get(f"/admin/setup{path}", headers={"x-api-key": key})
        assert answer.status_code == 200, answer.text
        return answer.text

    async def send(self, path: str, **fields: str) -> httpx2.Response:
        return await self.client.post(f"/admin/setup{path}", headers={"x-api-key": "key-of-olga"}, data=fields)


def shown(page: str) -> str:
    """The words of a page."""
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", page[page.index("<main") :]).split()))


def field_value(page: str, name: str) -> str:
    """What stands in a field of a form."""
    [found] = re.findall(rf'<input id="{name}" [^>]*>', page)
    value = re.search(r'value="([^"]*)"', found)
    return html.unescape(value[1]) if value else ""


@asynccontextmanager
async def open_setup(
    home: Home, monkeypatch: pytest.MonkeyPatch, text: str = FRESH, registration: UserRegistration | None = None
) -> AsyncGenerator[SetupFixture]:
    async with model_server() as models, open_discord() as discord:
        monkeypatch.setenv(DISCORD_API_VARIABLE, discord.api_url)
        monkeypatch.setenv(DISCORD_GATEWAY_VARIABLE, discord.gateway_url)
        for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_COMPATIBLE_API_KEY", "DISCORD_TOKEN_DENIZEN"):
            monkeypatch.delenv(name, raising=False)
        async with open_home(home, text) as denizen:
            files = HomeConfiguration(denizen, Reloader(denizen))
            wizard = SetupWizard(denizen, files)
            parts = denizen.knowledge

            def make_knowledge(*_: object) -> KnowledgeServices:
                return KnowledgeServices(
                    catalog=parts.catalog,
                    search=parts.search,
                    sync=parts.sync,
                    snapshots=parts.snapshots,
                    remote=lambda: RemoteRepository(""),
                    change_remote=parts.remote.claim,
                    webhooks=dict,
                    indexing=lambda: None,
                    embedding=parts.indexing.find_embedding_progress,
                )

            async with (
                open_web(
                    keys=[OWNER, ADA],
                    configuration=files,
                    setup=wizard,
                    make_knowledge=make_knowledge,
                    registration=registration,
                ) as web,
                web.client() as client,
            ):
                yield SetupFixture(home, denizen, wizard, web, client, models, build_discord_fixture(discord))
