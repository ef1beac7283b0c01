"""Notes: reading, changing and searching in the agent's own folder, and no way out of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from denizen.builtin_skills import notes as notebook_module
from denizen.builtin_skills.notes import MAX_NOTE_BYTES, MAX_NOTES, Notebook, skill
from denizen.domain.conversation import Place
from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import Effect, Taint, ToolResult
from denizen.skill import SkillToolset, ToolError
from tests.skill_fixture import ServicesFixture, run, scope

pytestmark = pytest.mark.anyio

ALLOWED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


class NotesFixture:
    """The notes tools of one agent."""

    def __init__(self, root: Path, agent: str = "ada") -> None:
        self._toolset = SkillToolset(skill, ServicesFixture(root).services())
        self._agent = agent
        self.folder = root / agent / "notes" / "rooms" / "discord-42"

    async def __call__(self, tool: str, args: JsonObject, *, key: str = "") -> ToolResult:
        return await run(self._toolset, tool, args, scope(agent=self._agent, key=key))

    def content(self, name: str) -> str:
        return (self.folder / f"{name}.md").read_text()


@pytest.fixture
def fixture(tmp_path: Path) -> NotesFixture:
    return NotesFixture(tmp_path / "agents")


@pytest.mark.proves("T-tool-memory")
async def test_notes_are_written_read_listed_and_searched(fixture: NotesFixture) -> None:
    assert (await fixture("list_notes", {})).text == "There are no notes yet."
    assert (await fixture("list_notes", {})).is_own
    assert (await fixture("search_notes", {"words": "x"})).text == "No note has a line with: x"
    assert (await fixture("search_notes", {"words": "x"})).is_own
    assert (await fixture("append_note", {"name": "plan", "text": "- Buy Milk\n"})).text == "Added to `plan`."
    await fixture("append_note", {"name": "plan.md", "text": "- milk for the cat"})
    await fixture("write_note", {"name": "Diary-1", "text": "# Grüße\n\nToday."})
    assert (await fixture("read_note", {"name": "plan"})).text == "- Buy Milk\n- milk for the cat"
    assert (await fixture("list_notes", {})).text == "Diary-1 (18 bytes)\nplan (30 bytes)"
    found = await fixture("search_notes", {"words": "MILK cat"})
    assert (found.text, found.is_own) == ("plan, line 2: - milk for the cat", False)
    await fixture("write_note", {"name": "plan", "text": "- nothing"})
    assert fixture.content("plan") == "- nothing\n"


def test_what_is_in_a_note_may_be_of_anybody() -> None:
    reading = {spec.name: spec.flow.reads for spec in skill.specs() if Effect.MEMORY not in spec.flow.effects}
    assert reading == dict.fromkeys(("list_notes", "read_note", "search_notes"), frozenset({Taint.OTHERS}))


@pytest.mark.proves("T-tool-memory")
async def test_agents_do_not_share_notes(tmp_path: Path) -> None:
    ada, bob = NotesFixture(tmp_path), NotesFixture(tmp_path, "bob")
    await ada("append_note", {"name": "secret", "text": "42"})
    assert (await bob("read_note", {"name": "secret"})).is_error
    assert "no notes" in (await bob("list_notes", {})).text


async def test_a_missing_note_is_answered_with_those_there_are(fixture: NotesFixture) -> None:
    assert "None yet" in (await fixture("read_note", {"name": "plan"})).text
    assert (await fixture("read_note", {"name": "plan"})).is_own
    await fixture("append_note", {"name": "ideas", "text": "x"})
    result = await fixture("read_note", {"name": "plan"})
    assert result.is_error and not result.is_own
    assert "ideas" in result.text


async def test_a_note_that_a_person_edits_stays_as_they_wrote_it(fixture: NotesFixture) -> None:
    fixture.folder.mkdir(parents=True)
    (fixture.folder / "plan.md").write_bytes(b"no newline, \xff no UTF-8")
    await fixture("append_note", {"name": "plan", "text": "more"})
    assert (fixture.folder / "plan.md").read_bytes() == b"no newline, \xff no UTF-8\nmore\n"
    assert "\ufffd" in (await fixture("read_note", {"name": "plan"})).text


async def test_a_long_note_is_read_in_parts(fixture: NotesFixture) -> None:
    text = "".join(f"line {number}\n" for number in range(1500))
    await fixture("write_note", {"name": "long", "text": text})
    first = (await fixture("read_note", {"name": "long"})).text
    assert first.endswith("to read on, start at 8000.")
    rest = (await fixture("read_note", {"name": "long", "start": 8000})).text
    assert first[:8000] + rest == text.rstrip("\n")
    assert (await fixture("read_note", {"name": "long", "start": 99_999})).is_error


@pytest.mark.proves("T-tool-memory")
async def test_a_search_is_bounded(fixture: NotesFixture) -> None:
    for name in ("a", "b"):
        await fixture("write_note", {"name": name, "text": "\n".join(f"word {number}" for number in range(50))})
    assert (await fixture("search_notes", {"words": "word"})).text.count("\n") == 9
    for name in ("a", "b"):
        await fixture("write_note", {"name": name, "text": "\n".join("word " + "x" * 2000 for _ in range(7))})
    assert len((await fixture("search_notes", {"words": "word"})).text) == 3000
    assert (await fixture("search_notes", {"words": "  "})).is_error


async def test_sizes_are_bounded(fixture: NotesFixture) -> None:
    assert (await fixture("append_note", {"name": "a", "text": "x" * 16_001})).is_error
    assert (await fixture("append_note", {"name": "a", "text": ""})).is_error
    for _ in range(4):
        assert not (await fixture("append_note", {"name": "a", "text": "x" * 16_000})).is_error
    before = fixture.content("a")
    full = await fixture("append_note", {"name": "a", "text": "x" * 16_000})
    assert full.is_error
    assert str(MAX_NOTE_BYTES) in full.text
    assert fixture.content("a") == before


async def test_the_number_of_notes_is_bounded(fixture: NotesFixture) -> None:
    fixture.folder.mkdir(parents=True)
    for number in range(MAX_NOTES):
        (fixture.folder / f"n{number}.md").touch()
    assert (await fixture("append_note", {"name": "one-more", "text": "x"})).is_error
    assert not (await fixture("append_note", {"name": "n7", "text": "x"})).is_error


async def test_text_that_is_no_unicode_does_no_harm(fixture: NotesFixture) -> None:
    assert (await fixture("append_note", {"name": "odd", "text": "a\ud800b"})).is_error
    assert (await fixture("read_note", {"name": "\ud800"})).is_error
    await fixture("append_note", {"name": "odd", "text": "  a\0b\n\n"})
    assert fixture.content("odd") == "  a\0b\n"
    Notebook(fixture.folder).append("odd", "\ud800", key="")
    assert fixture.content("odd") == "  a\0b\n?\n"


# No way out


@pytest.mark.proves("TW7", "T-tool-memory")
@given(st.text(max_size=20) | st.text(alphabet="./\\ab~%\0 -_A0\n", max_size=12))
@example("../outside")
@example("..")
@example("/etc/passwd")
@example("a/../../outside")
@example("a.md/../b")
@example(".journal.json")
@example("outside\0.md")
@example("a\n")
@example("é")
@example("x" * 65)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
async def test_only_plain_names_reach_a_file_and_only_in_the_folder(tmp_path: Path, name: str) -> None:
    fixture = NotesFixture(tmp_path / "agents")
    outside = tmp_path / "outside.md"
    outside.write_text("secret")
    plain = name.removesuffix(".md")
    is_name = 0 < len(plain) <= 64 and set(plain) <= ALLOWED
    for tool, args in (("append_note", {"text": "x"}), ("write_note", {"text": "x"}), ("read_note", {})):
        result = await fixture(tool, {"name": name, **args})
        assert result.is_error is not is_name
        assert "secret" not in result.text
    assert outside.read_text() == "secret"
    if is_name:
        assert fixture.content(plain) == "x\n"
    assert {path.name for path in tmp_path.iterdir()} <= {"agents", "outside.md"}
    assert {path.name for path in (tmp_path / "agents").iterdir()} <= {"ada"} if fixture.folder.exists() else True


def link_to_file(path: Path, outside: Path) -> None:
    path.symlink_to(outside)


def link_to_missing(path: Path, outside: Path) -> None:
    path.symlink_to(outside.with_name("missing.md"))


def relative(path: Path, outside: Path) -> None:
    path.symlink_to(os.path.relpath(outside, path.parent))


def link_to_itself(path: Path, outside: Path) -> None:
    path.symlink_to(path)


def folder(path: Path, outside: Path) -> None:
    path.mkdir()


def make_pipe(path: Path, outside: Path) -> None:
    os.mkfifo(path)


@pytest.mark.proves("TW7")
@pytest.mark.parametrize("make", [link_to_file, link_to_missing, relative, link_to_itself, folder, make_pipe])
async def test_a_link_or_device_under_a_notes_name_is_neither_read_nor_followed(
    fixture: NotesFixture, tmp_path: Path, make: Callable[[Path, Path], None]
) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("secret words")
    fixture.folder.mkdir(parents=True)
    make(fixture.folder / "trap.md", outside)
    for tool, args in (("append_note", {"text": "x"}), ("write_note", {"text": "x"}), ("read_note", {})):
        result = await fixture(tool, {"name": "trap", **args})
        assert result.is_error
        assert "secret" not in result.text
    assert "trap" not in (await fixture("list_notes", {})).text
    assert "secret" not in (await fixture("search_notes", {"words": "secret"})).text.replace("with: secret", "")
    assert outside.read_text() == "secret words"
    assert not (tmp_path / "missing.md").exists()


@pytest.mark.parametrize("own_file", [".lock", ".journal.json", ".next"])
async def test_a_link_in_place_of_the_notebooks_own_files_leads_nowhere(
    fixture: NotesFixture, tmp_path: Path, own_file: str
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("{}")
    fixture.folder.mkdir(parents=True)
    (fixture.folder / own_file).symlink_to(outside)
    try:
        await fixture("append_note", {"name": "a", "text": "x"}, key="call_1")
    except OSError:
        assert own_file == ".lock"
    assert outside.read_text() == "{}"


# Once


async def test_an_append_that_runs_again_adds_nothing(fixture: NotesFixture) -> None:
    assert "Added" in (await fixture("append_note", {"name": "log", "text": "once"}, key="call_1")).text
    again = await fixture("append_note", {"name": "log", "text": "once"}, key="call_1")
    assert again.text == "This was added to `log` already."
    assert not again.is_error
    await fixture("append_note", {"name": "log", "text": "once"}, key="call_2")
    await fixture("append_note", {"name": "log", "text": "once"})
    await fixture("append_note", {"name": "log", "text": "once"})
    assert fixture.content("log") == "once\n" * 4


async def test_an_append_is_remembered_over_other_changes_and_edits(fixture: NotesFixture) -> None:
    await fixture("append_note", {"name": "log", "text": "first"}, key="call_1")
    await fixture("append_note", {"name": "other", "text": "x"})
    await fixture("write_note", {"name": "log", "text": "rewritten"}, key="call_2")
    (fixture.folder / "log.md").write_text("edited by hand\n")
    await fixture("append_note", {"name": "log", "text": "first"}, key="call_1")
    assert fixture.content("log") == "edited by hand\n"


class ProcessEnd(BaseException):
    """Stands for the end of the process: nothing below the point where it is raised runs."""


@pytest.mark.parametrize("after_replacing", [0, 1])
@pytest.mark.parametrize("meanwhile", ["nothing", "append", "other note"])
def test_an_append_that_was_interrupted_at_any_point_happens_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after_replacing: int, meanwhile: str
) -> None:
    """The process ends before the note is replaced, or right after it."""
    book = Notebook(tmp_path / "notes")
    book.append("log", "before", key="call_0")
    replace = os.replace

    def dying(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        if target == "log.md" and not after_replacing:
            raise ProcessEnd
        replace(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        if target == "log.md":
            raise ProcessEnd

    with monkeypatch.context() as patch:
        patch.setattr(notebook_module.os, "replace", dying)
        with pytest.raises(ProcessEnd):
            book.append("log", "the line", key="call_1")
    if meanwhile == "append":
        book.append("log", "the line", key="call_2")
    if meanwhile == "other note":
        book.append("other", "the line", key="")
    assert book.append("log", "the line", key="call_1") is not bool(after_replacing)
    assert (book.find_text("log") or "").count("the line") == (2 if meanwhile == "append" else 1)
    assert not book.append("log", "the line", key="call_1")
    assert not book.append("log", "before", key="call_0")


def test_writers_side_by_side_lose_nothing(tmp_path: Path) -> None:
    def write(writer: int) -> None:
        for number in range(10):
            Notebook(tmp_path / "notes").append("log", f"{writer}.{number}", key=f"{writer}.{number}")

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (Notebook(tmp_path / "notes").find_text("log") or "").split()
    assert sorted(lines) == sorted(f"{writer}.{number}" for writer in range(4) for number in range(10))


def test_only_the_latest_keys_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook_module, "KEYS_KEPT", 3)
    book = Notebook(tmp_path)
    for number in range(6):
        assert book.write("log", f"{number}", key=f"call_{number}")
    assert not book.write("log", "again", key="call_3")
    assert book.write("log", "again", key="call_2")


def test_a_damaged_journal_is_said_and_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / ".journal.json").write_text("{")
    with pytest.raises(ToolError, match="damaged"):
        Notebook(tmp_path).append("log", "x", key="call_1")
    assert (tmp_path / ".journal.json").read_text() == "{"


def test_files_are_for_the_owner_only(tmp_path: Path) -> None:
    book = Notebook(tmp_path / "notes")
    book.append("log", "x", key="call_1")
    assert (tmp_path / "notes").stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "notes").iterdir())


@pytest.mark.proves("T-tool-memory")
async def test_notes_stay_where_they_were_made(tmp_path: Path) -> None:
    toolset = SkillToolset(skill, ServicesFixture(tmp_path).services())
    room, private = scope(), replace(scope(), place=Place("discord", "77"))
    thread = replace(scope(), place=Place("discord", "42", "43"))
    key = replace(scope(), principal=Principal(PrincipalKind.API_KEY, "../ann", "ann"), place=Place("api", "x"))
    other_key = replace(key, principal=Principal(PrincipalKind.API_KEY, "___ann", "ann"))
    operator = replace(scope(), principal=Principal(PrincipalKind.LOCAL, "operator", "operator"))
    for number, where in enumerate((room, private, thread, key, other_key, operator)):
        await run(toolset, "append_note", {"name": "secret", "text": f"of place {number}"}, where)
    for number, where in enumerate((room, private, thread, key, other_key, operator)):
        assert (await run(toolset, "read_note", {"name": "secret"}, where)).text == f"of place {number}"
        assert (await run(toolset, "list_notes", {}, where)).text.count("secret") == 1
    neighbour = replace(room, principal=Principal(PrincipalKind.PLATFORM_USER, "8", "Lee"))
    assert (await run(toolset, "read_note", {"name": "secret"}, neighbour)).text == "of place 0"
    assert (
        await run(toolset, "read_note", {"name": "secret"}, replace(key, place=Place("web", "y")))
    ).text == "of place 3"
    assert (tmp_path / "ada/notes/secret.md").read_text() == "of place 5\n"
    assert all(path.is_relative_to(tmp_path / "ada/notes") for path in tmp_path.rglob("secret.md"))
