"""What set-up writes: a home folder that works, and nothing of the owner's lost."""

from __future__ import annotations

import pytest

from denizen.app.settings import SetupAnswers, load_settings, write_setup
from denizen.domain.errors import Conflict, InvalidInput
from denizen.domain.ids import AgentName
from denizen.domain.prompt import estimate_tokens
from tests.app.home_folder import Home

CLOUD = SetupAnswers(kind="anthropic", model="claude-haiku-4-5", api_key="sk-ant-typed-by-hand")
LAB = SetupAnswers(kind="openai-compatible", name="lab", model="org/qwen3", base_url="http://127.0.0.1:9100/v1")


def test_without_answers_the_built_in_model_is_set_up(home: Home):
    report = write_setup(home.path / "new", SetupAnswers(), environment={})
    assert {file.name for file in report.written} == {"denizen.yaml", "IDENTITY.md", "SOUL.md", "RULES.md"}
    assert (report.kept, report.unset) == ((), ())
    settings = load_settings(home.path / "new", {})
    assert settings.models.providers["builtin"].kind == "embedded"
    assert [name for name, _ in settings.agents[AgentName("denizen")].instructions.persona] == [
        "IDENTITY.md",
        "SOUL.md",
        "RULES.md",
    ]
    assert settings.warnings == ()


def test_the_persona_that_set_up_writes_is_short(home: Home):
    write_setup(home.path, SetupAnswers(), environment={})
    persona = load_settings(home.path, {}).agents[AgentName("denizen")].instructions.persona
    assert sum(estimate_tokens(text) for _, text in persona) < 150


def test_a_typed_key_goes_into_a_file_for_the_owner_only_and_nowhere_else(home: Home):
    report = write_setup(home.path, CLOUD, environment={})
    secrets = home.path / "secrets.env"
    assert secrets.read_text(encoding="utf-8") == "ANTHROPIC_API_KEY=sk-ant-typed-by-hand\n"
    assert secrets.stat().st_mode & 0o777 == 0o600
    assert "typed-by-hand" not in home.config.read_text(encoding="utf-8")
    assert "typed-by-hand" not in repr((CLOUD, report))
    settings = load_settings(home.path, {})
    assert settings.secrets.resolve(settings.models.providers["anthropic"].api_key) == "sk-ant-typed-by-hand"
    assert settings.models.aliases["balanced"].model == "anthropic/claude-haiku-4-5"


def test_a_key_in_a_variable_is_named_and_reported_when_it_is_not_set(home: Home):
    answers = SetupAnswers(kind="groq", model="x", api_key_env="MY_GROQ")
    assert write_setup(home.path, answers, environment={}).unset == ("MY_GROQ",)
    assert "api_key: ${MY_GROQ}" in home.config.read_text(encoding="utf-8")
    assert not (home.path / "secrets.env").exists()
    assert write_setup(home.path, answers, environment={"MY_GROQ": "k"}).unset == ()


def test_a_provider_is_added_to_an_existing_file_with_its_comments(home: Home):
    home.write("# mine\nagents:\n  rose: {model: fast}  # hers\nmodels:\n  aliases: {fast: builtin/default}  # small\n")
    report = write_setup(home.path, LAB, environment={})
    assert report.written == (home.config,)
    assert home.config.read_text(encoding="utf-8") == (
        "# mine\nagents:\n  rose: {model: fast}  # hers\n"
        "models:\n  aliases: {fast: builtin/default, balanced: lab/org/qwen3}  # small\n"
        "  providers:\n    lab:\n      kind: openai-compatible\n      base_url: http://127.0.0.1:9100/v1\n"
    )


def test_a_second_provider_takes_over_the_alias_or_only_joins(home: Home):
    write_setup(home.path, CLOUD, environment={})
    write_setup(home.path, SetupAnswers(kind="ollama", model="qwen3", alias=""), environment={})
    assert load_settings(home.path, {}).models.aliases["balanced"].model == "anthropic/claude-haiku-4-5"
    write_setup(home.path, LAB, environment={})
    settings = load_settings(home.path, {})
    assert settings.models.aliases["balanced"].model == "lab/org/qwen3"
    assert set(settings.models.providers) == {"anthropic", "ollama", "lab"}


def test_running_set_up_again_changes_nothing(home: Home):
    write_setup(home.path, CLOUD, environment={})
    before = home.config.read_text(encoding="utf-8")
    report = write_setup(home.path, CLOUD, environment={})
    assert home.config in report.kept
    assert home.config.read_text(encoding="utf-8") == before


def test_what_the_owner_wrote_is_kept_unless_forced(home: Home):
    home.add_file("agents/denizen/SOUL.md", "mine")
    home.add_file("secrets.env", "OTHER=1\n", mode=0o600)
    home.write("# mine\n")
    report = write_setup(home.path, CLOUD, environment={})
    assert (home.path / "agents/denizen/SOUL.md") not in report.written
    assert (home.path / "agents/denizen/SOUL.md").read_text(encoding="utf-8") == "mine"
    assert (home.path / "secrets.env").read_text(encoding="utf-8").startswith("OTHER=1\n")
    forced = write_setup(home.path, SetupAnswers(), environment={}, force=True)
    assert home.config in forced.written
    assert "# mine" in (home.path / "denizen.yaml.bak").read_text(encoding="utf-8")
    persona = home.path / "agents/denizen"
    assert (persona / "SOUL.md").read_text(encoding="utf-8") != "mine"
    assert (persona / "SOUL.md.bak").read_text(encoding="utf-8") == "mine"
    assert persona / "SOUL.md.bak" in forced.written
    write_setup(home.path, SetupAnswers(), environment={}, force=True)
    assert (persona / "SOUL.md.bak").read_text(encoding="utf-8") == "mine", "what was not changed needs no copy"
    assert "# mine" in (home.path / "denizen.yaml.bak").read_text(encoding="utf-8")
    assert not (persona / "RULES.md.bak").exists()


def test_a_provider_of_the_same_name_with_other_settings_is_a_conflict(home: Home):
    write_setup(home.path, LAB, environment={})
    with pytest.raises(Conflict, match="lab"):
        write_setup(home.path, SetupAnswers(kind="ollama", name="lab", model="x"), environment={})


@pytest.mark.parametrize(
    "answers",
    [
        SetupAnswers(kind="groq"),
        SetupAnswers(kind="openai-compatible", model="x"),
        SetupAnswers(kind="ollama", name="My Lab", model="x"),
        SetupAnswers(kind="ollama", model="x", base_url="nowhere"),
        SetupAnswers(kind="ollama", model="x", alias="my alias"),
    ],
)
def test_answers_that_make_no_configuration_write_nothing(home: Home, answers: SetupAnswers):
    with pytest.raises(InvalidInput):
        write_setup(home.path, answers, environment={})
    assert list(home.path.iterdir()) == []
