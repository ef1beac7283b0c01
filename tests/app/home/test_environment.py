"""The process environment and where the home folder is."""

from pathlib import Path

import pytest

from denizen.app.home.environment import plan_home, read_environment


def test_the_environment_is_a_copy_that_nobody_can_change(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DENIZEN_TEST_VALUE", "before")
    environment = read_environment()
    monkeypatch.setenv("DENIZEN_TEST_VALUE", "after")
    assert environment["DENIZEN_TEST_VALUE"] == "before"
    with pytest.raises(TypeError):
        environment["DENIZEN_TEST_VALUE"] = "changed"  # pyright: ignore[reportIndexIssue]


def test_programs_beside_this_python_are_found_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert read_environment()["PATH"] == f"/usr/bin:/bin:{tmp_path}"
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert read_environment()["PATH"] == f"{tmp_path}:/bin"
    monkeypatch.delenv("PATH")
    assert read_environment()["PATH"].endswith(f":{tmp_path}")


@pytest.mark.parametrize(
    ("given", "variable", "home"),
    [
        (None, "", "/users/ann/.denizen"),
        (None, "/srv/denizen", "/srv/denizen"),
        ("/opt/here", "/srv/denizen", "/opt/here"),
        ("~/bots", "", "/users/ann/bots"),
        ("~", "", "/users/ann"),
    ],
)
def test_the_option_comes_before_the_variable_and_both_before_the_default(given: str | None, variable: str, home: str):
    assert plan_home({"HOME": "/users/ann", "DENIZEN_HOME": variable}, given) == Path(home)


def test_a_relative_home_is_made_absolute():
    assert plan_home({"HOME": "/users/ann"}, "here").is_absolute()
