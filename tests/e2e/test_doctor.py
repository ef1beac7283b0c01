"""`denizen doctor`: what does not work is said, and is the exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen.testing.model_server import FailedAnswer, ModelAnswer
from tests.e2e.home import Home
from tests.e2e.provider import Provider

pytestmark = pytest.mark.e2e

ALIAS = """\
models:
  providers:
    dead: {{kind: openai-compatible, base_url: "http://127.0.0.1:9/v1"}}
    live: {{kind: openai-compatible, base_url: "{url}"}}
  aliases: {{balanced: {{model: {model}, fallbacks: [{fallback}]}}}}
"""


def test_a_primary_that_is_dead_fails_although_its_fallback_answers(home: Home, provider: Provider) -> None:
    provider.script(ModelAnswer(text="OK"))
    home.write(ALIAS.format(url=provider.server.openai_url, model="dead/x", fallback="live/y"))
    done = home.do("doctor")
    assert done.code == 4
    assert "FAIL  model balanced\n      The provider 'dead' cannot be reached." in done.out
    assert "ok    fallback live/y: live/y answers" in done.out


def damage(file: Path) -> None:
    """Overwrites pages in the middle, and leaves the first ones, by which a database is opened."""
    size = file.stat().st_size
    with file.open("r+b") as stream:
        stream.seek(size // 3)
        stream.write(b"\xff" * (size // 3))


@pytest.mark.proves("C-inspect-commands")
@pytest.mark.parametrize("name", ["denizen.db", "durable.db"])
def test_a_database_that_is_damaged_in_the_middle_is_named_with_the_remedy(
    name: str, home: Home, provider: Provider
) -> None:
    home.configure(provider.server.openai_url)
    provider.script(ModelAnswer(text="Hello."))
    assert home.do("ask", "Hello").code == 0
    damage(home.folder / name)
    for command in (("doctor", "--offline"), ("run", "--port", "0")):
        done = home.do(*command)
        assert done.code == 2
        assert f"The database {home.folder / name} is damaged." in done.out + done.err
        assert "fix: Stop Denizen and put back a copy of the file." in done.out + done.err
        assert "Traceback" not in done.err


def test_what_a_killed_upgrade_has_left_is_named_with_the_way_to_remove_it(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    assert "upgrades:" not in home.do("doctor", "--offline").out
    for suffix in ("rehearsal", "before-0001.partial", "before-0001"):
        (home.folder / f"denizen.db.{suffix}").touch()
    said = home.do("doctor", "--offline").out
    assert f"has left denizen.db.before-0001.partial, denizen.db.rehearsal in {home.folder}\n" in said
    assert "`denizen upgrade cleanup`" in said
    assert home.do("upgrade", "cleanup", "--yes").code == 0
    assert "upgrades:" not in home.do("doctor", "--offline").out


def test_a_server_warns_of_secrets_that_others_can_read(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    (home.folder / "secrets.env").write_text("A=b\n")
    (home.folder / "secrets.env").chmod(0o644)
    with home.serve() as server:
        said = server.running.err.text
    assert f"secrets.env: other users of this machine can read it.\nfix: chmod 600 {home.folder}" in said


def test_beside_a_server_the_doctor_loads_no_second_built_in_model(home: Home) -> None:
    home.configure("http://127.0.0.1:9/v1", rest="agent_defaults: {model: builtin/default}\n")
    with home.serve() as server:
        done = home.do("doctor")
    assert done.code == 0, done.out
    said = f"ok    model builtin/default: left to the Denizen that runs here (process {server.running.pid}), "
    assert f"{said}since a second one takes memory; `denizen ask hello` shows whether it answers" in done.out
    assert not (home.folder / "models").exists()


def test_a_fallback_that_does_not_answer_is_a_warning(home: Home, provider: Provider) -> None:
    provider.script(ModelAnswer(text="OK"), FailedAnswer(401))
    home.write(ALIAS.format(url=provider.server.openai_url, model="live/y", fallback="live/z"))
    done = home.do("doctor")
    assert done.code == 0
    assert "ok    model balanced: live/y answers" in done.out
    assert "warn  fallback live/z\n" in done.out
