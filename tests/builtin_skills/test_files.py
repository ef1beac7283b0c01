"""Files below allowed folders: nothing else, whatever the path, the links, or what changes in between."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from denizen.builtin_skills import load_builtin
from denizen.builtin_skills.files import MAX_BYTES
from denizen.domain.json import JsonObject
from denizen.domain.tool import Tier, ToolResult
from denizen.skill import SkillToolset
from tests.skill_fixture import ServicesFixture, run

pytestmark = pytest.mark.anyio


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "note.txt").write_text("inside", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("hidden words", encoding="utf-8")
    (tmp_path / "shared-too").mkdir()
    (tmp_path / "shared-too" / "secret.txt").write_text("hidden words", encoding="utf-8")
    return folder


def files(*allowed: Path) -> SkillToolset:
    section: JsonObject = {"allowed": [str(path) for path in allowed]} if allowed else {}
    return SkillToolset(load_builtin("files"), ServicesFixture(allowed[0] if allowed else Path()).services(), section)


async def read(shared: Path, path: str) -> ToolResult:
    return await run(files(shared), "read", {"path": path})


@pytest.mark.proves("T-tool-read")
async def test_a_file_below_an_allowed_folder_is_read_by_its_whole_or_its_relative_path(shared: Path) -> None:
    assert (await read(shared, f"{shared}/sub/note.txt")).text == "inside"
    assert (await read(shared, "sub/note.txt")).text == "inside"


@pytest.mark.proves("T-tool-read", "TW7")
async def test_nothing_outside_is_read(shared: Path) -> None:
    outside = shared.parent / "secret.txt"
    (shared / "link.txt").symlink_to(outside)
    (shared / "way").symlink_to(shared.parent)
    os.mkfifo(shared / "pipe")
    for path in (
        str(outside),
        "../secret.txt",
        f"{shared}/../secret.txt",
        f"{shared}-too/secret.txt",
        "sub/../../secret.txt",
        "link.txt",
        "way/secret.txt",
        "/etc/hostname",
        "pipe",
        "sub",
        "",
        "/",
        "sub/note.txt\0",
        f"{shared}",
    ):
        result = await read(shared, path)
        assert result.is_error, path
        assert "hidden words" not in result.text


@pytest.mark.proves("T-tool-write", "TW7")
async def test_nothing_is_written_outside(shared: Path) -> None:
    outside = shared.parent / "secret.txt"
    (shared / "link.txt").symlink_to(outside)
    (shared / "way").symlink_to(shared.parent)
    for path in (str(outside), "../new.txt", "link.txt", "way/new.txt", f"{shared}-too/new.txt", "none/new.txt"):
        for tool in ("write", "replace_file"):
            assert (await run(files(shared), tool, {"path": path, "content": "evil"})).is_error, path
    assert outside.read_text(encoding="utf-8") == "hidden words"
    assert not (shared.parent / "new.txt").exists()


@pytest.mark.proves("T-tool-write")
async def test_a_new_file_is_written_whole_and_an_old_one_only_by_the_tool_that_says_so(shared: Path) -> None:
    tools = files(shared)
    assert (await run(tools, "write", {"path": "sub/new.txt", "content": "one"})).text == "Wrote sub/new.txt."
    assert (await run(tools, "write", {"path": "sub/new.txt", "content": "one"})).text.endswith("already.")
    refused = await run(tools, "write", {"path": "sub/new.txt", "content": "two"})
    assert refused.is_error and "replace_file" in refused.text
    assert not (await run(tools, "replace_file", {"path": "sub/new.txt", "content": "two"})).is_error
    assert (shared / "sub" / "new.txt").read_text(encoding="utf-8") == "two"
    assert sorted(path.name for path in (shared / "sub").iterdir()) == ["new.txt", "note.txt"]
    specs = {spec.name: spec for spec in await tools.list_tools()}
    assert (specs["write"].tier, specs["write"].destructive) == (Tier.DANGEROUS, False)
    assert (specs["replace_file"].tier, specs["replace_file"].destructive) == (Tier.DANGEROUS, True)


async def test_sizes_are_bounded_and_bytes_are_no_text(shared: Path) -> None:
    (shared / "large.txt").write_bytes(b"x" * (MAX_BYTES + 1))
    (shared / "picture.png").write_bytes(b"\x89PNG\xff")
    assert "larger than" in (await read(shared, "large.txt")).text
    assert "not text" in (await read(shared, "picture.png")).text
    too_much: JsonObject = {"path": "new.txt", "content": "x" * (MAX_BYTES + 1)}
    assert (await run(files(shared), "write", too_much)).is_error


@pytest.mark.proves("T-tool-read", "T-tool-write")
async def test_without_allowed_folders_nothing_is_reached(shared: Path) -> None:
    assert "tools.files.allowed" in (await run(files(), "read", {"path": f"{shared}/sub/note.txt"})).text
    written = await run(files(), "write", {"path": f"{shared}/new.txt", "content": "x"})
    assert "tools.files.allowed" in written.text
    assert not (shared / "new.txt").exists()
