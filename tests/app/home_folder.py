"""A home folder in which a test writes its configuration, and the errors that it gives."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from denizen.app.build import Denizen, OpenOptions, open_denizen
from denizen.app.model_choice import ModelChoice
from denizen.app.settings import Settings, load_settings
from denizen.domain.conversation import Place
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import AgentName
from denizen.domain.message import Author, TextPart
from denizen.domain.turn import Sender, TurnRequest


@dataclass
class Home:
    """`environment` is what the variables are taken from; nothing comes from the real one."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])

    def using(self, environment: Mapping[str, str]) -> Home:
        return Home(self.path, dict(environment))

    @property
    def config(self) -> Path:
        return self.path / "denizen.yaml"

    def write(self, text: str) -> None:
        self.config.write_text(text, encoding="utf-8")

    def add_file(self, name: str, text: str, mode: int = 0o644) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(mode)
        return file

    def load(self, text: str | None = None, *, known_tools: frozenset[str] | None = None, **variables: str) -> Settings:
        if text is not None:
            self.write(text)
        return load_settings(self.path, self._variables(variables), known_tools=known_tools)

    def refuse(self, text: str, *, known_tools: frozenset[str] | None = None, **variables: str) -> InvalidInput:
        """The error that a configuration gives."""
        self.write(text)
        with pytest.raises(InvalidInput) as caught:
            load_settings(self.path, self._variables(variables), known_tools=known_tools)
        assert caught.value.code == "config_invalid"
        return caught.value

    def _variables(self, more: Mapping[str, str]) -> dict[str, str]:
        return {**self.environment, **more}


LAB = """
models:
  providers: {lab: {kind: openai-compatible, base_url: "http://127.0.0.1:9/v1"}}
  aliases: {balanced: lab/one}
"""


@asynccontextmanager
async def open_home(home: Home, text: str = LAB, choice: ModelChoice | None = None) -> AsyncGenerator[Denizen]:
    home.write(text)
    async with open_denizen(home.path, OpenOptions(choice or ModelChoice(), durable=False)) as denizen:
        yield denizen


def make_request(denizen: Denizen, text: str, key: str = "m1", *, agent: str = "") -> TurnRequest:
    """A message of the operator at the terminal; without `agent` it is for the default one."""
    return TurnRequest(
        agent=AgentName(agent),
        place=Place("terminal", "test"),
        sender=Sender(Author("", "Ana"), denizen.operator),
        parts=(TextPart(text),),
        platform_id=key,
    )
