"""`denizen shell`: the sandbox of the agents, in the terminal and for programs."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from denizen.cli.main import run
from tests.sandbox import open_sandbox


@pytest.fixture(autouse=True)
def _needs_isolation() -> None:
    async def check() -> None:
        async with open_sandbox():
            pass

    anyio.run(check)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "kb" / "docs").mkdir(parents=True)
    (tmp_path / "kb" / "docs" / "a.md").write_text("one\ntwo | three\n", encoding="utf-8")
    return tmp_path / "kb"


def shell(root: Path, *args: str) -> int:
    return run(["--home", str(root.parent / "home"), "shell", "--root", str(root), *args])


@pytest.mark.proves("SW3", "S16")
def test_one_command_prints_what_it_printed_and_ends_with_its_exit_code(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell(root, "cd docs && grep -n 'two | three' a.md") == 0
    assert capsys.readouterr().out == "2:two | three\n"
    assert shell(root, "grep nosuch docs/a.md") == 1
    assert shell(root, "cat nosuch") == 1
    assert "No such file" in capsys.readouterr().err


@pytest.mark.proves("SW3", "S17")
def test_a_refused_command_ends_with_three_and_says_why(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell(root, "rm -rf docs") == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("refused: `rm` is not allowed.")
    assert (root / "docs" / "a.md").exists()


@pytest.mark.proves("SW3")
def test_lines_of_json_are_answered_by_lines_of_json(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        '{"cmd": "ls docs"}',
        '{"cmd": "echo x > y"}',
        "nonsense",
        "[]",
        '{"cmd": 5}',
        '{"cmd": "cat docs/a.md | wc -l"}',
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
    assert shell(root, "--jsonl") == 0
    rows: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [set(row) for row in rows] == [{"stdout", "stderr", "exit_code", "refused"}] * 6
    assert rows[0] == {"stdout": "a.md\n", "stderr": "", "exit_code": 0, "refused": False}
    assert (rows[1]["exit_code"], rows[1]["refused"]) == (126, True)
    assert [(row["exit_code"], row["refused"]) for row in rows[2:5]] == [(2, True)] * 3
    assert rows[5]["stdout"] == "2\n"


@pytest.mark.proves("SW3")
def test_the_id_of_a_request_comes_back_with_its_answer_whatever_it_is(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [1, "a", None, {"turn": [1, 2]}]
    lines = [json.dumps({"cmd": f"echo {number}", "id": each}) for number, each in enumerate(ids)]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([*lines, '{"id": 7}', '{"cmd": "rm x", "id": 8}']) + "\n"))
    assert shell(root, "--jsonl") == 0
    rows: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["id"], row["stdout"]) for row in rows[:4]] == [(each, f"{n}\n") for n, each in enumerate(ids)]
    assert [(row["id"], row["refused"], row["exit_code"]) for row in rows[4:]] == [(7, True, 2), (8, True, 126)]


def test_lines_of_standard_input_run_one_by_one(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("ls\n\ncat docs/a.md | head -1\n"))
    assert shell(root) == 0
    assert capsys.readouterr().out == "docs\none\n"


def test_documents_of_one_server_are_there_with_its_id_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("harbour", "vault"), ("open", "pool")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(f"The {text}.\n", encoding="utf-8")
    home = ["--home", str(tmp_path / "home")]
    assert run([*home, "sources", "add", str(tmp_path / "harbour"), "--guild", "111"]) == 0
    assert run([*home, "sources", "add", str(tmp_path / "open")]) == 0
    assert run([*home, "sources", "sync"]) == 0
    capsys.readouterr()
    assert run([*home, "sources", "list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [" for the server 111" in line for line in listed[:2]] == [True, False]
    for guild, seen in (((), ["pool"]), (("--guild", "111"), ["pool", "vault"]), (("--guild", "222"), ["pool"])):
        for command in (["shell", "cat */*/*.md"], ["docs", "search", "vault pool"]):
            assert run([*home, *command, *guild]) == 0
            shown = capsys.readouterr().out
            assert sorted(word for word in ("vault", "pool") if word in shown) == seen


def test_without_a_root_it_looks_into_the_knowledge_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = ["--home", str(tmp_path), "shell"]
    assert run([*home, "ls"]) != 0
    assert "Put files there, or name a folder with --root." in capsys.readouterr().err
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "knowledge" / "rules.md").write_text("No shoes\n", encoding="utf-8")
    assert run([*home, "grep -r slippers ."]) == 1
    assert run([*home, "grep -r Shoes -i ."]) == 0
    assert capsys.readouterr().out == "./shared/rules.md:No shoes\n"
    assert run([*home, "-a", "nobody", "ls"]) != 0
    assert "There is no agent nobody." in capsys.readouterr().err
    assert run([*home, "--root", str(tmp_path / "gone"), "ls"]) != 0
