"""Commands in a process that has imported nothing before; elsewhere they start with all of it (`nursery.py`)."""

from __future__ import annotations

import pytest

from denizen.cli.exit_codes import BUG
from denizen.testing.model_server import Answer
from tests.e2e.home import Home, text_of
from tests.e2e.provider import Provider

pytestmark = pytest.mark.e2e

LOOKS = (
    "docs search roses", "doctor --offline", "models", "replay none --model x/y", "shell ls", "skill list",
    "sources sync", "trace --last", "usage",
)  # fmt: skip


@pytest.mark.parametrize("command", LOOKS)
def test_a_command_brings_all_that_it_needs(command: str, home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    done = home.do(*command.split(), anew=True)
    assert done.code != BUG, done.err
    assert "Traceback" not in done.err


def test_so_do_those_that_set_up_ask_and_serve(home: Home, provider: Provider) -> None:
    options = ("--base-url", provider.server.openai_url, "--model", "tiny")
    provider.script(*[Answer(text="Hello.")] * 3)
    assert home.do("setup", "--non-interactive", *options, anew=True).code == 0
    assert home.do("ask", "Hello", anew=True).out == "Hello.\n"
    with home.serve(anew=True) as server:
        assert text_of(server.ask("Hello", key="m1")) == "Hello."
