"""The built-in skills as a set: what they cost in a prompt, how dangerous they are, what loads."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import denizen.skills
from denizen.domain.errors import NotFound
from denizen.domain.tool import ToolSpec
from denizen.skill import Skill, Tier
from denizen.skills import BUILTIN, OPT_IN, load_builtin

FOLDER = Path(denizen.skills.__file__).parent

TIERS = {
    "current_time": Tier.HARMLESS,
    "time_between": Tier.HARMLESS,
    "calculator": Tier.HARMLESS,
    "fetch_url": Tier.LIMITED,
    "weather": Tier.LIMITED,
    "remember": Tier.LIMITED,
    "recall": Tier.HARMLESS,
    "forget": Tier.LIMITED,
    "search_log": Tier.HARMLESS,
    "list_notes": Tier.HARMLESS,
    "read_note": Tier.HARMLESS,
    "search_notes": Tier.HARMLESS,
    "append_note": Tier.LIMITED,
    "write_note": Tier.LIMITED,
    "search_conversation": Tier.HARMLESS,
    "read_messages": Tier.HARMLESS,
    "search_archive": Tier.HARMLESS,
    "read_history": Tier.HARMLESS,
    "read_context": Tier.HARMLESS,
    "read_edits": Tier.HARMLESS,
    "archive_stats": Tier.HARMLESS,
    "list_knowledge": Tier.HARMLESS,
    "read_knowledge": Tier.HARMLESS,
    "search_knowledge": Tier.HARMLESS,
    "read": Tier.SENSITIVE,
    "write": Tier.DANGEROUS,
    "replace_file": Tier.DANGEROUS,
    "exec": Tier.DANGEROUS,
    "download_file": Tier.SENSITIVE,
    "restart_denizen": Tier.DANGEROUS,
    "credits": Tier.LIMITED,
    "cache_statistics": Tier.LIMITED,
    "list_skills": Tier.DANGEROUS,
    "view_skill": Tier.DANGEROUS,
    "create_skill": Tier.DANGEROUS,
    "edit_skill": Tier.DANGEROUS,
    "delete_skill": Tier.DANGEROUS,
    "write_skill": Tier.DANGEROUS,
    "draw_table": Tier.HARMLESS,
    "draw_chart": Tier.LIMITED,
}

DRAWING = {
    *((name, "PIL") for name in ("lettering.py", "tables.py")),
    *((name, "matplotlib") for name in ("lettering.py", "charts.py")),
}
"""Libraries that draw, loaded with the first picture."""


def all_specs() -> list[ToolSpec]:
    return [spec for name in BUILTIN for spec in load_builtin(name).specs()]


def tokens(spec: ToolSpec) -> float:
    """What the tool adds to each prompt, at four characters a token."""
    row = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return len(json.dumps(row, separators=(",", ":"), ensure_ascii=False)) / 4


@pytest.mark.parametrize("name", BUILTIN)
def test_each_built_in_skill_loads_and_has_the_name_of_its_module(name: str) -> None:
    skill = load_builtin(name)
    assert isinstance(skill, Skill)
    assert skill.name == name
    assert skill.tools


def test_an_unknown_skill_is_refused_with_those_there_are() -> None:
    with pytest.raises(NotFound) as caught:
        load_builtin("os")
    assert "calculator" in caught.value.fix


def test_every_tool_has_the_tier_that_was_decided_for_it() -> None:
    assert {spec.name: spec.tier for spec in all_specs()} == TIERS


def test_the_tools_of_all_skills_cost_less_than_1200_tokens_and_those_that_are_not_always_there_little_more() -> None:
    optional = {name: sum(tokens(spec) for spec in load_builtin(name).specs()) for name in ("archive", "knowledge")}
    optional |= {name: sum(tokens(spec) for spec in load_builtin(name).specs()) for name in OPT_IN}
    assert optional["archive"] < 430 and optional["knowledge"] < 230, optional
    assert sum(tokens(spec) for spec in all_specs()) - sum(optional.values()) < 1200
    assert {spec.name: tokens(spec) for spec in all_specs() if tokens(spec) > 120} == {}


def test_settings_have_defaults_for_everything() -> None:
    for name in BUILTIN:
        load_builtin(name).read_settings({})


def test_skills_use_only_the_public_surface_and_the_standard_library() -> None:
    foreign: list[str] = []
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            foreign += [
                f"{path.name}: {name}"
                for name in names
                if name != "denizen.skill"
                and not name.startswith("denizen.skills.")
                and name.partition(".")[0] not in sys.stdlib_module_names
                and (path.name, name.partition(".")[0]) not in DRAWING
            ]
    assert foreign == []


def test_naming_the_skills_loads_none_of_them() -> None:
    code = (
        "import sys; from denizen.skills import BUILTIN; assert BUILTIN;"
        "assert [name for name in sys.modules if name.startswith('denizen.skill')] == ['denizen.skills']"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_loading_the_skills_brings_in_no_vendor() -> None:
    code = (
        "import sys; from denizen.skills import BUILTIN, load_builtin;"
        "[load_builtin(name) for name in BUILTIN]; assert not {'pydantic', 'httpx2', 'jsonschema'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
