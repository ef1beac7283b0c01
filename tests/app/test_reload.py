"""Building a home and changing its configuration while it is open."""

import ast
import errno
from importlib import import_module
from pathlib import Path

import anyio
import pytest

from denizen.app.build import OpenOptions, open_denizen
from denizen.app.model_choice import ModelChoice
from denizen.app.models import verify_model
from denizen.app.reload import Reloader
from denizen.builtin_skills import BUILTIN
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound
from denizen.domain.rate_limit import HOUR_S, RateLimit
from denizen.domain.verdict import Decision
from denizen.engine.configuration.tool_policy import ToolMode, ToolModes, ToolRule
from denizen.engine.tools.toolbox import list_all
from denizen.testing.model_server import ModelAnswer, model_server
from tests.app.home_folder import LAB, Home, open_home
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

SOURCE = Path(__file__).parents[2] / "src" / "denizen"


@pytest.mark.proves("T2", "T1", "T6", "L2", "LW2", "L-config-rate-limit", "L-config-cache-ttl", "L-tool-get-weather")
async def test_a_valid_change_is_a_new_generation_with_what_it_says(home: Home) -> None:
    async with open_home(home) as denizen:
        first = denizen.runtime.current
        assert first.models.get("balanced").name == "lab/one"
        assert "weather" in await list_all(first.toolsets)
        assert (first.policy.rate_limits.per_user, first.policy.results.keep_s) == ((RateLimit(20, HOUR_S),), 30 * 60)
        tools = "tools: {weather: {enabled: false}}\n"
        gate = "gate: {rate_limits: {per_user_per_hour: 3}, keep_results_minutes: 7}\n"
        home.write(LAB.replace("lab/one", "lab/two") + tools + gate + "agents: {ada: {description: The first}}\n")
        done = await Reloader(denizen).reload()
        assert (done.changed, done.generation) == (True, first.number + 1)
        assert [agent.name for agent in denizen.queries.list_agents()] == ["ada"]
        policy = denizen.runtime.current.policy
        assert (policy.rate_limits.per_user, policy.results.keep_s) == ((RateLimit(3, HOUR_S),), 7 * 60)
        assert denizen.runtime.current.models.get("balanced").name == "lab/two"
        assert "weather" not in await list_all(denizen.runtime.current.toolsets)


@pytest.mark.proves("T-approval-modes", "T-approval-rules", "T-approval-timeout", "TW8", "T35-commands")
async def test_the_gate_and_the_commands_of_the_configuration_are_in_force(home: Home) -> None:
    text = """\
gate:
  modes: {weather: ask}
  rules: [{tool: remind, action: deny}]
  roles: {calculator: [admin]}
  approvals: {timeout_s: 7}
commands: {motto: {description: Says the motto., prompt: Say the motto.}}
"""
    async with open_home(home, LAB + text) as denizen:
        now = denizen.runtime.current
    assert now.policy.modes == ToolModes(by_tool=(("weather", ToolMode.ASK),))
    assert now.policy.rules == (ToolRule("remind", Decision.DENY),)
    assert now.policy.roles == (("calculator", frozenset({"admin"})),)
    assert (now.policy.approval.timeout_s, now.policy.owners.timeout_s) == (7, 7)
    assert [command.name for command in now.commands.commands] == ["motto"]


@pytest.mark.proves("T6")
def test_generations_and_the_models_and_tools_in_them_are_built_in_one_place() -> None:
    built = ("Generation", "build_models", "load_builtin_skills", "load_own_tools")
    made = {
        (node.func.id, path.relative_to(SOURCE).as_posix())
        for path in SOURCE.rglob("*.py")
        if not path.is_relative_to(SOURCE / "testing")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in built
    }
    assert made == {(name, "app/models.py" if name == "build_models" else "app/generation.py") for name in built}


@pytest.mark.proves("T4")
async def test_who_follows_a_reload_hears_of_it_and_undoes_nothing_by_failing(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[int] = []
    async with open_home(home) as denizen:

        async def follow() -> None:
            heard.append(denizen.runtime.current.number)
            raise ValueError("no")

        reloader = Reloader(denizen, follow)
        for name in ("ada", "bob"):
            home.write(LAB + f"agents: {{{name}: {{}}}}\n")
            done = await reloader.reload()
            assert (done.changed, done.generation) == (True, denizen.runtime.current.number)
            assert [agent.name for agent in denizen.queries.list_agents()] == [name]
        assert heard == [done.generation - 1, done.generation]
    assert caplog.messages.count("following a changed configuration ended with a fault") == 2


@pytest.mark.proves("T2", "E9", "TW11")
@pytest.mark.parametrize(
    "bad", ["agents: [", "agents: {ada: {tools: [fly]}}", "gatte: {}", "tools: {weather: {unit: x}}"]
)
async def test_a_change_that_cannot_be_used_leaves_everything_as_it_was_and_says_why(home: Home, bad: str) -> None:
    async with open_home(home) as denizen:
        before, settings = denizen.runtime.current, denizen.settings
        home.write(LAB + bad + "\n")
        with pytest.raises(InvalidInput):
            await Reloader(denizen).reload()
        assert denizen.runtime.current is before
        assert denizen.settings is settings
        home.write(LAB + "agents: {ada: {}}\n")
        assert (await Reloader(denizen).reload()).generation == before.number + 1


@pytest.mark.proves("T2", "E9")
async def test_the_same_text_is_no_new_generation(home: Home) -> None:
    async with open_home(home) as denizen:
        home.write("# a remark\n" + LAB)
        done = await Reloader(denizen).reload()
        assert (done.changed, done.generation) == (False, denizen.runtime.current.number)


@pytest.mark.proves("T2")
async def test_a_rotated_secret_is_a_change(home: Home) -> None:
    text = LAB.replace("9/v1", '9/v1", api_key: "${LAB_KEY}')
    home.add_file("secrets.env", "LAB_KEY=first-secret\n", 0o600)
    async with open_home(home, text) as denizen:
        home.add_file("secrets.env", "LAB_KEY=second-secret\n", 0o600)
        assert (await Reloader(denizen).reload()).changed
        assert "second-secret" not in denizen.mask("the key is second-secret")


async def test_what_holds_after_a_restart_only_is_named(home: Home) -> None:
    async with open_home(home) as denizen:
        home.write(LAB + "server: {port: 9999}\nlogging: {level: debug}\n")
        assert (await Reloader(denizen).reload()).needs_restart == ("server", "logging")


async def test_generations_are_numbered_on_across_restarts(home: Home) -> None:
    async with open_home(home) as denizen:
        home.write(LAB + "agents: {ada: {}}\n")
        second = (await Reloader(denizen).reload()).generation
    async with open_denizen(home.path, OpenOptions(durable=False)) as denizen:
        assert denizen.runtime.current.number == second


@pytest.mark.proves("T-agent-tools")
async def test_an_allow_list_with_an_unknown_tool_is_refused_and_the_known_ones_are_named(home: Home) -> None:
    with pytest.raises(InvalidInput, match=r"agents\.ada\.tools\[1\]: there is no tool 'fly'") as caught:
        async with open_home(home, LAB + "agents: {ada: {tools: [current_time, fly]}}\n"):
            pass
    assert "current_time" in caught.value.fix


@pytest.mark.proves("T-config-tools")
async def test_tools_are_switched_by_skill_and_none_that_does_harm_is_on_by_default(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADA", "a.b.c")
    account = "channels: {discord: {accounts: {denizen: '${ADA}'}}}\n"
    async with open_home(home, f"{LAB}{account}tools: {{weather: {{enabled: false}}}}\n") as denizen:
        tools = {
            tool.spec.name: tool.tier
            for tool in await denizen.queries.list_tools(denizen.runtime.current.default_agent)
        }
        assert "weather" not in tools and {"calculator", "remind"} <= tools.keys()
        assert max(tools.values()) <= 1
    off = ", ".join(f"{name}: {{enabled: false}}" for name in BUILTIN)
    async with open_home(home, f"{LAB}tools: {{{off}}}\n") as denizen:
        assert await denizen.queries.list_tools() == []


@pytest.mark.proves("T34")
async def test_where_an_account_answers_is_as_it_is_configured(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADA", "a.b.c")
    account = "channels: {discord: {guilds: ['7'], direct_messages: false, accounts: {denizen: '${ADA}'}}}\n"
    async with open_home(home, LAB + account) as denizen:
        [policy] = denizen.runtime.current.account_policies.values()
    assert (policy.scope.guilds, policy.triggers.direct_messages) == ({"7"}, False)


async def test_a_participant_can_be_configured_beside_other_agents(home: Home) -> None:
    text = (
        LAB + "default_agent: bob\nagents: {ada: {context: transcript, transcript: {budget_tokens: 20000}}, bob: {}}\n"
    )
    async with open_home(home, text) as denizen:
        known = denizen.runtime.current.agents
        assert [(str(agent.history.context), agent.history.transcript.block_tokens) for agent in known.values()] == [
            ("transcript", 3333),
            ("session", 30_000),
        ]


async def test_a_model_named_for_one_run_replaces_every_agents_model(home: Home) -> None:
    choice = ModelChoice(base_url="http://127.0.0.1:9/v1", model="tiny")
    async with open_home(
        home, LAB + "default_agent: ada\nagents: {ada: {}, bob: {model: lab/two}}\n", choice
    ) as denizen:
        assert {agent.model for agent in denizen.queries.list_agents()} == {"chosen/tiny"}
        assert denizen.runtime.current.models.get("chosen/tiny").name == "chosen/tiny"
    with pytest.raises(InvalidInput, match="command line"):
        async with open_home(home, LAB, ModelChoice(base_url="not a url", model="x")):
            pass


@pytest.mark.proves("V13", "T-config-providers")
async def test_each_kind_of_provider_is_asked_in_its_own_way_at_the_address_in_the_configuration(home: Home) -> None:
    async with model_server() as server:
        bases = {"openai": server.openai_url, "anthropic": server.url, "openrouter": server.openrouter_url}
        bases["openai-compatible"] = server.openai_url
        sections = "".join(
            f'    {kind}: {{kind: {kind}, base_url: "{url}", api_key: "${{LAB_KEY}}"}}\n' for kind, url in bases.items()
        )
        text = f"models:\n  providers:\n{sections}  aliases: {{balanced: openai/a/b}}\n"
        home.add_file("secrets.env", "LAB_KEY=lab-key\n", 0o600)
        server.script(*[ModelAnswer(text="OK.")] * 4)
        async with open_home(home, text) as denizen:
            for kind in bases:
                await verify_model(denizen.runtime.current.models, f"{kind}/a/b")
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer lab-key"}
    asked = [
        (request.path, "max_completion_tokens" in request.body, request.headers["user-agent"] == "denizen")
        for request in server.requests
    ]
    assert asked == [
        ("/v1/chat/completions", True, False),
        ("/v1/messages", False, False),
        ("/api/v1/chat/completions", False, False),
        ("/v1/chat/completions", False, True),
    ]


@pytest.mark.proves("TW5", "C-config-endpoint")
async def test_each_agent_answers_with_its_own_model_and_server(home: Home) -> None:
    text = """
models:
  providers:
    here: {kind: openai-compatible, base_url: "http://127.0.0.1:9/v1"}
    there: {kind: anthropic, base_url: "http://127.0.0.1:10", api_key: "${THERE_KEY:-}"}
  aliases: {balanced: here/one}
  overrides: {there/two: {images: false}}
default_agent: ada
agents: {ada: {model: here/one}, bob: {model: there/two}}
"""
    async with open_home(home, text) as denizen:
        models = denizen.runtime.current.models
        assert [models.get(agent.model).name for agent in denizen.queries.list_agents()] == ["here/one", "there/two"]
        assert not models.get("there/two").capabilities.images
        with pytest.raises(NotFound):
            models.get("nowhere/three")


async def test_a_terminal_that_is_switched_off_says_so(home: Home) -> None:
    async with open_home(home, LAB + "channels: {terminal: {enabled: false}}\n") as denizen:
        with pytest.raises(NotAllowed, match="switched off"):
            denizen.require_terminal()


@pytest.mark.proves("P6")
async def test_without_any_configuration_the_built_in_model_is_everybodys_model(home: Home) -> None:
    async with open_denizen(home.path / "new", OpenOptions(durable=False)) as denizen:
        (agent,) = denizen.queries.list_agents()
        (model,) = denizen.queries.list_models()
        assert model.is_embedded
        assert denizen.runtime.current.models.get(agent.model).capabilities.small
    assert (home.path / "new").stat().st_mode & 0o777 == 0o700


@pytest.mark.proves("V3")
async def test_everything_of_a_home_lies_below_it(home: Home) -> None:
    async with open_home(home):
        pass
    assert {path.name for path in home.path.iterdir()} <= {
        "denizen.yaml",
        "denizen.db",
        "denizen.db-wal",
        "denizen.db-shm",
    }


@pytest.mark.parametrize("at", ["read_config", "build_generation"])
async def test_a_change_is_read_again_once_there_are_file_descriptors(
    home: Home, at: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What was saved while there were none would stay unnoticed until the next change."""
    module = "denizen.app.settings.load" if at == "read_config" else "denizen.app.reload"
    real, left = getattr(import_module(module), at), [2]

    def open_files(*given: object) -> object:
        if left[0]:
            left[0] -= 1
            try:
                raise OSError(errno.EMFILE, "Too many open files")
            except OSError:
                raise InvalidInput("The file cannot be read.") from None
        return real(*given)

    async with open_home(home) as denizen:
        home.write(LAB + "agents: {ada: {}}\n")
        monkeypatch.setattr(f"{module}.{at}", open_files)
        with anyio.fail_after(HANG_LIMIT_S):
            await Reloader(denizen, retry_s=0.0).reload_and_tell()
        assert [agent.name for agent in denizen.queries.list_agents()] == ["ada"]
    assert len([record for record in caplog.records if "free file descriptors" in record.message]) == 1


async def test_a_refused_configuration_is_told_and_not_read_again(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    async with open_home(home) as denizen:
        home.write(LAB + "gatte: {}\n")
        with anyio.fail_after(HANG_LIMIT_S):
            await Reloader(denizen).reload_and_tell()
    assert [record.message for record in caplog.records if "refused" in record.message] == [
        "configuration refused, the old one stays"
    ]
