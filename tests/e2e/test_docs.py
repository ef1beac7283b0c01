"""The documentation followed literally: in a fresh home every command of a page does what the page says."""

from __future__ import annotations

import json
import re
import runpy
import sys
import urllib.request
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from denizen.testing.discord import open_discord
from denizen.testing.discord.fixtures import build_discord_fixture
from denizen.testing.model_server import ModelAnswer, ModelCall, ScriptEntry
from denizen.testing.model_wire import JsonBody
from scripts.docs.markdown import load_page
from tests.e2e.discord import DiscordDeployment, point_at
from tests.e2e.page_run import PageRun, split_commands
from tests.e2e.provider import Provider
from tests.github_simulator import open_github
from tests.repository import create_repository
from tests.timing import wait_until

pytest_plugins = ["tests.postgres"]
pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]

NOT_RUN: Mapping[str, str] = {
    "make run": "it installs, and starts what `denizen setup` and `denizen run --simulate` start here",
    "make test": "this is one of its tests",
    "denizen setup": "it asks in a terminal: test_setup.py",
    "scripts/uv pip install --python .venv/bin/python mcp-server-time": "it fetches a package",
    "createuser denizen --pwprompt": "it changes the database server of this machine",
    "createdb denizen --owner denizen": "it changes the database server of this machine",
}
"""Commands that are not run, and why."""

REFUSED: Mapping[str, str] = {
    "denizen sources sync": "notes: read, 1 file",  # nothing but this machine is reached
    "denizen gaps accept prop_1f0c93ab77de5b08c14a92e6 --edit": "There is no proposal",
    'denizen gaps reject prop_1f0c93ab77de5b08c14a92e6 --reason "It is twelve now."': "There is no proposal",
    "denizen feeds add https://example.org/feed.xml --channel 1234567890 --format compact": "There is no channel",
    "denizen feeds remove feed_0123456789": "No feed",
}
"""Commands that cannot succeed here, and what they say."""

DISCORD_TUTORIAL = "docs/tutorial/discord-with-documents.md"
ON_POSTGRES = "docs/how-to/run-on-postgres.md"
SIMULATOR = "127.0.0.1:8643"
CLAUDE = (
    "denizen setup --non-interactive --provider anthropic --model claude-sonnet-4-6 --api-key-env ANTHROPIC_API_KEY"
)
QUESTION = 'denizen ask --json "What is 12 * 12?"'

PREPARED: Mapping[str, Sequence[str]] = {
    "docs/how-to/add-documents.md": ("mkdir ~/notes", "echo 'Opening hours: 9 to 5' > ~/notes/hours.md"),
    "docs/how-to/answer-with-proof.md": ("denizen sources add example/handbook", "denizen sources sync handbook"),
    "docs/how-to/back-up-and-move.md": (QUESTION,),
    "docs/how-to/in-trouble.md": (QUESTION,),
    "docs/how-to/let-people-decide.md": (QUESTION,),
    "docs/how-to/limit-what-it-costs.md": (QUESTION,),
    "docs/how-to/see-how-it-is-used.md": (QUESTION,),
    "docs/how-to/see-why.md": (QUESTION,),
    "docs/how-to/use-the-shell-from-code.md": (
        r"mkdir ~/.denizen/knowledge && printf '# Visit\n\nOpening hours: 9 to 5\n' > ~/.denizen/knowledge/visit.md",
        "mkdir -p ~/notes/docs && touch ~/notes/docs/a.md ~/notes/docs/b.md",
    ),
}
"""What a page takes for granted beside an installed Denizen."""

SAID: Mapping[str, Mapping[str, str]] = {
    "docs/tutorial/first-agent.md": {
        "denizen config check": "The configuration can be used",
        "denizen agents": "The caretaker of the observatory",
        "denizen tools --agent denizen": r"\Acurrent_time .*\n.*\ntime_between .*\n.*\ncalculator .*\n.*\nweather ",
        "cat ~/.denizen/agents/denizen/notes/telescope.md": "the mirror was cleaned today",
        'denizen ask --json "What is 12 * 12?"': '"turn": "turn_',
        "denizen trace TURN": r"calculator(.*\n)*.*tokens",
    },
    DISCORD_TUTORIAL: {
        "denizen sources sync harbour": "harbour: read, 2 files",
        'denizen docs search "ticket for a dog"': r"docs/harbour/ferries.md:1-4(?s:.*)ticket of [23] euros",
        "denizen config check": "The configuration can be used",
        "denizen run --simulate": "A Discord server to try: http",
        "denizen trace --last": r"What does a ticket for a dog cost\?(?s:.*)search_docs .*approve",
        "denizen doctor": "(?s)token belongs to.*Message Content Intent.*channels have all permissions",
    },
    "docs/how-to/add-documents.md": {
        "denizen sources list": "(?s)example .*handbook .*notes .*sitemap.xml ",
        "denizen sources webhook handbook": "/api/sync/webhook/handbook(?s:.*)application/json",
        """denizen shell "grep -rin 'opening hours' . | head -5\"""": "hours.md:1:Opening hours: 9 to 5",
    },
    "docs/how-to/answer-on-github.md": {
        "denizen doctor": "(?s)credentials belong.*all permissions.*webhook goes to https.*answers in harbour/boats",
        "denizen run": "account ready",
    },
    "docs/how-to/answer-with-proof.md": {
        'denizen docs search "opening hours" --source handbook --limit 3': "docs/hours.md:1-1"
    },
    "docs/how-to/connect-a-model.md": {
        CLAUDE: "anthropic/claude-sonnet-4-6 answers",
        'denizen ask --base-url http://127.0.0.1:9100/v1 --model tiny "hello"': "Certainly",
    },
    "docs/how-to/give-it-a-memory.md": {
        "denizen memory export": "The summer party",
        "denizen models pull all-minilm-l6-v2": "is here",
    },
    "docs/how-to/let-people-decide.md": {
        "denizen audit list": "calculator",
        "denizen audit verify": "nothing was changed. The newest digest",
    },
    "docs/how-to/limit-what-it-costs.md": {"denizen usage --by day": r"\d{4}-\d\d-\d\d"},
    "docs/how-to/run-agents-on-discord.md": {
        "denizen doctor": "(?s)token belongs to.*Message Content Intent.*channels have all permissions",
        "denizen run": "account ready",
    },
    ON_POSTGRES: {"denizen doctor": "databases: on Postgres"},
    "docs/how-to/see-how-it-is-used.md": {"denizen usage --days 30 --by source": "terminal"},
    "docs/how-to/see-why.md": {"denizen trace --last": "calculator"},
    "docs/how-to/try-discord-without-an-account.md": {
        "denizen run --simulate": "A Discord server to try: http",
        "denizen simulate discord": "(?s)Ana .*Ben and Cleo.*denizen.yaml.*export ",
    },
    "docs/how-to/use-mcp-servers.md": {
        "denizen mcp test clock": "clock_get_current_time +tier 1",
        "denizen tools": "clock_get_current_time +tier 1",
        "denizen mcp test toolbox": "(?s)current_time.*weather.*greynoise.*generate_image",
        "denizen mcp test pixellab": "(?s)four directions.*rotate.*animate",
    },
    "docs/how-to/write-a-skill.md": {
        "denizen skill new dice": "skill.yaml, skill.py",
        "denizen skill test dice": "examples came out as expected",
        "denizen skill enable dice": "(?s)tier: .*permissions: .*sha256: ",
        "denizen tools --schema": '(?s)\nroll .*"sides".*\ndraw_die ',
        'denizen ask "Roll three dice."': r"\[roll ",
    },
}
"""What commands say or make by the words of their pages."""

CALLS: Mapping[str, ModelCall] = {
    "Make a note named telescope": ModelCall(
        "append_note", {"name": "telescope", "text": "the mirror was cleaned today"}
    ),
    "12 * 12": ModelCall("calculator", {"expression": "12 * 12"}),
    "Roll three dice": ModelCall("roll", {"count": 3}),
    "a ticket for a dog": ModelCall("search_docs", {"query": "ticket for a dog"}),
}
"""What the model calls when it is asked this. It has a text for everything else."""

CITING = "A dog needs a ticket of 2 euros [docs/harbour/ferries.md:4]."

PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in (
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("tutorial/*.md")),
        *sorted((ROOT / "docs").glob("how-to/*.md")),
    )
]


def answer(body: JsonBody) -> ScriptEntry:
    last = str(body["messages"][-1] if "messages" in body else body["input"])
    call = next((call for question, call in CALLS.items() if question in last), None)
    if call:
        return ModelAnswer(calls=[call])
    return ModelAnswer(text=CITING if "docs/harbour/ferries.md" in last else "Certainly.")


@pytest.fixture
def page_run(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Generator[PageRun]:
    """In a clone of the repository, after `make run`."""
    clone = create_repository(tmp_path / "clone", {"docs/hours.md": "Opening hours: 9 to 5\n"})
    (clone.folder / ".venv").symlink_to(sys.prefix)
    monkeypatch.chdir(clone.folder)
    provider.server.aside = answer
    database = request.getfixturevalue("postgres_url") if ON_POSTGRES in request.node.name else ""
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        discord = stack.enter_context(portal.wrap_async_context_manager(open_discord()))
        github = stack.enter_context(portal.wrap_async_context_manager(open_github()))
        bot = build_discord_fixture(discord).ada
        app = github.world.add_app("harbour-helper", secret="value-of-GITHUB_WEBHOOK_SECRET")
        app.hook.url = "https://agents.example.org/api/webhooks/github"
        github.world.install(app, github.world.add_repository("harbour/boats", owner=github.world.add_user("ana")))
        run = PageRun(
            tmp_path,
            provider.server.url,
            stack,
            variables=point_at(discord.api_url, discord.gateway_url),
            replaced={
                "DISCORD_TOKEN_DENIZEN=...": f"DISCORD_TOKEN_DENIZEN={bot.token}",
                "127.0.0.1:9100": provider.server.url.removeprefix("http://"),
                "example/handbook": f"{clone.folder} --kind git --id handbook",
                "www.example.org": "127.0.0.1",
                "--provider anthropic": f"--provider anthropic --base-url {provider.server.url}",
            },
            overruled={
                "channels": {"github": {"api_url": github.api_url, "accounts": {"denizen": {"app_id": app.id}}}},
                "store": {"url": database},
            },
        )
        assert run.run("denizen setup --non-interactive --if-missing --no-verify").code == 0
        run.configure("models: {providers: {local: {kind: openai-compatible}}, aliases: {balanced: local/scripted}}")
        (run.home / "harbour-helper.pem").write_text(app.private_key)
        yield run


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.xdist_group("postgres") if name == ON_POSTGRES else ()) for name in PAGES],
)
def test_every_command_of_a_page_does_what_the_page_says(name: str, page_run: PageRun) -> None:
    for command in PREPARED.get(name, ()):
        follow(page_run, command)
    for block in load_page(ROOT / name, ROOT).blocks:
        match block.info:
            case ("sh",):
                for command in split_commands(block.text):
                    follow(page_run, command, SAID.get(name, {}).get(command, ""))
            case ("yaml", "config"):
                done = page_run.configure(block.text)
                assert not done.code, f"line {block.line}: {done.err}"
            case ("python", "client"):
                follow(page_run, f"python <<'END'\n{block.text}\nEND", "Certainly|^$")
            case (*_, file) if "." in file:
                page_run.write(block)
            case _:
                pass


def follow(page_run: PageRun, command: str, said: str = "") -> None:
    """Runs it. Expects success and that text, or the failure of the table."""
    if command in NOT_RUN:
        return
    expected, refused = REFUSED.get(command, said), command in REFUSED
    if command == "denizen trace --last" and SIMULATOR in page_run.replaced:
        await_cited_answer(f"http://{page_run.replaced[SIMULATOR]}")
    done = page_run.run(command, said)
    assert bool(done.code) is refused, f"{command}\nends with {done.code}: {done.out}{done.err}"
    assert re.search(expected, f"{done.out}\n{done.err}"), f"no {expected!r} in {done.out}{done.err}"


def await_cited_answer(simulator: str) -> None:
    """Waits for the agent's answer in the Discord server to try, with the file that says so."""

    def is_there() -> bool:
        with urllib.request.urlopen(f"{simulator}/sim/channels/general/messages?as=Ben") as answer:
            return any(
                "2 euros" in each["text"] and "ferries.md" in each["text"] for each in json.load(answer)["messages"]
            )

    wait_until(is_there)


@pytest.mark.anyio
async def test_the_test_of_the_page_about_skills_passes(
    deployment: DiscordDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    skill = tmp_path / ".denizen" / "skills" / "dice"
    skill.mkdir(parents=True)
    for block in load_page(ROOT / "docs/how-to/write-a-skill.md", ROOT).blocks:
        if block.info[-1].startswith("skills/dice/"):
            with (skill / Path(block.info[-1]).name).open("a", encoding="utf-8") as file:
                file.write(f"{block.text}\n\n")
        if block.info == ("python", "test"):
            (tmp_path / "page.py").write_text(block.text, encoding="utf-8")
    await runpy.run_path(str(tmp_path / "page.py"))["test_a_die_is_drawn_and_can_be_rolled"](deployment)


def test_the_tables_name_nothing_that_no_page_has() -> None:
    there = {
        (name, command)
        for name in PAGES
        for block in load_page(ROOT / name, ROOT).blocks
        if block.info == ("sh",)
        for command in split_commands(block.text)
    }
    assert {*NOT_RUN, *REFUSED} <= {command for _, command in there}
    assert {(name, command) for name, says in SAID.items() for command in says} <= there
    assert PREPARED.keys() <= set(PAGES)
