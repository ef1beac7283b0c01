"""Servers that others publish, listed and called: three of npm and three of PyPI."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import anyio
import pytest

from denizen.adapters.mcp import HttpTransport, McpPool, McpServerSpec, McpToolPolicy, StdioTransport
from denizen.domain.clock import SystemClock
from denizen.domain.tool import Tier
from denizen.engine.tools.arguments import ArgumentsError, check_arguments
from tests.adapters.mcp.mcp_fixture import call, module, names, open_toolset
from tests.ports import hold_unused_port
from tests.timing import HANG_LIMIT_S

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("mcp")]


def npm(node: Path, servers: Path, home: Path, name: str, *args: str, **env: str) -> McpServerSpec:
    script = str(servers / f"server-{name}" / "dist" / "index.js")
    return McpServerSpec(name, StdioTransport(str(node), (script, *args), home, tuple(env.items())))


async def test_the_public_server_with_every_feature_is_used(node: Path, npm_servers: Path, tmp_path: Path):
    spec = npm(node, npm_servers, tmp_path, "everything")
    async with open_toolset(spec, McpToolPolicy("all", trusted=True)) as toolset:
        assert (await call(toolset, "all_echo", {"message": "hello"})).text == "Echo: hello"
        listed = {spec.name: spec for spec in await toolset.list_tools()}
        assert len(listed) >= 12 and not toolset.listing.left_out
        assert (await call(toolset, "all_get-sum", {"a": 2, "b": 3})).text == "The sum of 2 and 3 is 5."
        with pytest.raises(ArgumentsError):
            check_arguments(listed["all_get-sum"], {"a": 2})
        picture = await call(toolset, "all_get-tiny-image")
        heard: list[str] = []
        await call(toolset, "all_trigger-long-running-operation", {"duration": 0.2, "steps": 2}, heard.append)
    (image,) = cast("list[dict[str, str]]", picture.data["images"])
    assert image["name"] == "image-1.png"
    assert "base64" not in picture.text
    assert heard[0] == "50%"


@contextmanager
def serving(node: Path, servers: Path, port: int) -> Generator[None]:
    """The server of npm over HTTP, from when it answers until the block ends."""
    script = servers / "server-everything" / "dist" / "index.js"
    command, environ = [node, script, "streamableHttp"], {"PORT": str(port), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stderr is not None
        while b"listening" not in (line := process.stderr.readline()):
            assert line
        try:
            yield
        finally:
            process.kill()


@pytest.mark.proves("LW6")
async def test_an_http_server_that_was_restarted_and_lost_the_session_is_used_again(node: Path, npm_servers: Path):
    with hold_unused_port() as port, anyio.fail_after(HANG_LIMIT_S):
        spec = McpServerSpec("all", HttpTransport(f"http://127.0.0.1:{port}/mcp"))
        async with McpPool(SystemClock()) as pool:
            (toolset,) = pool.open({spec: McpToolPolicy("all")})
            with serving(node, npm_servers, port):
                first = await call(toolset, "all_echo", {"message": "one"})
            with serving(node, npm_servers, port):
                second = await call(toolset, "all_echo", {"message": "two"})
                assert toolset.server.state.starts == 2
    assert (first.text, second.text) == ("Echo: one", "Echo: two")


async def test_the_public_filesystem_server_is_used(node: Path, npm_servers: Path, tmp_path: Path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "a.txt").write_text("within")
    (tmp_path / "secret.txt").write_text("without")
    spec = npm(node, npm_servers, tmp_path, "filesystem", str(tmp_path / "open"))
    async with open_toolset(spec, McpToolPolicy("fs", trusted=True)) as toolset:
        within = await call(toolset, "fs_read_text_file", {"path": str(tmp_path / "open" / "a.txt")})
        without = await call(toolset, "fs_read_text_file", {"path": str(tmp_path / "secret.txt")})
        tiers = {spec.name: spec for spec in await toolset.list_tools()}
    assert (within.text, within.is_error) == ("within", False)
    assert without.is_error and "without" not in without.text
    assert tiers["fs_read_text_file"].tier is Tier.LIMITED
    assert tiers["fs_write_file"].tier is Tier.SENSITIVE and tiers["fs_write_file"].destructive


@pytest.mark.proves("L-config-mcp")
async def test_memory_keeps_its_file_where_its_environment_says(node: Path, npm_servers: Path, tmp_path: Path):
    file = tmp_path / "graph.jsonl"
    spec = npm(node, npm_servers, tmp_path, "memory", MEMORY_FILE_PATH=str(file))
    entity = {"name": "Ana", "entityType": "person", "observations": ["likes tea"]}
    async with open_toolset(spec, McpToolPolicy("memory")) as toolset:
        made = await call(toolset, "memory_create_entities", {"entities": [entity]})
        found = await call(toolset, "memory_search_nodes", {"query": "tea"})
    assert not made.is_error
    assert "Ana" in found.text
    assert "likes tea" in file.read_text()


async def test_the_public_time_server_is_used(tmp_path: Path):
    async with open_toolset(module(tmp_path, "time"), McpToolPolicy("", trusted=True)) as toolset:
        assert await names(toolset) == ["get_current_time", "convert_time"]
        told = await call(
            toolset, "convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        )
        wrong = await call(toolset, "get_current_time", {"timezone": "Mars/Olympus"})
    assert "21:00" in json.loads(told.text)["target"]["datetime"]
    assert wrong.is_error


async def test_the_public_git_server_is_used(tmp_path: Path):
    await anyio.run_process(["git", "init", "-q", "-b", "main", str(tmp_path)])
    async with open_toolset(module(tmp_path, "git", "--repository", str(tmp_path)), McpToolPolicy("git")) as toolset:
        assert "git_git_status" in await names(toolset)
        status = await call(toolset, "git_git_status", {"repo_path": str(tmp_path)})
        elsewhere = await call(toolset, "git_git_status", {"repo_path": "/"})
    assert "On branch main" in status.text
    assert elsewhere.is_error


async def test_the_public_fetch_server_is_used(tmp_path: Path):
    async with open_toolset(module(tmp_path, "fetch"), McpToolPolicy("web")) as toolset:
        assert await names(toolset) == ["web_fetch"]
        refused = await call(toolset, "web_fetch", {"url": "http://127.0.0.1:9/"})
    assert refused.is_error
