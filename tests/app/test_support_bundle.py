"""A report for helpers is made of what is harmless: a secret is not in it, wherever somebody wrote it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from denizen.adapters.log_files import LogFiles
from denizen.app.health import CheckOutcome
from denizen.app.logging import LogKeeper
from denizen.app.settings.key_schema import config_schema
from denizen.app.settings.yaml_document import write_document
from denizen.app.support_bundle import OUTLINE_FILE, build_bundle, outline_configuration
from denizen.domain.diagnosis import Diagnosis, Severity
from denizen.domain.errors import Unavailable
from denizen.engine import turn

pytestmark = pytest.mark.anyio

PLANTED = "planted"
MOST_DEPTH = 24


class Planter:
    """Builds a configuration with a secret of its own in every place that the schema has, as value and as name."""

    def __init__(self) -> None:
        self.count = 0

    def secret(self) -> str:
        self.count += 1
        return f"{PLANTED}Secret{self.count}x"

    def plant(self, schema: dict[str, Any], depth: int = 0) -> Any:
        if "$ref" in schema:
            schema = config_schema()["$defs"][schema["$ref"].rpartition("/")[2]]
        options = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
        if options:
            shapes = [each for each in options if "$ref" in each or each.get("type") in ("object", "array")]
            return self.plant((shapes or options)[0], depth)
        if depth > MOST_DEPTH:
            return self.secret()
        match schema.get("type"):
            case "object":
                planted = {key: self.plant(each, depth + 1) for key, each in schema.get("properties", {}).items()}
                more = schema.get("additionalProperties")
                below = cast("dict[str, Any]", more) if isinstance(more, dict) else {}
                return planted | {self.secret(): self.plant(below, depth + 1)}
            case "array":
                return [self.plant(schema.get("items", {}), depth + 1), self.secret()]
            case "integer" | "number":
                return f"https://{self.secret()}:{self.secret()}@example.org"
            case _:
                return self.secret()


async def test_no_field_of_the_configuration_gives_away_what_was_written_there(tmp_path: Path) -> None:
    planter = Planter()
    text = write_document(planter.plant(config_schema()), (2, 2))
    assert planter.count > 500
    assert text.count(PLANTED) >= planter.count
    (tmp_path / "denizen.yaml").write_text(f"# {planter.secret()}\n{text}", encoding="utf-8")
    (tmp_path / planter.secret()).write_text("a file of somebody", encoding="utf-8")
    files = await build_bundle(tmp_path, [], lambda text: text)
    assert [name for name, each in files.items() if PLANTED in each] == []
    assert "api_key: '***'" in files[OUTLINE_FILE]


@pytest.mark.parametrize("text", [f"server: {{port: {PLANTED}\n", f"a: 1\na: {PLANTED}\n", f"{PLANTED}\n"])
def test_a_file_that_is_no_configuration_is_not_quoted(text: str) -> None:
    assert PLANTED not in outline_configuration(text)


def test_an_outline_keeps_what_is_harmless() -> None:
    outline = outline_configuration(
        "server: {port: 8700, registration: open, host: example.org}\n"
        "store: {url: 'postgresql://${PGUSER}@db/x'}\n"
        "models: {providers: {main: {kind: anthropic, api_key: '${MAIN_KEY}'}}}\n"
        "agents: {zaphod: {}, trillian: {}}\ndefault_agent: trillian\n"
        "channels: {discord: {enabled: true, owners: [112233445566778899]}}\n"
    )
    assert "port: 8700" in outline and "registration: open" in outline and "host: '***'" in outline
    assert "url: '***'" in outline
    assert "kind: anthropic" in outline and "${MAIN_KEY}" in outline
    assert "name-3: {}" in outline and "default_agent: name-3" in outline
    assert "enabled: true" in outline
    assert not [word for word in ("zaphod", "trillian", "example", "PGUSER", "1122334455") if word in outline]


async def test_the_log_is_told_by_names_codes_numbers_and_places_without_words(tmp_path: Path) -> None:
    keeper = LogKeeper(LogFiles(tmp_path / "logs"), lambda text: text)
    package = logging.getLogger("denizen.turn")

    def log(text: str, *args: object, by: str, error: BaseException | None = None, **fields: object) -> None:
        info = (type(error), error, error.__traceback__) if error is not None else None
        record = package.makeRecord("denizen.turn", logging.ERROR, by, 7, text, args, info, extra=fields)
        keeper.emit(record)

    try:
        try:
            await anyio.Path(tmp_path / f"{PLANTED}-file").read_text()
        except OSError as error:
            raise ValueError(PLANTED) from error
    except ValueError as error:
        log("turn fault %s", PLANTED, by=turn.__file__, error=error, code="model_away", attempts=3, why=PLANTED)
        log(f"a library says {PLANTED}", by="/elsewhere/library.py", code=PLANTED)
    log("request %s", PLANTED, by=turn.__file__, path=f"/share/{PLANTED}", user_id=112233445566778899, status=500)
    keeper.close()
    files = await build_bundle(tmp_path, [], lambda text: text)
    assert PLANTED not in files["log.jsonl"]
    fault, foreign, request = [json.loads(line) for line in files["log.jsonl"].splitlines()]
    assert fault["event"] == "turn fault %s"
    assert (fault["code"], fault["attempts"]) == ("model_away", 3)
    assert "ValueError" in fault["frames"] and "FileNotFoundError" in fault["frames"]
    assert any("anyio" in each for each in fault["frames"])
    assert foreign.keys() == {"at", "level", "event"}
    assert (request["status"], request["event"]) == (500, "request %s")
    assert "user_id" not in request


async def test_findings_are_told_by_kind_and_code(tmp_path: Path) -> None:
    finding = Diagnosis(Severity.WARNING, f"In {PLANTED} it sees nothing.", PLANTED, "discord_channels_hidden")
    error = Unavailable(f"{PLANTED} is away.", code="model_away", why=f"https://u:{PLANTED}@host")
    outcomes = [
        CheckOutcome(f"discord {PLANTED}", "discord", [finding]),
        CheckOutcome(f"model {PLANTED}", "model", error=error),
    ]
    files = await build_bundle(tmp_path, outcomes, lambda text: text)
    assert files["doctor.txt"] == "warning  discord discord_channels_hidden\nfailed   model model_away Unavailable\n"
