"""The conventions hold, and each rule of `scripts.conventions` sees what it claims to see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from textwrap import dedent

import pytest

from scripts.conventions import english, names, structure, suite
from scripts.conventions.__main__ import ROOT, find_offences, main
from scripts.python_sources import Module, build_module

Rule = Callable[[Sequence[Module]], Iterable[str]]


def modules(**sources: str) -> list[Module]:
    """Modules below `src` by their dotted names, with `__` for dots; a name that ends in `__` is a package."""
    return [
        build_module(f"{name.replace('__', '/')}{'__init__' if name.endswith('__') else ''}.py", dedent(text))
        for name, text in sources.items()
    ]


def check(rule: Rule, text: str) -> list[str]:
    """The offences in a module `m`, without their path."""
    return [place.removeprefix("src/m.py").removeprefix("::") for place in rule(modules(m=text))]


def test_nothing_breaks_a_rule() -> None:
    found = sorted(map(str, find_offences(ROOT)))
    assert found == [], "see scripts/conventions for the rules and their reasons"


# --- names ------------------------------------------------------------------------------------------------------------


def test_a_public_class_name_of_two_modules_is_found() -> None:
    found = names.find_duplicate_classes(
        modules(a="class Answer: ...\nclass _Own: ...\nclass Only: ...", b__c="class Answer: ...\nclass _Own: ...")
    )
    assert list(found) == ["Answer: a, b.c"]


@pytest.mark.parametrize("name", ["Begun", "_Told", "Opened", "Asking", "Beside", "Live", "Refused"])
def test_a_class_named_by_a_participle_or_an_adjective_is_found(name: str) -> None:
    assert check(names.find_bare_words, f"class {name}: ...") == [name]


@pytest.mark.parametrize(
    "name", ["Embedding", "Setting", "Feed", "String", "Secret", "TurnOpened", "OpenOptions", "Store"]
)
def test_a_class_named_by_a_noun_is_not(name: str) -> None:
    assert check(names.find_bare_words, f"class {name}: ...") == []


def test_functions_named_x_of_y_are_found_wherever_they_are_defined() -> None:
    source = """
        def key_of(x): ...
        class A:
            async def size_of_page(self):
                def part_of(x): ...
            def profile(self): ...
            def offer(self): ...
    """
    assert check(names.find_of_functions, source) == ["key_of", "A.size_of_page", "A.size_of_page.part_of"]


def test_the_name_of_a_vendor_as_a_value_is_found_in_layers_that_know_none() -> None:
    source = """
        def is_here(platform: str) -> bool:
            "discord"
            return platform == "discord" or "github.com" in platform
    """
    found = names.find_vendor_literals(
        modules(denizen__engine__a=source, denizen__skill__b='HOST = "github"', denizen__adapters__discord__c=source)
    )
    assert list(found) == ['src/denizen/engine/a.py says "discord"', 'src/denizen/skill/b.py says "github"']


# --- English ----------------------------------------------------------------------------------------------------------


def test_docstrings_that_open_with_what_or_of_are_found() -> None:
    source = '''
        """What this is."""
        LIMIT = 3
        """Of characters."""
        class A:
            """Offers what is needed."""
            size: int
            """What it takes."""
            def run(self):
                """
                What's run.
                """
    '''
    assert check(english.find_unclear_openings, source) == ["<module>", "LIMIT", "A.size", "A.run"]


@pytest.mark.parametrize(
    ("text", "citation"),
    [
        ("It waits (inventory V28, C2).", "(inventory V28, C2)"),
        ("Of inventory 2.7, all.", "inventory 2.7,"),
        ("It leaks nothing (promise 3).", "promise 3"),
        ("It retries (VW8).", "(VW8)"),
        ("It retries (C1, T14).", "(C1, T14)"),
        ("As S-prompt-chat has it.", "S-prompt-chat"),
        ("As VW8 has it.", "VW8"),
    ],
)
def test_citations_of_what_the_repository_does_not_hold_are_found(text: str, citation: str) -> None:
    [found] = english.find_citations({"a.md": text}, {"S-prompt-chat", "VW8", "S608", "T1"})
    assert found.startswith("a.md::")
    assert citation.rstrip(",") in found


def test_codes_of_linters_and_words_of_the_trade_are_no_citations() -> None:
    text = "run()  # noqa: S608 - a promise\nThe stock (an inventory) is in S3, a promise to T1."
    assert list(english.find_citations({"a.py": text}, {"S608", "S3", "T1"})) == []


def test_promise_ids_are_read_from_the_sources_that_hold_them() -> None:
    assert english.list_promise_ids(['Requirement(\n    "T-http",\n "4.11")', 'Requirement("P1")']) == {"T-http", "P1"}


def test_packages_without_a_docstring_are_found() -> None:
    packages = modules(a__='"""Tables."""', b__="", c__='"""TODO tables."""')
    assert list(english.find_missing_package_docstrings(packages)) == ["src/b/__init__.py", "src/c/__init__.py"]


def test_a_path_in_backticks_that_leads_nowhere_is_found() -> None:
    text = '"""See `engine/turn`, `engine/gone` and `engine/store.load`; `v1/chat` is a route."""'
    tree = modules(d__engine__="", d__engine__turn=text)
    assert list(english.find_dead_references(tree)) == [
        "src/d/engine/turn.py::engine/gone",
        "src/d/engine/turn.py::engine/store",
    ]


# --- structure --------------------------------------------------------------------------------------------------------


def test_a_cycle_between_a_folder_and_its_parent_is_found_also_inside_functions_and_type_checking() -> None:
    tree = modules(
        d__='"""Root."""\n__version__ = "1"',
        d__store__="",
        d__store__unit="from d.store.tables import posts",
        d__store__tables__="",
        d__store__tables__posts="def load():\n    import d.store.unit",
        d__web__pages="if TYPE_CHECKING:\n    from d.api.routes import Route",
        d__api__routes="from d.mid.x import y",
        d__mid__x="from d.web.pages import z",
    )
    assert list(structure.find_folder_cycles(tree)) == ["d.api <-> d.mid <-> d.web", "d.store <-> d.store.tables"]


def test_imports_within_a_folder_in_one_direction_and_of_the_bare_root_are_no_cycle() -> None:
    tree = modules(
        d__='__version__ = "1"',
        d__a__one="import d.a.two\nfrom d.b.one import x\nfrom d import __version__",
        d__a__two="import d.a.one",
        d__main="import d.a.one",
        d__b__one="import d",
    )
    assert list(structure.find_folder_cycles(tree)) == []


def test_a_private_helper_that_is_called_once_is_found() -> None:
    source = """
        def run(x):
            return _clean(x)
        def _clean(x):
            x = x.strip()
            return x
        class A:
            def run(self):
                return self._load()
            def _load(self):
                return 1
    """
    assert check(structure.find_single_use_helpers, source) == ["_clean", "A._load"]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("def run():\n    _a()\n    _b()\ndef _a(): ...\ndef _b(): ...", id="steps"),
        pytest.param("def run(x): return _a(x)\ndef other(x): return _a(x)\ndef _a(x): ...", id="twice"),
        pytest.param("def run(group): group.start_soon(_a)\ndef _a(): ...", id="value"),
        pytest.param("def run(): return list(_a())\ndef _a(): yield 1", id="generator"),
        pytest.param("def run():\n    with _a(): pass\n@contextmanager\ndef _a(): ...", id="decorated"),
        pytest.param("def run(): return _a(1)\ndef _a(x):\n    return x and _a(x - 1)", id="recursive"),
        pytest.param("def run(): return _a(1)\ndef _a(x):\n    if x: return 1\n    return 2", id="early return"),
        pytest.param(
            "def run(xs): return [_a(x) for x in xs]\ndef _a(x):\n    y = x\n    return y", id="comprehension"
        ),
        pytest.param("TABLE = _a()\ndef _a():\n    x = {}\n    return x", id="module"),
    ],
)
def test_a_helper_that_earns_its_place_is_not(source: str) -> None:
    assert check(structure.find_single_use_helpers, source) == []


def test_a_helper_that_a_test_names_with_its_module_is_not_a_single_use() -> None:
    source = modules(denizen__m="def run(): return _a()\ndef _a(): return 1")
    assert list(structure.find_single_use_helpers(source)) == ["src/denizen/m.py::_a"]
    assert list(structure.find_single_use_helpers(source, ["from denizen.other import _a"])) == ["src/denizen/m.py::_a"]
    assert list(structure.find_single_use_helpers(source, ["from denizen.m import _a"])) == []


def test_a_record_of_more_than_twelve_fields_is_found_and_inherited_fields_count() -> None:
    def fields(first: int, count: int) -> str:
        return "".join(f"    f{number}: int\n" for number in range(first, first + count))

    constant = "    LIMIT: ClassVar[int] = 3\n"
    source = (
        f"@dataclass\nclass Twelve:\n{fields(0, 12)}{constant}"
        f"@dataclass(frozen=True)\nclass Wide:\n{fields(0, 13)}"
        f"@dataclasses.dataclass\nclass Heir(Twelve):\n{fields(12, 1)}"
        f"class Plain:\n{fields(0, 20)}"
    )
    assert check(structure.find_wide_records, source) == ["Wide", "Heir"]


def test_a_call_of_our_class_with_more_than_five_positional_arguments_is_found() -> None:
    source = """
        from m.other import Point, point
        from sqlalchemy import Table
        class Local: ...
        def run():
            Point(1, 2, 3, 4, 5, 6)
            Point(1, 2, 3, 4, 5, f=6)
            point(1, 2, 3, 4, 5, 6)
            Table(1, 2, 3, 4, 5, 6)
        Local(1, 2, 3, 4, 5, 6)
    """
    assert check(structure.find_long_calls, source) == ["run calls Point", "<module> calls Local"]


def test_every_place_where_the_formatter_is_off_is_found() -> None:
    assert check(structure.find_format_skips, "a = 1  # fmt: " + "skip\n# fmt:" + "off\nb = 2  # formatted\n") == [
        " #1",
        " #2",
    ]


# --- tests ------------------------------------------------------------------------------------------------------------


def test_a_test_that_reads_a_clock_or_sleeps_is_found() -> None:
    source = """
        import time
        from time import monotonic, strftime
        def test_a():
            assert time.perf_counter() < 1
            clock.time.advance(3)
        def test_b(): time.sleep(1)
    """
    assert check(suite.find_clock_readings, source) == [
        " imports time.monotonic",
        "test_a uses time.perf_counter",
        "test_b uses time.sleep",
    ]


def test_a_short_limit_of_a_wait_is_found() -> None:
    source = """
        async def test_a():
            with anyio.fail_after(5): ...
            with anyio.fail_after(HANG_LIMIT_S): ...
            with anyio.fail_after(90), fail_after(0.5): ...
        async def test_b():
            subprocess.run(["x"], timeout=10)
            httpx2.Client(timeout=HANG_LIMIT_S).get("/", timeout=None)
            await asyncio.wait_for(done.wait(), 2)
            await world.run_command("x", wait_s=0)
    """
    assert check(suite.find_short_limits, source) == [
        "test_a waits for 5 s",
        "test_a waits for 0.5 s",
        "test_b waits for 10 s",
        "test_b waits for 2 s",
    ]


# --- the command line -------------------------------------------------------------------------------------------------


def test_an_offence_is_printed_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("src/a", "docs", "tests", "benchmarks", "scripts/conventions"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "README.md").touch()
    source = tmp_path / "src/a/b.py"
    source.write_text("class Begun: ...\n", encoding="utf-8")
    assert main([], tmp_path) == 1
    assert "bare-word: src/a/b.py::Begun\n" in capsys.readouterr().out
    source.write_text("class StartedTurn: ...\n", encoding="utf-8")
    assert main([], tmp_path) == 0
