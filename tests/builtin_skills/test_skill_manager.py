"""Skills written in talk and by a model: for owners, checked without being run, and disabled until a person enables
them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from denizen.app.skill_loading.editor import SkillFolderEditor, markdown_example, python_example
from denizen.builtin_skills import load_builtin
from denizen.builtin_skills.skill_agent import read_files
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import Tier, ToolResult
from denizen.ports.toolset import CallScope
from denizen.skill import OwnerServices, SkillToolset
from tests.skill_fixture import ServicesFixture, run, scope

pytestmark = pytest.mark.anyio

OWNER = replace(scope(), principal=Principal(PrincipalKind.PLATFORM_USER, "1", "Ana", frozenset({"owner"})))


def manager(home: Path) -> SkillToolset:
    services = replace(ServicesFixture(home).services(), owner=OwnerServices(skill_editor=SkillFolderEditor(home, {})))
    return SkillToolset(load_builtin("skill_manager"), services)


async def manage(home: Path, tool: str, **args: object) -> ToolResult:
    return await run(manager(home), tool, args, OWNER)  # pyright: ignore[reportArgumentType]


@pytest.mark.proves("V-skill-skill-manager", "VW6")
async def test_an_owner_creates_reads_edits_lists_and_deletes_skills_which_stay_disabled(tmp_path: Path) -> None:
    created = await manage(tmp_path, "create_skill", name="dice", files=python_example("dice"))
    assert "passes the check. It is disabled" in created.text
    assert "dice (python, disabled)" in (await manage(tmp_path, "list_skills")).text
    edited = await manage(tmp_path, "edit_skill", name="dice", file="skill.py", text="x =")
    assert "skill.py:1: this is no Python" in edited.text
    assert "x =" in (await manage(tmp_path, "view_skill", name="dice")).text
    assert not (await manage(tmp_path, "delete_skill", name="dice")).is_error
    assert (await manage(tmp_path, "list_skills")).text == "There are no skills yet."
    assert list((tmp_path / "skills").iterdir()) == []


@pytest.mark.proves("VW6")
async def test_nothing_of_a_written_skill_runs(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    files = python_example("dice")
    files["skill.py"] += f"\nopen({str(marker)!r}, 'w').close()\n"
    await manage(tmp_path, "create_skill", name="dice", files=files)
    await manage(tmp_path, "edit_skill", name="dice", file="other.py", text=files["skill.py"])
    assert not marker.exists()


@pytest.mark.proves("TW8")
async def test_nobody_but_an_owner_writes_skills_and_every_tool_has_the_highest_tier(tmp_path: Path) -> None:
    tools = manager(tmp_path)
    for spec in await tools.list_tools():
        assert (spec.tier, spec.listed_only) == (Tier.DANGEROUS, True)
    result = await run(tools, "create_skill", {"name": "dice", "files": {"skill.py": "x"}})
    assert result.is_error and "only an owner" in result.text
    assert not (tmp_path / "skills").exists()


@pytest.mark.proves("TW7")
@pytest.mark.parametrize("name", ["../up", "", "A", "a/b", ".hidden"])
async def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    for tool, args in (("create_skill", {"files": {"skill.py": "x"}}), ("view_skill", {}), ("delete_skill", {})):
        assert (await manage(tmp_path, tool, name=name, **args)).is_error


@pytest.mark.proves("TW7")
@pytest.mark.parametrize("file", ["../x.py", "/etc/x", "a/../b", ".env", "a//b", "", "a/b/c/d/e.py", "x\0"])
async def test_a_file_that_leads_elsewhere_is_refused(tmp_path: Path, file: str) -> None:
    assert (await manage(tmp_path, "create_skill", name="dice", files={file: "x"})).is_error
    await manage(tmp_path, "create_skill", name="dice", files=python_example("dice"))
    assert (await manage(tmp_path, "edit_skill", name="dice", file=file, text="x")).is_error


@pytest.mark.proves("TW7")
async def test_a_skill_in_which_there_are_links_is_not_written_through(tmp_path: Path) -> None:
    await manage(tmp_path, "create_skill", name="dice", files=python_example("dice"))
    (tmp_path / "skills" / "dice" / "out.py").symlink_to(tmp_path / "target.py")
    assert (await manage(tmp_path, "edit_skill", name="dice", file="out.py", text="x")).is_error
    assert not (tmp_path / "target.py").exists()


@pytest.mark.proves("V-skill-skill-agent", "VW6")
async def test_a_model_writes_a_skill_corrects_it_by_the_check_and_it_waits_disabled(tmp_path: Path) -> None:
    bad = {**python_example("dice"), "skill.py": "import no_such_module_here\n" + python_example("dice")["skill.py"]}
    answers = ["I cannot.", f"Here:\n```json\n{json.dumps(bad)}\n```", json.dumps(python_example("dice"))]
    asked: list[str] = []

    async def ask(scope: CallScope, instructions: str, text: str, *, max_output_tokens: int = 4000) -> str:
        asked.append(text)
        return answers[len(asked) - 1]

    services = replace(
        ServicesFixture(tmp_path).services(),
        owner=OwnerServices(skill_editor=SkillFolderEditor(tmp_path, {})),
        ask_model=ask,
    )
    tools = SkillToolset(load_builtin("skill_agent"), services)
    args = {"name": "dice", "description": "Rolls as many dice as wanted."}
    assert (await run(tools, "write_skill", dict(args))).is_error
    assert asked == []
    done = await run(tools, "write_skill", dict(args), OWNER)
    assert "passes the check. It is disabled" in done.text
    assert all("Rolls as many dice as wanted." in text for text in asked)
    assert "there is no module `no_such_module_here`" in asked[2]
    assert [s.state for s in await SkillFolderEditor(tmp_path, {}).list_skills()] == ["disabled"]


def test_files_are_found_in_an_answer_with_words_around_them() -> None:
    assert read_files('Sure {x} {"a.py": "1"} done') == {"a.py": "1"}
    assert read_files('{"a": 1}') == {}
    assert read_files("none") == {}


async def test_the_check_of_texts_says_file_line_and_remedy(tmp_path: Path) -> None:
    code = (
        "import os\nimport words\nfrom denizen.engine import turn\nfrom denizen.skill import Skill\n"
        'skill = Skill("dice", description="x")\n\n@skill.tool\ndef roll(context, sides):\n    pass\n'
    )
    files = {**python_example("dice"), "skill.py": code, "words.py": ""}
    problems = await SkillFolderEditor(tmp_path, {}).create("dice", files, by="ada")
    assert problems == [
        "skill.py:2: write `from .words import ...` for a file of the skill's own",
        "skill.py:3: import from denizen.skill only, not from denizen.engine",
        "skill.py:8: write @skill.tool() with parentheses",
        "skill.py:8: `roll` has no docstring: say in a sentence what it does",
        "skill.py:8: say the type of `sides` in `roll`",
    ]
    assert await SkillFolderEditor(tmp_path, {}).create("how-to", markdown_example("how-to"), by="ada") == []
