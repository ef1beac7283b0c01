"""Changing settings in place: the right value changes, and nothing else does."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denizen.app.home.files import edit_lock
from denizen.app.settings import load_settings, parse_path, remove_secret, remove_value, set_secret, set_value
from denizen.app.settings.edit import splice_out, splice_value, with_value, without_value
from denizen.app.settings.setup import SetupAnswers, write_setup
from denizen.app.settings.yaml_document import ConfigDocument, parse_document
from denizen.domain.errors import Conflict, InvalidInput, NotFound
from denizen.domain.json import Json
from tests.app.home_folder import Home
from tests.timing import HANG_LIMIT_S

COMMENTED = """\
# about this file

server:   # where it listens
  # the port
  port: 9000  # not 8650
  # host: later

# who lives here
agents:
  denizen: {model: fast, tools: ["notes_*"]}  # one line

  rose:
    description: |
      # this is text
      two lines
    # a remark on limits
    limits:
      max_steps: 3
      # the end of limits
    # the end of rose

default_agent: denizen
# about the gate
gate:
  rules:
    # never
    - tool: a  # this tool
      action: deny
    # always
    - {tool: b, action: approve}

  tiers: {}
# the end
"""
FILE = Path("denizen.yaml")


def parse_config(text: str) -> ConfigDocument:
    document = parse_document(text, FILE)
    assert isinstance(document, ConfigDocument), document
    return document


def changed_lines(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that went and those that came, in order."""
    old, new = before.splitlines(), after.splitlines()
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return old, new


@pytest.mark.parametrize(
    ("path", "value", "gone", "come"),
    [
        ("server.port", 9001, ["  port: 9000  # not 8650"], ["  port: 9001  # not 8650"]),
        ("server.host", "::1", [], ["  host: ::1"]),
        ("default_agent", "rose", ["default_agent: denizen"], ["default_agent: rose"]),
        ("agents.denizen.planning", "plan", None, None),
        ("agents.rose.model", "${MODEL}", [], ["    model: ${MODEL}"]),
        ("agents.rose.limits.nudges", 1, [], ["      nudges: 1"]),
        ("agents.rose.limits.max_steps", 4, ["      max_steps: 3"], ["      max_steps: 4"]),
        ("gate.rules[0].action", "approve", ["      action: deny"], ["      action: approve"]),
        ("gate.rules[0].tool", "c", ["    - tool: a  # this tool"], ["    - tool: c  # this tool"]),
        ("gate.rules[0].reason", "so", [], ["      reason: so"]),
        ("gate.rules[1].tool", "c", ["    - {tool: b, action: approve}"], ["    - {tool: c, action: approve}"]),
        ("gate.rules[2]", {"tool": "c", "action": "deny"}, [], ["    - tool: c", "      action: deny"]),
        ("gate.tiers.x", 2, ["  tiers: {}"], ["  tiers:", "    x: 2"]),
        ("agents.rose.description", "short", None, None),
        ("logging.level", "debug", [], ["", "logging:", "  level: debug"]),
    ],
)
def test_setting_a_value_touches_its_own_lines_only(
    path: str, value: Json, gone: list[str] | None, come: list[str] | None
):
    document = parse_config(COMMENTED)
    after = splice_value(COMMENTED, document, parse_path(path), value)
    assert parse_config(after).tree == with_value(document.tree, parse_path(path), value)
    old, new = changed_lines(COMMENTED, after)
    if gone is not None:
        assert (old, new) == (gone, come)
    assert [line for line in COMMENTED.splitlines() if line.strip().startswith("#") and "is text" not in line] == [
        line for line in after.splitlines() if line.strip().startswith("#") and "is text" not in line
    ]


@pytest.mark.parametrize(
    ("path", "gone", "come"),
    [
        ("server.port", ["  port: 9000  # not 8650"], []),
        ("default_agent", ["default_agent: denizen"], []),
        ("agents.denizen.tools", None, None),
        ("agents.denizen", ['  denizen: {model: fast, tools: ["notes_*"]}  # one line'], []),
        ("gate.rules[1]", ["    - {tool: b, action: approve}"], []),
        (
            "gate.rules[0].tool",
            ["    - tool: a  # this tool", "      action: deny"],
            ["    - action: deny  # this tool"],
        ),
    ],
)
def test_removing_a_value_takes_its_own_lines_only(path: str, gone: list[str] | None, come: list[str] | None):
    document = parse_config(COMMENTED)
    after = splice_out(COMMENTED, document, parse_path(path))
    if gone is not None:
        assert changed_lines(COMMENTED, after) == (gone, come)
    if path != "server.port":  # which leaves the group without a value
        assert parse_config(after).tree == without_value(document.tree, parse_path(path))


@pytest.mark.parametrize(
    ("text", "come"),
    [
        ("", "server:\n  port: 1\n"),
        ("# only a comment\n", "# only a comment\nserver:\n  port: 1\n"),
        ("# one\n\n# two", "# one\n\n# two\n\nserver:\n  port: 1\n"),
        ("logging:\n    level: info\n", "logging:\n    level: info\nserver:\n    port: 1\n"),
        ("gate:\n  rules:\n  - tool: a\n", "gate:\n  rules:\n  - tool: a\nserver:\n  port: 1\n"),
        ("server:\n", "server:\n  port: 1\n"),
        ("server:  # here\n# end", "server:  # here\n  port: 1\n# end"),
        ("server: {host: a}\n", "server: {host: a, port: 1}\n"),
        ("server: {}  # empty\n", "server:  # empty\n  port: 1\n"),
    ],
)
def test_a_new_value_takes_over_how_the_file_is_laid_out(text: str, come: str):
    assert splice_value(text, parse_config(text), ("server", "port"), 1) == come


def test_what_lines_cannot_express_is_written_by_the_round_trip():
    text = "base: &b {x: 1}\nother:\n  <<: *b\n  y: 2  # why\n"
    after = splice_value(text, parse_config(text), ("other", "x"), 5)
    assert parse_config(after).tree == {"base": {"x": 1}, "other": {"x": 5, "y": 2}}
    assert "# why" in after


def test_a_value_that_no_file_can_hold_is_a_conflict():
    with pytest.raises(Conflict):
        splice_value(COMMENTED, parse_config(COMMENTED), ("default_agent",), "\uf101")


@pytest.mark.parametrize("path", ["server.port.x", "gate.rules[5]", "agents.rose[0]", "default_agent[0]"])
def test_a_path_through_what_is_no_group_is_not_found(path: str):
    with pytest.raises(NotFound):
        splice_value(COMMENTED, parse_config(COMMENTED), parse_path(path), 1)


def test_a_value_that_is_not_there_cannot_be_removed():
    with pytest.raises(NotFound):
        splice_out(COMMENTED, parse_config(COMMENTED), ("server", "host"))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("server.port", ("server", "port")),
        ('models.overrides."lab/qwen3.5".images', ("models", "overrides", "lab/qwen3.5", "images")),
        ("models.overrides.lab/qwen3.images", ("models", "overrides", "lab/qwen3", "images")),
        ("gate.rules[0].args.x", ("gate", "rules", 0, "args", "x")),
    ],
)
def test_a_path_is_read_as_people_write_it(text: str, path: tuple[str | int, ...]):
    assert parse_path(text) == path


@pytest.mark.parametrize("text", ["", ".", "a..b", "a.", "[0]", "a[x]", 'a."b', "a[0]b"])
def test_what_is_no_path_is_refused(text: str):
    with pytest.raises(InvalidInput):
        parse_path(text)


def test_an_accepted_change_is_in_the_file_and_in_effect(home: Home):
    home.write(COMMENTED)
    settings = set_value(home.path, {}, ("server", "port"), 9001)
    assert settings.server.port == load_settings(home.path, {}).server.port == 9001
    assert remove_value(home.path, {}, ("server", "port")).server.port == 8650


def test_the_first_change_makes_the_file(home: Home):
    folder = home.path / "new"
    assert set_value(folder, {}, ("server", "port"), 1).server.port == 1
    assert (folder / "denizen.yaml").read_text(encoding="utf-8") == "server:\n  port: 1\n"


@pytest.mark.proves("TW11")
@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("server.prot", 1, "server.prot: this key is not known"),
        ("agents.rose.model", "nonesuch", "no alias 'nonesuch'"),
        ("tools.weather.api_key", "literal", "a secret must not stand"),
        ("server.host", "${UNSET_HOST}", "UNSET_HOST is not set"),
    ],
)
def test_a_change_that_could_not_be_loaded_fails_and_changes_nothing(home: Home, path: str, value: Json, says: str):
    home.write(COMMENTED)
    with pytest.raises(InvalidInput, match=says):
        set_value(home.path, {}, parse_path(path), value)
    assert home.config.read_text(encoding="utf-8") == COMMENTED
    assert [file.name for file in home.path.iterdir()] == ["denizen.yaml"]


def test_a_file_that_is_no_yaml_is_not_edited(home: Home):
    home.write("server\n")
    with pytest.raises(InvalidInput, match="must hold keys"):
        set_value(home.path, {}, ("server", "port"), 1)


def test_the_mode_of_the_file_and_a_link_to_it_stay(home: Home, tmp_path: Path):
    real = home.add_file("elsewhere/real.yaml", COMMENTED, mode=0o640)
    home.config.symlink_to(real)
    set_value(home.path, {}, ("server", "port"), 1)
    assert home.config.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "port: 1 " in real.read_text(encoding="utf-8")


def set_port(home: Path) -> None:
    set_value(home, {}, ("server", "port"), 1)


def remove_level(home: Path) -> None:
    remove_value(home, {}, ("logging", "level"))


def set_key(home: Path) -> None:
    set_secret(home, {}, ("knowledge", "youtube", "api_key"), ("YOUTUBE_KEY", "a-key"))


def remove_other(home: Path) -> None:
    remove_secret(home, {}, ("logging", "level"), "OTHER")


def set_up(home: Path) -> None:
    write_setup(home, SetupAnswers(discord_token="a-token"), environment={})


@pytest.mark.parametrize(
    ("text", "left", "secrets"),
    [
        ("{level}knowledge:\n  webhooks:\n    a: ${{HOOK}}\n", "{level}", "# mine\nOTHER=1\n"),
        (
            "{level}knowledge:\n  sync_every_minutes: 5\n  webhooks:\n    a: ${{HOOK}}\n",
            "{level}knowledge:\n  sync_every_minutes: 5\n",
            "# mine\nOTHER=1\n",
        ),
        (
            "{level}knowledge:\n  webhooks:\n    a: ${{HOOK}}\n    b: ${{HOOK}}\n",
            "{level}knowledge:\n  webhooks:\n    b: ${{HOOK}}\n",
            "# mine\nOTHER=1\nHOOK=x\n",
        ),
        ("{level}knowledge:\n  webhooks:\n    # ours\n    a: ${{HOOK}}\n", "{level}    # ours\n", "# mine\nOTHER=1\n"),
        ("knowledge:\n  webhooks:\n    a: ${{HOOK}}\n", "knowledge:\n", "# mine\nOTHER=1\n"),
    ],
)
def test_a_secret_is_removed_with_its_setting_and_what_that_leaves_empty_unless_something_else_needs_them(
    text: str, left: str, secrets: str, home: Home
):
    home.write(text.format(level=LEVEL))
    file = home.add_file("secrets.env", "# mine\nOTHER=1\nHOOK=x\n", mode=0o600)
    remove_secret(home.path, {}, ("knowledge", "webhooks", "a"), "HOOK")
    assert home.config.read_text(encoding="utf-8") == left.format(level=LEVEL)
    assert file.read_text(encoding="utf-8") == secrets


LEVEL = "logging: {level: debug}\n"
CHANNELS = """\
channels:
  discord:
    accounts:
      denizen:
        token: ${DISCORD_TOKEN_DENIZEN}
"""


@pytest.mark.proves("T7")
@pytest.mark.parametrize(
    ("edit", "written", "secrets"),
    [
        (set_port, LEVEL + "server:\n  port: 1\n", "OTHER=1\n"),
        (remove_level, "logging: {}\n", "OTHER=1\n"),
        (set_key, LEVEL + "knowledge:\n  youtube:\n    api_key: ${YOUTUBE_KEY}\n", "OTHER=1\nYOUTUBE_KEY=a-key\n"),
        (remove_other, "logging: {}\n", ""),
        (set_up, f"{LEVEL}{CHANNELS}", "OTHER=1\nDISCORD_TOKEN_DENIZEN=a-token\n"),
    ],
)
def test_edits_wait_for_each_other(
    home: Home, edit: Callable[[Path], None], written: str, secrets: str, monkeypatch: pytest.MonkeyPatch
):
    """The second editor has to see what the first one wrote, or one change would be lost."""
    waits, lock = threading.Event(), fcntl.flock

    def lock_and_tell(handle: int, how: int) -> None:
        waits.set()
        lock(handle, how)

    with edit_lock(home.path):
        monkeypatch.setattr(fcntl, "flock", lock_and_tell)
        other = threading.Thread(target=edit, args=(home.path,))
        other.start()
        assert waits.wait(HANG_LIMIT_S)
        home.write(LEVEL)
        home.add_file("secrets.env", "OTHER=1\n", mode=0o600)
    other.join(HANG_LIMIT_S)
    assert home.config.read_text(encoding="utf-8") == written
    assert (home.path / "secrets.env").read_text(encoding="utf-8") == secrets


KEYS = st.sampled_from(["server", "agents", "rose", "limits", "gate", "tiers", "a b", "1", "x.y", "${X}", "#", "yes"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-10, 10**6),
    st.sampled_from(
        ["", "a", "${X}", "a: b", "# no", "x # y", "'", '"', "- a", "[", "yes", "1", "two\nlines\n", " a ", "ü"]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Co", "Zl", "Zp"]), max_size=12),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=4), st.lists(KEYS, min_size=1, max_size=3), VALUES)
def test_any_value_set_anywhere_is_read_back_and_leaves_the_rest(
    tree: Mapping[str, Json], path: list[str], value: Json
):
    text = COMMENTED
    for key, each in tree.items():
        text = splice_value(text, parse_config(text), (key,), each)
    document = parse_config(text)
    try:
        wanted = with_value(document.tree, tuple(path), value)
    except NotFound:
        return
    assert parse_config(splice_value(text, document, tuple(path), value)).tree == wanted


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 65_535), st.sampled_from(["debug", "info", "warning", "error"]))
def test_comments_survive_any_number_of_edits(port: int, level: str):
    with TemporaryDirectory() as folder:
        (Path(folder) / "denizen.yaml").write_text(COMMENTED, encoding="utf-8")
        set_value(Path(folder), {}, ("server", "port"), port)
        set_value(Path(folder), {}, ("logging", "level"), level)
        set_value(Path(folder), {}, ("agents", "rose", "model"), "quality")
        after = (Path(folder) / "denizen.yaml").read_text(encoding="utf-8")
    for comment in (
        "# about this file",
        "# where it listens",
        "# not 8650",
        "# one line",
        "# the end of limits",
        "# the end",
    ):
        assert comment in after
