"""Errors of every kind have one root, and their context is in the log as data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import denizen
from denizen.adapters.models.catalog import ModelsSpec, build_models
from denizen.app.logging import configure_logging
from denizen.app.skill_loading.folder import load_folder
from denizen.domain.errors import DenizenError, NeedsAttention, NotFound
from denizen.engine.listener.background import run_once
from denizen.web.http.auth import check_exposure
from tests.app.home_folder import Home

pytestmark = pytest.mark.anyio

SOURCES = Path(denizen.__file__).parent


def fail_in_config(home: Home) -> None:
    home.load("agents: {ada: {wings: 2}}\n")


def fail_in_model(_: Home) -> None:
    build_models(ModelsSpec(providers=())).get("nobody/tiny")


def fail_in_exposure(_: Home) -> None:
    check_exposure("0.0.0.0", [], has_pages=False)


def fail_in_skill(home: Home) -> None:
    load_folder(home.path, "juggle")


@pytest.mark.proves("V-errors")
@pytest.mark.parametrize(
    ("fail", "code", "known"),
    [
        (fail_in_config, "config_invalid", {"line": 1, "path": "agents.ada.wings"}),
        (fail_in_model, "model_not_found", {"model": "nobody/tiny"}),
        (fail_in_exposure, "server_exposed", {"host": "0.0.0.0"}),
        (fail_in_skill, "skill_unknown", {"skill": "juggle"}),
    ],
)
async def test_errors_of_every_kind_are_logged_with_their_context_as_data(
    home: Home, fail: Callable[[Home], None], code: str, known: dict[str, Any]
) -> None:
    log = home.path / "log.jsonl"
    configure_logging(level="info", style="json", mask=lambda text: text, file=log)

    async def work() -> None:
        fail(home)

    assert not await run_once("trying", work)
    line = json.loads(log.read_text(encoding="utf-8"))
    context = line["context"]
    told = context["problems"][0] if "problems" in context else context
    assert (line["code"], line["event"].startswith("trying ended: ")) == (code, True)
    assert line["fix"]
    assert known.items() <= told.items()


@pytest.mark.proves("V-errors")
def test_no_line_of_the_log_picks_the_code_of_an_error_and_drops_the_rest() -> None:
    for file in SOURCES.rglob("*.py"):
        picked = re.findall(r"""extra=\{[^}]*: (?:error|fault)\.code\b""", file.read_text(encoding="utf-8"))
        assert picked == [], f"{file}: `fields` has the code and the context"


def test_only_what_is_there_is_logged() -> None:
    assert DenizenError("It broke.").fields == {"code": "error", "family": "DenizenError"}
    error = NotFound("No.", code="gone", why="it left", fix="Wait.", room=7)
    assert error.fields == {
        "code": "gone",
        "family": "NotFound",
        "why": "it left",
        "fix": "Wait.",
        "context": {"room": 7},
    }
    assert isinstance(error, DenizenError)
    assert isinstance(NeedsAttention("x"), DenizenError)
