"""The container files keep secrets out of git and images, give nothing a default password, and run as nobody."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
from ruamel.yaml import YAML

from tests.timing import HANG_LIMIT_S

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "deploy" / "docker"
SECRET_FILES = ("deploy/docker/.env", "deploy/docker/secrets/postgres_password", ".env", "secrets.env")


@pytest.fixture
def services() -> dict[str, Any]:
    return YAML(typ="safe").load((DOCKER / "compose.yaml").read_text(encoding="utf-8"))["services"]


def call(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )


@pytest.mark.parametrize("file", SECRET_FILES)
def test_git_ignores_files_of_secrets(file: str) -> None:
    assert call("git", "check-ignore", "--no-index", file).stdout.strip() == file


def test_an_image_is_built_without_secrets_and_from_the_locks() -> None:
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    assert {"deploy", "**/.env", "**/*.env", ".git", "**/denizen.yaml"} <= set(ignored)
    text = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    assert "--require-hashes -r locks/run.txt" in text
    assert not re.search(r"^ADD |curl|wget|:latest|--privileged", text, re.MULTILINE)
    assert not re.search(r"^(?:ARG|ENV) .*(?:PASSWORD|SECRET|TOKEN|KEY)", text, re.MULTILINE)
    last = text.rpartition("\nFROM ")[2]
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last and "VOLUME /data" in last


def test_each_service_is_checked_and_locked_down_and_has_no_password_of_its_own(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert service["healthcheck"]["test"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["secrets"] == ["postgres_password"], name
        assert "POSTGRES_PASSWORD" not in service.get("environment", {}), name
    denizen = services["denizen"]
    assert (denizen["read_only"], denizen["cap_drop"]) == (True, ["ALL"])
    assert denizen["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert all(port.startswith("127.0.0.1:") for port in denizen["ports"])
    assert "ports" not in services["postgres"] and "pgvector" in services["postgres"]["image"]


def test_the_password_reaches_the_program_from_its_file_and_a_missing_one_stops_it(
    services: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "denizen").write_text('#!/bin/sh\necho "$DENIZEN_STORE_URL|$*"\n', encoding="utf-8")
    (tmp_path / "denizen").chmod(0o755)
    password = tmp_path / "password"
    entry = [
        part.replace("$$", "$").replace("/run/secrets/postgres_password", str(password))
        for part in cast("list[str]", services["denizen"]["entrypoint"])
    ]
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert call(*entry, "run", PATH=path).returncode != 0
    password.write_text("c0ffee\n", encoding="utf-8")
    done = call(*entry, "run", "--host", "0.0.0.0", PATH=path)
    assert done.stdout == "postgresql://denizen:c0ffee@postgres/denizen|run --host 0.0.0.0\n"
