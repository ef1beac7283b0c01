"""What may catch everything, and that `scripts.shape`, which says so, sees what it claims to see."""

from pathlib import Path
from textwrap import dedent

import pytest

from scripts.shape import BOUNDARIES, ROOT, check_module, find_broad_excepts, list_sources, main


def test_nothing_catches_everything_outside_the_listed_boundaries() -> None:
    found = {
        place
        for path in list_sources(ROOT, ["src"])
        for place in find_broad_excepts(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    }
    assert sorted(found - set(BOUNDARIES)) == [], "name the errors that you expect, or let them rise to a boundary"
    assert sorted(set(BOUNDARIES) - found) == [], "these boundaries are gone: take them out of scripts/shape.py"


@pytest.mark.parametrize(
    "handler",
    [
        "except Exception: pass",
        "except BaseException as error: log(error)",
        "except: pass",
        "except (ValueError, Exception): pass",
        "except* Exception: pass",
        "except builtins.Exception: raise Other from None",
    ],
)
def test_every_form_of_a_broad_except_is_seen(handler: str) -> None:
    source = f"class A:\n    async def b(self):\n        try: run()\n        {handler}\n"
    assert list(find_broad_excepts("m.py", source)) == ["m.py::A.b"]


def test_a_broad_suppress_is_seen_and_cleaning_up_is_not() -> None:
    source = """
        with contextlib.suppress(Exception):
            run()
        try: run()
        except BaseException:
            clean()
            raise
        try: run()
        except (ValueError, OSError): pass
    """
    assert list(find_broad_excepts("m.py", dedent(source))) == ["m.py::<module>"]


def test_long_modules_long_functions_many_parameters_and_deep_nesting_are_found() -> None:
    source = [
        "def wide(self, a, b, c, d, e, f, *, g): ...",
        "def narrow(self, a, b, c, d, e, f): ...",
        "def long():",
        *["    run()"] * 60,
        "def deep():",
        *[f"{'    ' * depth}if x:" for depth in range(1, 6)],
        "                        run()",
        "def flat():",
        *["    if x: run()", *["    elif x: run()"] * 5],
        *["x = 1"] * 500,
    ]
    said = [finding.says.split(" (")[0] for finding in check_module("m.py", "\n".join(source))]
    assert said == [
        f"a module of {len(source)} lines",
        "wide has 7 parameters",
        "long has 61 lines",
        "deep nests 5 deep",
    ]


def test_findings_are_printed_and_fail_only_when_asked_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "fine.py").write_text("x = 1\n", encoding="utf-8")
    assert main(["--strict"], tmp_path) == 0
    (tmp_path / "src" / "broad.py").write_text("try: x = 1\nexcept: pass\n", encoding="utf-8")
    assert [main([], tmp_path), main(["--strict"], tmp_path)] == [0, 1]
    said = "src/broad.py::<module>: a broad except outside the boundaries\n1 findings\n"
    assert capsys.readouterr().out == f"in shape\n{said}{said}"


def test_every_source_is_looked_at_but_the_log_of_migrations(tmp_path: Path) -> None:
    for name in ("src/a.py", "src/b/c.py", "src/b/migrations/versions/0001.py", "src/b/d.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert [path.name for path in list_sources(tmp_path, ["src"])] == ["a.py", "c.py"]
