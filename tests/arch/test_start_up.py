"""Start-up costs what the command needs and no more."""

import json
import subprocess
import sys

import pytest

REPORT = """
import json, sys
before = set(sys.modules)
{code}
print()
print(json.dumps(sorted(set(sys.modules) - before)))
"""

HEAVY = {
    "alembic",
    "anthropic",
    "dbos",
    "httpx2",
    "jinja2",
    "jsonschema",
    "openai",
    "prompt_toolkit",
    "psycopg",
    "pydantic",
    "pydantic_ai",
    "rich",
    "ruamel",
    "sqlalchemy",
    "starlette",
    "structlog",
    "uvicorn",
    "xllamacpp",
}


def modules_after(code: str) -> set[str]:
    """The names of modules that running `code` in a new interpreter brings in."""
    command = [sys.executable, "-c", REPORT.format(code=code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def list_packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_version_imports_nothing_but_the_package_itself() -> None:
    code = "sys.argv = ['denizen', '--version']\nfrom denizen.__main__ import main\nmain()"
    modules = modules_after(code)
    assert {name for name in modules if name.startswith("denizen")} == {"denizen", "denizen.__main__"}
    assert list_packages(modules) - sys.stdlib_module_names == {"denizen"}


@pytest.mark.parametrize("module", ["denizen.cli.main", "denizen.engine.turn", "denizen.skill", "denizen_sdk"])
def test_importing_brings_in_no_vendor(module: str) -> None:
    assert list_packages(modules_after(f"import {module}")) & HEAVY == set()


def test_help_imports_no_command() -> None:
    code = "from denizen.cli.main import run\nrun(['--help'])"
    modules = modules_after(code)
    assert list_packages(modules) & HEAVY == set()
    assert {name for name in modules if name.startswith("denizen.cli.")} == {
        "denizen.cli.main",
        "denizen.cli.exit_codes",
        "denizen.cli.terminal",
    }


def test_asking_a_running_server_imports_neither_an_event_loop_nor_the_engine() -> None:
    modules = modules_after("import denizen.cli.main, denizen.cli.log, denizen.cli.ask")
    unneeded = {*HEAVY, "anyio", "asyncio", "email", "hashlib", "http", "secrets", "ssl", "uvloop"}
    assert list_packages(modules) & unneeded == set()
    assert not [name for name in modules if name.startswith(("denizen.engine", "denizen.adapters.store"))]


def test_opening_a_home_for_a_question_imports_no_web_server() -> None:
    modules = modules_after("import denizen.app.build, denizen.app.terminal")
    assert list_packages(modules) & {"starlette", "uvicorn"} == set()


UNUSED_BY_A_SERVER = {
    "aioimaplib",
    "aiosmtplib",
    "anthropic",
    "authlib",
    "croniter",
    "dbos",
    "discord",
    "feedparser",
    "httpx2",
    "icalendar",
    "jinja2",
    "jsonschema",
    "matplotlib",
    "mcp",
    "numpy",
    "onnxruntime",
    "openai",
    "opentelemetry",
    "playwright",
    "prometheus_client",
    "prompt_toolkit",
    "pydantic_ai",
    "requests",
    "rich",
    "sqlglot",
    "statistics",
    "websockets",
    "xllamacpp",
}


def test_a_server_imports_nothing_that_it_may_never_need() -> None:
    modules = modules_after("import denizen.app.build, denizen.app.serve, denizen.app.terminal_socket")
    assert list_packages(modules) & UNUSED_BY_A_SERVER == set()


def test_a_heavy_import_is_found() -> None:
    assert "pydantic" in list_packages(modules_after("import pydantic"))


GARBAGE = """
import sys, weakref
import denizen.cli.main
from denizen.__main__ import main

class Ring:
    def __init__(self):
        self.me = self

def run(args):
    first = weakref.ref(Ring())
    for _ in range(1_000_000):
        Ring()
    print("kept" if first() else "freed")
    return 0

denizen.cli.main.run = run
main()
"""


def test_a_command_that_opens_nothing_and_runs_for_long_frees_what_it_does_not_need() -> None:
    done = subprocess.run([sys.executable, "-c", GARBAGE], capture_output=True, text=True, check=True)
    assert done.stdout == "freed\n"


def test_an_account_without_a_voice_brings_in_nothing_that_speaks_or_hears() -> None:
    modules = modules_after("import denizen.adapters.discord.account, denizen.app.accounts, denizen.testing.discord")
    assert list_packages(modules) & {"av", "espeakng_loader", "pocketsphinx"} == set()
    assert "denizen.adapters.discord.voice.desk" not in modules
