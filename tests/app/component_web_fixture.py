"""An open home folder with the pages for its models, skills and MCP servers."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from denizen.app.build import Denizen
from denizen.app.components import build_components
from denizen.app.configuration import HomeConfiguration
from denizen.app.reload import Reloader
from denizen.app.schedule_configuration import HomeSchedules
from denizen.web.http.dependencies import ScheduleServices
from tests.app.home_folder import Home, open_home
from tests.web.knowledge_web_fixture import OWNER
from tests.web.test_source_pages import Browser
from tests.web_fixture import ADA, ANN, WebFixture, make_hello_model, open_web


@dataclass
class ComponentWebFixture:
    """`olga` is an owner, `ada` an admin."""

    home: Home
    denizen: Denizen
    web: WebFixture
    olga: Browser
    ada: Browser

    @property
    def text(self) -> str:
        return self.home.config.read_text(encoding="utf-8")


@asynccontextmanager
async def open_components(home: Home, text: str) -> AsyncGenerator[ComponentWebFixture]:
    async with open_home(home, text) as denizen:
        files = HomeConfiguration(denizen, Reloader(denizen))
        components = build_components(denizen, files)
        schedules = ScheduleServices(denizen.schedule_catalog, HomeSchedules(denizen.schedule_catalog, files))
        async with (
            open_web(
                make_hello_model(),
                keys=[OWNER, ADA, ANN],
                configuration=files,
                components=components,
                schedules=schedules,
                plan_policy=files.plan_policy,
            ) as web,
            web.client() as client,
        ):
            olga, ada = Browser(client, "key-of-olga"), Browser(client, "key-of-ada")
            yield ComponentWebFixture(home, denizen, web, olga, ada)


def read_words(page: str) -> str:
    """The text of a page without its tags, in one line."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())
