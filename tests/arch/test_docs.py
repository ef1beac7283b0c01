"""The documentation holds, and the checks that say so can fail."""

import ast
import re
from pathlib import Path
from textwrap import dedent

import pytest

from scripts.docs.__main__ import ROOT, find_problems, find_stale, write
from scripts.docs.commands import explain_refusal, find_wrong_commands, split_commands
from scripts.docs.configuration import walk_keys
from scripts.docs.glossary import GLOSSARY, build_glossary, find_unexplained_terms, summarize
from scripts.docs.links import find_broken_links
from scripts.docs.markdown import Page, list_pages, load_page, read_page
from scripts.docs.pages import REFERENCE
from scripts.docs.snippets import check_config, find_broken_snippets
from scripts.docs.table import escape, format_table
from scripts.python_sources import Module, build_module, load_modules


def make_page(text: str, folder: Path, name: str = "page.md") -> Page:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    return load_page(path, folder)


def list_problems(text: str) -> list[str]:
    return list(find_broken_snippets(read_page(dedent(text), Path("page.md"), "page.md")))


@pytest.mark.skipif(not list_pages(ROOT), reason="this is not a checkout")
def test_links_snippets_and_commands_of_all_pages_hold() -> None:
    assert list(find_problems(ROOT)) == []


@pytest.mark.proves("CW12")
def test_a_reference_that_does_not_say_what_the_program_says_is_told(tmp_path: Path) -> None:
    assert {problem.partition(": ")[2] for problem in find_stale(tmp_path)} == {"is missing"}
    write(tmp_path)
    assert list(find_stale(tmp_path)) == []
    page = tmp_path / REFERENCE / "configuration.md"
    page.write_text(page.read_text(encoding="utf-8").replace("8650", "8643"), encoding="utf-8")
    (tmp_path / REFERENCE / "wishes.md").write_text("# Wishes\n", encoding="utf-8")
    assert list(find_stale(tmp_path)) == [
        "docs/reference/configuration.md: is out of date",
        "docs/reference/wishes.md: nothing generates this",
    ]


@pytest.mark.proves("CW12")
@pytest.mark.skipif(not list_pages(ROOT), reason="this is not a checkout")
def test_the_reference_in_this_checkout_says_what_the_program_says() -> None:
    assert list(find_stale(ROOT)) == []


def list_told_texts() -> set[str]:
    """Returns every text of the program, with `...` for what is put into it."""
    told: set[str] = set()
    for node in (node for module in load_modules(ROOT, "src") for node in module.walk.nodes):
        match node:
            case ast.Constant(value=str() as text):
                told.add(text)
            case ast.JoinedStr(values=parts):
                told.add("".join(str(each.value) if isinstance(each, ast.Constant) else "..." for each in parts))
            case _:
                pass
    return told


@pytest.mark.skipif(not list_pages(ROOT), reason="this is not a checkout")
def test_each_message_of_the_page_about_trouble_is_one_that_the_program_says() -> None:
    page = (ROOT / "docs/how-to/in-trouble.md").read_text(encoding="utf-8")
    messages = re.findall(r"^\| (?:.* says )?`([A-Z.][^`]+)` \|", page, re.MULTILINE)
    assert len(messages) > 30
    assert set(messages) - list_told_texts() == set()


def test_links_to_files_and_headings_are_followed(tmp_path: Path) -> None:
    other = make_page("# A `b` c!\n\n# Twice\n\n# Twice\n", tmp_path, "docs/other.md")
    good = make_page(
        """
        [a](docs/other.md) [b](docs/other.md#a-b-c) [c](docs/other.md#twice-1) [d](#here) [e](https://example.org/x)

        # Here
        """,
        tmp_path,
    )
    assert list(find_broken_links([other, good], tmp_path)) == []
    bad = make_page("[a](docs/gone.md)\n[b](docs/other.md#gone)\n\n[c](#gone)", tmp_path)
    assert list(find_broken_links([other, bad], tmp_path)) == [
        "page.md:1: the link docs/gone.md leads nowhere",
        "page.md:2: the page of the link docs/other.md#gone has no such heading",
        "page.md:4: the page of the link #gone has no such heading",
    ]


def test_paths_in_running_text_are_looked_up_from_the_top_and_in_the_package(tmp_path: Path) -> None:
    (tmp_path / "src" / "denizen" / "engine").mkdir(parents=True)
    (tmp_path / "src" / "denizen" / "engine" / "turn.py").touch()
    page = make_page("`src/denizen/engine/turn.py` `engine/turn.py` `app/settings` `tests/gone.py` `a/b`", tmp_path)
    assert [line.partition(": ")[2] for line in find_broken_links([page], tmp_path)] == [
        "there is no app/settings",
        "there is no tests/gone.py",
    ]


def test_commands_that_the_program_refuses_are_told() -> None:
    script = """
        denizen trace turn_1 && cd x | denizen ask --nonsense "a b" 2>/dev/null
        VAR=1 .venv/bin/denizen gone \\
            --more
        make test no-such-target  # make neither
        cat <<'END'
        denizen gone
        END
        other --nonsense
    """
    said = list(find_wrong_commands(dedent(script)))
    assert [line.partition(": ")[0] for line in said] == [
        "`denizen ask --nonsense 'a b'`",
        "`.venv/bin/denizen gone --more`",
        "there is no `make no-such-target`",
    ]


def test_help_and_version_are_understood_and_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert [explain_refusal(each) for each in (["--help"], ["--version"], ["ask", "-h"])] == ["", "", ""]
    assert capsys.readouterr().out == ""


def test_a_value_that_an_option_does_not_take_is_told() -> None:
    assert "is not one of" in explain_refusal(["ask", "--provider", "nobody", "hello"])


def test_only_running_text_may_name_a_command_without_its_arguments() -> None:
    assert list_problems("See `denizen trace` and `denizen ask --agent`.") == [
        "page.md:1: `denizen ask --agent`: Option '--agent' requires an argument."
    ]
    assert "Missing argument" in list_problems("```sh\ndenizen replay\n```")[0]


def test_a_script_is_split_like_a_shell_does() -> None:
    assert list(split_commands("A=1 a 'b c' >x 2>&1; (d) || e & f # g")) == [["a", "b c"], ["d"], ["e"], ["f"]]
    assert list(split_commands("a http://b:1/c --d=e")) == [["a", "http://b:1/c", "--d=e"]]
    assert list(split_commands("a 'b\nc' # it's\nd")) == [["a", "b\nc"], ["d"]]


def test_a_configuration_is_checked_by_the_program_itself() -> None:
    good = """
        models:
          providers:
            anthropic: {kind: anthropic, api_key: "${ANTHROPIC_API_KEY}"}
          aliases: {balanced: anthropic/some-model}
    """
    assert list(check_config(dedent(good))) == []
    assert [line.partition(" ")[0] for line in check_config("serverr: {}\nagents:\n  a: {model: gone}\n")] == [
        "3:",
        "1:",
    ]


@pytest.mark.parametrize(
    ("info", "text", "says"),
    [
        ("sh", "denizen gone", "No such command"),
        ("sh", "echo 'a", "this is no shell"),
        ("yaml config", "serverr: {}", "server"),
        ("yaml", "a: [", "this is no YAML"),
        ("python", "a =", "this is no Python"),
        ("python", "from denizen.skill import gone", "this import fails"),
        ("python", "from denizen.gone import a", "this import fails"),
        ("python run", "assert 1 + 1 == 3, 'odd'", "odd"),
        ("json", "{a}", "this is no JSON"),
        ("", "a", "a block says what it holds"),
    ],
)
def test_a_block_that_does_not_hold_is_told(info: str, text: str, says: str) -> None:
    (problem,) = list_problems(f"```{info}\n{text}\n```\n")
    assert problem.startswith("page.md")
    assert says in problem


def test_blocks_that_are_run_share_one_program_and_others_are_only_compiled() -> None:
    text = "```python run\na = 1\n```\n\n```python run\nassert a == 1\n```\n\n```python\nimport gone\n```\n"
    assert list_problems(text) == []


def test_every_key_of_a_schema_is_walked_through_names_and_lists() -> None:
    schema = {
        "properties": {
            "a": {"type": "string"},
            "b": {"additionalProperties": {"$ref": "#/$defs/B"}, "type": "object"},
            "c": {"items": {"$ref": "#/$defs/B"}, "type": "array"},
            "d": {"$ref": "#/$defs/B"},
            "e": {"additionalProperties": {"type": "string"}, "type": "object"},
        }
    }
    definitions = {"B": {"properties": {"x": {"type": "integer"}}, "required": ["x"]}}
    keys = [(path, required) for path, _, required in walk_keys(schema, definitions)]
    assert keys == [("a", False), ("b.NAME.x", True), ("c[].x", True), ("d.x", True), ("e", False)]


def test_a_key_in_running_text_that_the_configuration_does_not_have_is_found() -> None:
    real = "`store.url`, `models.aliases.fast`, `agents.NAME.limits`, `agent_defaults.hooks`, `tools.web.key`"
    assert list_problems(f"{real}, `discord.message`, `store.py`\n") == []
    assert list_problems("`store.adress` and `gate.rules.acton`\n") == [
        "page.md:1: the configuration has no key store.adress",
        "page.md:1: the configuration has no key gate.rules.acton",
    ]


def test_tables_and_plain_text_survive_markdown() -> None:
    assert format_table(("a", "b"), [("1|2", "x")]) == "| a | b |\n| --- | --- |\n| 1\\|2 | x |"
    assert escape("2 ** 3 <b> [x](y) a_b") == "2 \\*\\* 3 \\<b> \\[x](y) a\\_b"


# --- the glossary -----------------------------------------------------------------------------------------------------

WRITTEN = """\
# Glossary

| Term | Meaning | In the code |
| --- | --- | --- |
| turn | one message until its reply | `denizen.domain.turn` |
"""


def glossary_modules(turn: str = 'class Turn:\n    """One trigger. With steps."""\nclass _Own: ...') -> list[Module]:
    return [
        build_module("denizen/__init__.py", '"""Denizen."""'),
        build_module("denizen/domain/__init__.py", '"""Records, and `_pure_` decisions.\n\nMore."""'),
        build_module("denizen/domain/turn.py", turn),
        build_module("denizen/domain/clock.py", "def now(): ..."),
        build_module("denizen/engine/loop/loop.py", "class Loop: ..."),
    ]


def test_the_glossary_lists_packages_and_records_and_keeps_what_people_wrote() -> None:
    page = build_glossary(WRITTEN, glossary_modules())
    assert page.startswith(WRITTEN)
    assert "| `denizen.domain` | Records, and `_pure_` decisions. |\n" in page
    assert "| `Turn` | `domain.turn` | One trigger. |\n" in page
    assert "_Own" not in page and "Loop" not in page
    assert build_glossary(page, glossary_modules()) == page
    assert build_glossary("", []).startswith("# Glossary\n")


def test_a_concept_without_a_term_a_term_without_code_and_a_record_without_a_sentence_are_told() -> None:
    assert list(find_unexplained_terms(WRITTEN, glossary_modules())) == []
    assert list(find_unexplained_terms("", glossary_modules())) == [f"denizen.domain.turn is no term of {GLOSSARY}"]
    gone = WRITTEN + "| step | a request | `denizen.domain.step` |\n"
    assert list(find_unexplained_terms(gone, glossary_modules("class Turn: ..."))) == [
        "the term step names denizen.domain.step, which is not there",
        "denizen.domain.turn.Turn has no docstring",
    ]


def test_the_first_sentence_ends_at_a_stop_and_nothing_in_it_is_markdown_but_code() -> None:
    assert summarize("A *set* of `a_b`, e.g. two\nlines. And more.\n\nRest.") == "A \\*set\\* of `a_b`, e.g. two lines."
    assert summarize(None) == ""
