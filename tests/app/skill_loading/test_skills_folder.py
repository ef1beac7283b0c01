"""Skills in the home's `skills/` folder: only what the owner enabled, exactly as enabled, and nothing that stops
others.
"""

from __future__ import annotations

import logging
import os
import py_compile
from collections.abc import Callable
from pathlib import Path

import pytest

from denizen.app.build import Denizen, OpenOptions, open_denizen
from denizen.app.reload import Reloader
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.ids import CallId
from denizen.domain.json import JsonObject
from denizen.domain.tool import Origin, ToolCall, ToolResult
from denizen.domain.verdict import Decision
from denizen.engine.audit.audit_log import read_log
from denizen.engine.configuration.generation import Generation
from denizen.engine.tools.toolbox import list_all
from tests.app.home_folder import Home
from tests.app.skill_loading.skill_folder_fixture import CODE, LAB, enable_skills, write_skill
from tests.skill_fixture import scope

pytestmark = pytest.mark.anyio


async def list_tool_names(generation: Generation) -> list[str]:
    return list(await list_all(generation.toolsets))


async def run(generation: Generation, tool: str, **args: str) -> ToolResult:
    bound = (await list_all(generation.toolsets))[tool]
    return await bound.toolset.call(ToolCall(CallId("c"), tool, dict(args)), scope())


def state(denizen: Denizen, name: str) -> tuple[str, str]:
    entry = next(each for each in denizen.generation_deps.own_skills.entries if each.name == name)
    return str(entry.state), entry.why


def open_home(home: Home, text: str):
    home.write(text)
    return open_denizen(home.path, OpenOptions(durable=False))


@pytest.mark.proves("VW6")
async def test_a_skill_that_only_lies_there_is_not_run(home: Home) -> None:
    write_skill(home, "sly", code="from pathlib import Path\nPath(__file__).with_name('ran').touch()\n" + CODE)
    async with open_home(home, LAB) as denizen:
        assert "sly_say" not in await list_tool_names(denizen.runtime.current)
    assert not (home.path / "skills" / "sly" / "ran").exists()


@pytest.mark.proves("V-skill-loading")
async def test_an_enabled_skill_is_loaded_after_the_built_in_ones(home: Home) -> None:
    write_skill(home, "echo")
    async with open_home(home, enable_skills(home, "echo")) as denizen:
        names = await list_tool_names(denizen.runtime.current)
        assert names.index("calculator") < names.index("echo_say")
        assert (await run(denizen.runtime.current, "echo_say")).text == "one!"
        assert state(denizen, "echo") == ("enabled", "")


@pytest.mark.proves("VW6", "V-skill-loading")
async def test_a_changed_skill_is_off_until_it_is_enabled_again_and_says_so(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    write_skill(home, "echo")
    async with open_home(home, enable_skills(home, "echo")) as denizen:
        old, reloader = denizen.runtime.current, Reloader(denizen)
        async with denizen.runtime.lease():
            write_skill(home, "echo", word="two", tail="?")
            with caplog.at_level(logging.WARNING):
                assert (await reloader.reload()).changed
            assert "echo_say" not in await list_tool_names(denizen.runtime.current)
            assert state(denizen, "echo") == ("changed", "it has changed since it was enabled, so it is off")
            (warning,) = [each for each in caplog.records if each.message == "skill left out"]
            assert "denizen skill enable echo" in vars(warning)["fix"]
            home.write(enable_skills(home, "echo"))
            assert (await reloader.reload()).changed
            assert (await run(denizen.runtime.current, "echo_say")).text == "two?"
            # A turn that began with the old one goes on with it, in what it imports late too.
            assert (await run(old, "echo_say")).text == "one!"
        assert not (await reloader.reload()).changed


def change_last_byte(folder: Path) -> None:
    code = (folder / "skill.py").read_bytes()
    (folder / "skill.py").write_bytes(code[:-1] + b" ")


def rename_file(folder: Path) -> None:
    (folder / "words.py").rename(folder / "names.py")


def add_empty_file(folder: Path) -> None:
    (folder / "more.py").touch()


@pytest.mark.proves("VW6")
@pytest.mark.parametrize("change", [change_last_byte, rename_file, add_empty_file])
async def test_the_least_change_of_a_skill_switches_it_off(home: Home, change: Callable[[Path], None]) -> None:
    folder = write_skill(home, "echo")
    text = enable_skills(home, "echo")
    change(folder)
    async with open_home(home, text) as denizen:
        assert "echo_say" not in await list_tool_names(denizen.runtime.current)
        assert state(denizen, "echo")[0] == "changed"


@pytest.mark.proves("V-skill-loading")
async def test_skills_come_and_go_while_running(home: Home) -> None:
    write_skill(home, "echo")
    async with open_home(home, LAB) as denizen:
        reloader = Reloader(denizen)
        home.write(enable_skills(home, "echo"))
        await reloader.reload()
        assert "echo_say" in await list_tool_names(denizen.runtime.current)
        (home.path / "skills" / "echo").rename(home.path / "skills" / ".gone")
        await reloader.reload()
        assert "echo_say" not in await list_tool_names(denizen.runtime.current)
        assert state(denizen, "echo")[0] == "missing"


async def test_a_skill_that_is_gone_is_spoken_of_no_more_once_it_is_disabled(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with open_home(home, LAB + "skills: {echo: {enabled: false}}\n") as denizen:
            assert state(denizen, "echo") == ("disabled", "")
            (entry,) = denizen.generation_deps.own_skills.entries
            assert "Its files are gone" in entry.fix
    assert not [each for each in caplog.records if each.message == "skill left out"]


@pytest.mark.proves("V-skill-loading")
@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("def", "SyntaxError"),
        ("x = 1", "holds no skill"),
        ('from denizen.skill import Skill\nskill = Skill("bad", description="x")', "no tools"),
        (
            CODE.replace("{name}_say", "calculator").replace("{name}", "bad"),
            "has the name of a tool of the skill calculator",
        ),
    ],
)
async def test_a_skill_that_fails_is_told_and_stops_neither_the_others_nor_the_start(
    home: Home, code: str, why: str
) -> None:
    write_skill(home, "bad", code=code)
    write_skill(home, "good")
    text = enable_skills(home, "bad", "good", more="agents: {ada: {tools: [bad_say, good_say]}}")
    async with open_home(home, text) as denizen:
        names = await list_tool_names(denizen.runtime.current)
        assert "good_say" in names and "bad_say" not in names
        assert state(denizen, "bad")[0] == "failed"
        assert why in state(denizen, "bad")[1]


async def test_of_two_skills_with_the_same_tool_the_second_fails_by_name(home: Home) -> None:
    write_skill(home, "one")
    write_skill(home, "two", code=CODE.replace("{name}_say", "one_say"))
    async with open_home(home, enable_skills(home, "one", "two")) as denizen:
        assert state(denizen, "one")[0] == "enabled"
        assert state(denizen, "two") == ("failed", "its tool `one_say` has the name of a tool of the skill one")


@pytest.mark.proves("VW6")
async def test_byte_code_lying_beside_the_source_is_never_run(home: Home) -> None:
    folder = write_skill(home, "echo")
    text = enable_skills(home, "echo")
    evil = home.add_file("evil.py", "WORD = 'evil'\n")
    source = folder / "words.py"
    os.utime(evil, ns=(source.stat().st_atime_ns, source.stat().st_mtime_ns))
    cached = folder / "__pycache__" / "words.cpython-311.pyc"
    cached.parent.mkdir()
    py_compile.compile(str(evil), str(cached), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    async with open_home(home, text) as denizen:
        assert (await run(denizen.runtime.current, "echo_say")).text == "one!"


@pytest.mark.proves("VW6")
async def test_a_skill_of_which_any_file_says_it_is_not_utf_8_is_not_run(home: Home) -> None:
    folder = write_skill(home, "echo")
    (folder / "late.py").write_text("# coding: utf-7\n# a comment +AAo-TAIL = 'evil'\n")
    async with open_home(home, enable_skills(home, "echo")) as denizen:
        assert state(denizen, "echo") == ("failed", "late.py says that its encoding is utf-7")
        assert "echo_say" not in await list_tool_names(denizen.runtime.current)


@pytest.mark.proves("VW6")
async def test_an_encoding_that_only_the_compiler_would_find_makes_no_code_of_a_comment(home: Home) -> None:
    folder = write_skill(home, "echo")
    (folder / "late.py").write_bytes(b"\r# coding: utf-7\rTAIL = '!'\n# a comment +AAo-TAIL = 'evil'\n")
    async with open_home(home, enable_skills(home, "echo")) as denizen:
        assert (await run(denizen.runtime.current, "echo_say")).text == "one!"


@pytest.mark.proves("VW6")
async def test_links_in_a_skill_are_refused(home: Home) -> None:
    folder = write_skill(home, "echo")
    text = enable_skills(home, "echo")
    (folder / "more.py").symlink_to(home.add_file("elsewhere.py", ""))
    async with open_home(home, text) as denizen:
        assert state(denizen, "echo") == ("failed", "`more.py` is a link")


@pytest.mark.proves("VW6")
async def test_no_tool_has_a_lower_tier_than_the_manifest_says_which_is_the_highest_unless_it_is_said(
    home: Home,
) -> None:
    write_skill(home, "free", manifest="tier: 1")
    write_skill(home, "quiet", manifest="version: 1")
    async with open_home(home, enable_skills(home, "free", "quiet")) as denizen:
        tiers = {tool.spec.name: int(tool.spec.tier) for tool in await denizen.queries.list_tools()}
        assert (tiers["free_say"], tiers["quiet_say"]) == (1, 3)


@pytest.mark.parametrize(
    ("use", "permission"),
    [
        ('await context.fetch("https://example.org")', "network"),
        ('await context.call_tool("calculator", {})', "tools"),
        ('await context.history.search("x")', "history"),
        ("await context.history.read(1, 2)", "history"),
    ],
)
async def test_a_skill_gets_what_its_manifest_asks_for_and_nothing_else(home: Home, use: str, permission: str) -> None:
    code = CODE.replace(
        "    from .late import TAIL\n    return WORD + TAIL", f"    await noted({use[6:]})\n    return 'done'"
    )
    code += "\nasync def noted(made):\n    await made\n"
    write_skill(home, "nosy", code=code)
    async with open_home(home, enable_skills(home, "nosy")) as denizen:
        result = await run(denizen.runtime.current, "nosy_say")
        assert result.is_error
        assert f"needs `{permission}` under permissions" in result.text


@pytest.mark.proves("VW1", "V-skill-interface", "X-internal-calls")
@pytest.mark.parametrize(
    ("tier", "tool", "args"),
    [(0, "download_file", {"url": "http://127.0.0.1:9/x"}), (2, "calculator", {"expression": "6 * 7"})],
)
async def test_what_a_skill_calls_passes_the_gate_with_the_strictest_tier_on_the_way(
    home: Home, tier: int, tool: str, args: JsonObject
) -> None:
    use = f"return (await context.call_tool({tool!r}, {args!r})).text"
    manifest = f"tier: {tier}\npermissions: [tools]"
    write_skill(home, "sly", code=CODE.replace("return WORD + TAIL", use), manifest=manifest)
    for allowed, is_denied in (("remember", True), (tool, False)):
        rules = f"gate: {{rules: [{{tool: sly_say, action: approve}}, {{tool: {allowed}, action: approve}}]}}"
        async with open_home(
            home, enable_skills(home, "sly", more=f"tools: {{system: {{enabled: true}}}}\n{rules}")
        ) as denizen:
            now = denizen.runtime.current
            bound = (await list_all(now.toolsets))["sly_say"]
            call, at = ToolCall(CallId("c"), "sly_say", {}), scope(agent="denizen")
            outcome = await denizen.services.gate.run(bound, call, at, now.policy)
            *_, last = [entry.event async for entry in read_log(denizen.services.store)]
        assert outcome.verdict.decision is Decision.APPROVE
        assert outcome.result.text.startswith("Denied: ") is is_denied, outcome.result.text
        decision = "deny" if is_denied else "approve"
        assert (last.subject, last.details["origin"], last.details["decision"]) == (tool, "skill", decision)


@pytest.mark.proves("V23")
async def test_a_skill_that_calls_itself_gets_an_error_below_the_fifth_call(home: Home) -> None:
    use = 'inner = await context.call_tool("deep_say", {})\n    return f"({inner.is_error} {inner.text})"'
    manifest = "tier: 0\npermissions: [tools]"
    write_skill(home, "deep", code=CODE.replace("return WORD + TAIL", use), manifest=manifest)
    async with open_home(home, enable_skills(home, "deep")) as denizen:
        now = denizen.runtime.current
        bound = (await list_all(now.toolsets))["deep_say"]
        call, at = ToolCall(CallId("c"), "deep_say", {}, Origin.API), scope(agent="denizen")
        outcome = await denizen.services.gate.run(bound, call, at, now.policy)
    refused = "(True Denied: tools may call each other at most 5 deep.)"
    assert outcome.result.text == "(False " * 5 + refused + ")" * 5


async def test_settings_of_a_skill_are_checked_by_it(home: Home) -> None:
    options = "@dataclass\nclass Options:\n    loud: bool = False\n"
    made = 'skill = Skill("{name}", description="Says a word.", settings=Options)'
    code = "from dataclasses import dataclass\n" + CODE.replace(
        'skill = Skill("{name}", description="Says a word.")', f"{options}\n{made}"
    ).replace("return WORD + TAIL", "return str(context.settings(Options).loud)")
    write_skill(home, "echo", code=code)
    pinned = enable_skills(home, "echo").rstrip().removesuffix("}")
    async with open_home(home, pinned + ", settings: {loud: true}}\n") as denizen:
        assert (await run(denizen.runtime.current, "echo_say")).text == "True"
        home.write(pinned + ", settings: {lout: true}}\n")
        await Reloader(denizen).reload()
        assert state(denizen, "echo") == ("failed", "the skill echo has no setting `lout`")


async def test_a_markdown_skill_costs_a_line_and_is_read_when_needed(home: Home) -> None:
    text = "---\nname: how-to\ndescription: How we write announcements.\nlicense: free\n---\n\nBegin with the end.\n"
    home.add_file("skills/how-to/SKILL.md", text)
    home.add_file("skills/how-to/run.py", "raise SystemExit('never run')\n")
    async with open_home(home, enable_skills(home, "how-to")) as denizen:
        generation = denizen.runtime.current
        spec = (await list_all(generation.toolsets))["read_skill"].spec
        assert "how-to (How we write announcements.)" in spec.description
        read = await run(generation, "read_skill", name="how-to")
        assert read.text == "Begin with the end.\n\n[files of this skill: run.py]"
        assert "never run" in (await run(generation, "read_skill", name="how-to", file="run.py")).text
        assert (await run(generation, "read_skill", name="how-to", file="../../denizen.yaml")).is_error


@pytest.mark.proves("VW6")
async def test_a_skill_whose_manifest_is_wrong_or_missing_is_not_loaded_and_the_fault_is_told(home: Home) -> None:
    write_skill(home, "echo", manifest="tyer: 0")
    async with open_home(home, enable_skills(home, "echo")) as denizen:
        assert "echo_say" not in await list_tool_names(denizen.runtime.current)
        (entry,) = denizen.generation_deps.own_skills.entries
        assert (entry.why, entry.fix) == ("skill.yaml: there is no key `tyer`", "did you mean `tier`?")
    (home.path / "skills" / "echo" / "skill.yaml").unlink()
    async with open_home(home, enable_skills(home, "echo")) as denizen:
        assert "echo_say" not in await list_tool_names(denizen.runtime.current)
        assert "it has neither skill.yaml nor SKILL.md" in state(denizen, "echo")[1]


async def test_a_custom_tool_cannot_take_the_name_of_a_built_in_one(home: Home) -> None:
    with pytest.raises(InvalidInput, match=r"custom_tools\.calculator: this is the name of a tool of the skill"):
        async with open_home(home, LAB + "custom_tools: {calculator: {description: x, argv: [date]}}\n"):
            pass


@pytest.mark.proves("T-config-custom")
async def test_custom_tools_commands_and_rules_are_empty_by_default(home: Home) -> None:
    settings = home.load(LAB)
    assert (settings.custom_tools, settings.commands, dict(settings.skills)) == ((), (), {})
    assert settings.gate.rules == ()
    assert not settings.gate.tiers


@pytest.mark.proves("T-tool-custom")
async def test_a_configured_program_is_a_tool_with_required_parameters(home: Home) -> None:
    text = LAB + (
        'custom_tools:\n  greet: {description: Greets., argv: [printf, "%s", "hello {{who}}"], tier: 1,\n'
        "    parameters: {who: {description: a name}}}\n"
    )
    async with open_home(home, text) as denizen:
        spec = (await list_all(denizen.runtime.current.toolsets))["greet"].spec
        assert spec.parameters["required"] == ["who"]
        assert denizen.settings.custom_tools[0].timeout_s == 30
        assert (await run(denizen.runtime.current, "greet", who="$(id); `id`")).text == "hello $(id); `id`"


@pytest.mark.proves("TW20", "T-config-tools")
async def test_what_can_harm_is_off_until_it_is_switched_on(home: Home) -> None:
    harmful = {"exec", "read", "write", "create_skill", "write_skill", "restart_denizen"}
    async with open_home(home, LAB) as denizen:
        assert not harmful & set(await list_tool_names(denizen.runtime.current))
        text = LAB + "tools: {system: {allow: [date]}, files: {enabled: true}}\n"
        home.write(text)
        await Reloader(denizen).reload()
        assert harmful & set(await list_tool_names(denizen.runtime.current)) == {"read", "write"}


@pytest.mark.proves("T-tool-exec", "T-tool-read", "T-tool-write", "TW20")
async def test_programs_and_folders_that_the_configuration_allows_are_allowed_and_no_others(home: Home) -> None:
    shared = home.path / "shared"
    tools = f"tools: {{system: {{enabled: true, allow: [printf]}}, files: {{enabled: true, allowed: ['{shared}']}}}}\n"
    shared.mkdir(parents=True)
    async with open_home(home, LAB + tools) as denizen:
        now = denizen.runtime.current
        assert (await run(now, "exec", command="printf x")).text == "x"
        assert (await run(now, "exec", command="date")).is_error
        assert not (await run(now, "write", path="note.txt", content="tea")).is_error
        assert (await run(now, "read", path="note.txt")).text == "tea"
        for path in (str(home.config), "../denizen.yaml"):
            assert (await run(now, "read", path=path)).is_error
            assert (await run(now, "write", path=f"{path}.new", content="x")).is_error


async def test_changes_of_skill_files_are_watched(home: Home) -> None:
    from denizen.app.reload import _files, _is_ours, _list_places

    folder = write_skill(home, "echo")
    assert folder / "skill.py" in set(_files([home.path]))
    assert _is_ours(_list_places([home.path]), str(folder / "skill.py"))


async def test_a_skill_that_changed_beside_a_mistake_in_the_configuration_is_off_once_that_is_corrected(
    home: Home,
) -> None:
    write_skill(home, "echo")
    good = enable_skills(home, "echo")
    async with open_home(home, good) as denizen:
        reloader = Reloader(denizen)
        write_skill(home, "echo", word="two")
        home.write(good.replace("providers: {", "providers: {own: {kind: embedded, model: no-such-weights}, "))
        with pytest.raises(NotFound):
            await reloader.reload()
        home.write(good)
        assert (await reloader.reload()).changed
        assert "echo_say" not in await list_tool_names(denizen.runtime.current)


@pytest.mark.proves("VW8", "T-config-validation")
async def test_pinned_tools_are_read_from_the_configuration_and_must_exist(home: Home) -> None:
    async with open_home(home, LAB + 'agents: {ada: {pinned_tools: [calculator, "*_notes"]}}\n') as denizen:
        assert denizen.queries.get_agent("ada").tool_access.pinned_tools == ("calculator", "*_notes")
    with pytest.raises(InvalidInput, match=r"agents\.ada\.pinned_tools\[0\]: there is no tool 'calculater'"):
        async with open_home(home, LAB + "agents: {ada: {pinned_tools: [calculater]}}\n"):
            pass


async def test_a_tool_of_a_skill_that_is_off_does_not_stop_the_start_and_an_unknown_one_otherwise_does(
    home: Home,
) -> None:
    write_skill(home, "echo")
    text = enable_skills(home, "echo", more="agents: {ada: {tools: [echo_say]}}")
    write_skill(home, "echo", word="two")
    async with open_home(home, text) as denizen:
        assert denizen.queries.get_agent("ada").tool_access.tools == ("echo_say",)
    write_skill(home, "echo")
    with pytest.raises(InvalidInput):
        async with open_home(home, enable_skills(home, "echo", more="agents: {ada: {tools: [gone]}}")):
            pass
