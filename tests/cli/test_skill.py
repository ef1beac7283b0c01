"""`denizen skill`: from a first example to an enabled skill."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen.app.settings import load_settings
from denizen.cli.main import run


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def denizen(home: Path, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    code = run(["--home", str(home), "skill", *args])
    said = capsys.readouterr()
    return code, said.out + said.err


@pytest.mark.proves("VW6")
def test_a_new_skill_works_as_it_is_and_is_loaded_once_it_is_enabled(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert denizen(home, capsys, "new", "dice")[0] == 0
    assert denizen(home, capsys, "check", "dice") == (0, "ok    dice: dice_roll (tier 0)\n")
    code, said = denizen(home, capsys, "test", "dice")
    assert (code, said) == (0, "ok    dice: dice_roll (tier 0), 2 examples came out as expected\n")
    assert "dice                     disabled" in denizen(home, capsys, "list")[1]
    code, said = denizen(home, capsys, "enable", "dice", "--yes")
    assert code == 0
    for part in ("runs inside Denizen", "permissions: none", "skill.yaml", "sha256: ", "Enabled dice"):
        assert part in said
    assert "dice                     enabled" in (listed := denizen(home, capsys, "list")[1])
    assert "tools: dice_roll" in listed
    (home / "skills" / "dice" / "skill.py").write_text("1 / 0\n", encoding="utf-8")
    assert "changed" in denizen(home, capsys, "list")[1]
    code, said = denizen(home, capsys, "enable", "dice", "--yes")
    assert code == 2 and "it makes no skill" in said


def test_a_tool_with_the_name_of_another_is_told_before_the_skill_is_enabled(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    denizen(home, capsys, "new", "dice")
    denizen(home, capsys, "enable", "dice", "--yes")
    denizen(home, capsys, "new", "coin")
    file = home / "skills" / "coin" / "skill.py"
    text = file.read_text(encoding="utf-8")
    for name, whose in (("calculator", "calculator"), ("dice_roll", "dice")):
        file.write_text(text.replace("coin_roll", name), encoding="utf-8")
        code, said = denizen(home, capsys, "check", "coin")
        assert (code, said) == (
            2,
            f"FAIL  its tool `{name}` has the name of a tool of the skill {whose}: rename yours\n",
        )
        assert denizen(home, capsys, "enable", "coin", "--yes")[0] == 2
    assert denizen(home, capsys, "check", "dice")[0] == 0, "its own name does not stand in its way"


def test_what_is_wrong_with_a_skill_is_told_once(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    denizen(home, capsys, "new", "dice")
    denizen(home, capsys, "enable", "dice", "--yes")
    (home / "skills" / "dice" / "skill.py").write_text("1 / 0\n", encoding="utf-8")
    for command in (["skill", "list"], ["doctor", "--offline"]):
        run(["--home", str(home), *command])
        said = capsys.readouterr()
        assert "it has changed since it was enabled" in said.out and "skill left out" not in said.err
    run(["--home", str(home), "-v", "skill", "list"])
    assert "skill left out" in capsys.readouterr().err


def test_disabling_keeps_files_and_settings(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    denizen(home, capsys, "new", "how-to", "--markdown")
    assert denizen(home, capsys, "check", "how-to") == (0, "ok    how-to\n")
    denizen(home, capsys, "enable", "how-to", "--yes")
    assert denizen(home, capsys, "disable", "how-to") == (0, "Disabled how-to.\n")
    section = load_settings(home, {}).skills["how-to"]
    assert (section.enabled, len(section.sha256)) == (False, 64)
    assert "disabled" in denizen(home, capsys, "list")[1]
    denizen(home, capsys, "enable", "how-to", "--yes")
    assert load_settings(home, {}).skills["how-to"].enabled


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("1 / 0", "skill.py:{line}: skill.py cannot be imported: ZeroDivisionError"),
        ("__import__('os')._exit(7)", "its code ended the process (exit code 7)"),
    ],
)
def test_a_skill_whose_import_fails_is_told_with_the_line(
    home: Path, capsys: pytest.CaptureFixture[str], code: str, says: str
) -> None:
    denizen(home, capsys, "new", "dice")
    file = home / "skills" / "dice" / "skill.py"
    text = f"{file.read_text(encoding='utf-8')}\n{code}\n"
    file.write_text(text, encoding="utf-8")
    exit_code, said = denizen(home, capsys, "check", "dice")
    assert exit_code == 2
    assert says.format(line=text.count("\n")) in said


def test_an_example_that_comes_out_wrong_is_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    denizen(home, capsys, "new", "dice")
    manifest = home / "skills" / "dice" / "skill.yaml"
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(text.replace('"rolled"', '"a seven"').replace("dice_roll, args: {sides: 1}", "fly"), "utf-8")
    code, said = denizen(home, capsys, "test", "dice")
    assert code == 2
    assert "FAIL  example 1: dice_roll gave: rolled" in said and "expected in it: a seven" in said
    assert "FAIL  example 2: there is no tool `fly`: it has dice_roll" in said


def test_the_child_sees_no_secret_and_a_home_of_its_own(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    denizen(home, capsys, "new", "dice")
    file = home / "skills" / "dice" / "skill.py"
    text = file.read_text(encoding="utf-8").replace("import secrets", "import os\nimport secrets")
    file.write_text(text + "\nraise ValueError(sorted(os.environ), os.environ['HOME'])\n", encoding="utf-8")
    said = denizen(home, capsys, "check", "dice")[1]
    assert "ANTHROPIC_API_KEY" not in said and "sk-secret" not in said
    assert "'HOME', 'LANG'" in said and "denizen-skill-" in said


def test_names_that_cannot_be_are_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("../x", "Dice", "a-b"):
        assert denizen(home, capsys, "new", name)[0] == 2
    assert denizen(home, capsys, "check", "gone")[0] == 2
    denizen(home, capsys, "new", "dice")
    assert denizen(home, capsys, "new", "dice")[0] == 2


def test_doctor_fails_for_a_skill_that_was_enabled_and_is_off(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    denizen(home, capsys, "new", "dice")
    denizen(home, capsys, "enable", "dice", "--yes")
    with (home / "skills" / "dice" / "skill.py").open("a", encoding="utf-8") as stream:
        stream.write("# more\n")
    code = run(["--home", str(home), "doctor", "--offline"])
    said = capsys.readouterr().out
    assert code == 2
    assert "dice: it has changed since it was enabled, so it is off" in said
    assert "denizen skill enable dice" in said
