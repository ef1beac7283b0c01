"""What a model gives to a tool of a platform reaches the platform's action, whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from denizen.builtin_skills import load_builtin
from denizen.domain.errors import NotFound
from denizen.domain.json import Json, JsonObject
from denizen.domain.tool import ToolSpec
from denizen.ports.fetch import DownloadedFile
from denizen.ports.toolset import CallScope
from denizen.skill import ScopedServices, SkillToolset
from tests.skill_fixture import ServicesFixture, run

SKILLS = ("server", "members", "components", "discord", "moderation")
CHOOSING = frozenset({"unpin", "remove"})
"""Parameters that choose the action, and are set here."""
ACTIONS = {
    "delete_own_message": "delete_message",
    "pin_message": "unpin_message",
    "react": "remove_reaction",
    "list_warnings": "judge_member",
    "purge_messages": "choose_messages",
}
"""Those that have another name than their tool."""
LOADED = frozenset({"url", "minutes"})
"""Parameters in whose place a picture or a time is given on."""
OWN = frozenset({"remove_warning"})
"""Tools whose parameters are not for the platform."""
TOOLS = [(skill, spec) for skill in SKILLS for spec in load_builtin(skill).specs() if spec.name not in OWN]
TIME = "2026-11-01T20:00:00+00:00"


@dataclass
class RecordingActions:
    """Platform actions that remember what was asked of them, and find nothing."""

    asked: list[tuple[str, JsonObject]] = field(default_factory=list[tuple[str, JsonObject]])

    def open(self, scope: CallScope) -> RecordingActions:
        del scope
        return self

    async def act(self, action: str, /, **details: Json) -> JsonObject:
        if action.startswith("check_"):  # whether it could succeed
            return {}
        self.asked.append((action, details))
        raise NotFound("There is no such thing.")

    async def check(self, action: str, /, **details: Json) -> None:
        raise AssertionError(f"{action} is not called with {details}")


def make_value(name: str, schema: Mapping[str, Any]) -> Json:
    """A value that the schema allows and that is not the default."""
    match schema["type"]:
        case "object":
            known = schema.get("properties") or {"some key": schema["additionalProperties"]}
            return {key: make_value(key, each) for key, each in known.items()}
        case "array":
            return [make_value(name, schema["items"])]
        case "boolean":
            return True
        case "integer":
            return schema["minimum"] + 2
        case _:
            return TIME if name in {"start", "end"} else schema.get("enum", [f"some_{name}"])[-1]


async def download(url: str, *, timeout_s: float = 60.0, max_bytes: int = 25_000_000) -> DownloadedFile:
    del timeout_s, max_bytes
    return DownloadedFile(url, 200, "image/png", b"PNG", truncated=False)


@pytest.mark.anyio
@pytest.mark.proves(
    "V-skill-server-management",
    "V-skill-user-management",
    "V-skill-components",
    "V-skill-discord",
    "V-skill-moderation",
    "V-skill-utility",
)
@pytest.mark.parametrize(("skill", "spec"), TOOLS, ids=[spec.name for _, spec in TOOLS])
async def test_all_that_a_model_gives_reaches_the_action(skill: str, spec: ToolSpec, tmp_path: Path) -> None:
    actions = RecordingActions()
    plain = ServicesFixture(tmp_path).services()
    services = replace(plain, scoped=ScopedServices(open_platform=actions.open), download=download)
    properties = cast("Mapping[str, Any]", spec.parameters.get("properties", {}))
    given = {name: make_value(name, schema) for name, schema in properties.items()}
    await run(SkillToolset(load_builtin(skill), services), spec.name, given)
    [(action, details)] = actions.asked
    assert action == ACTIONS.get(spec.name, spec.name)
    wanted = {name: value for name, value in given.items() if name not in CHOOSING | LOADED}
    assert {name: details.get(name) for name in wanted} == wanted
