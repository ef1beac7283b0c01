"""The commands that an operator adds."""

from __future__ import annotations

import pytest

from denizen.app.settings import render_settings
from denizen.app.settings.tools import BUILT_IN_COMMANDS
from denizen.domain.custom_command import CustomCommand
from denizen.engine.commands.dispatch import COMMANDS
from tests.app.home_folder import Home


def test_by_default_there_are_no_commands(home: Home):
    assert home.load("").commands == ()


@pytest.mark.proves("T37")
def test_a_command_of_which_only_the_needed_is_said_is_for_administrators_and_may_take_30_seconds(home: Home):
    found = home.load("commands: {uptime: {description: How long it runs, shell: [uptime]}}").commands
    assert found == (
        CustomCommand(
            "uptime",
            "How long it runs",
            shell=("uptime",),
            prompt="",
            agent="",
            new_session=False,
            timeout_s=30.0,
            admin_only=True,
        ),
    )


def test_every_key_of_a_command_is_read_and_the_order_of_the_file_is_kept(home: Home):
    settings = home.load(
        """\
agents: {ada: {}, bert: {}}
default_agent: ada
commands:
  z-log:
    description: Explains the log
    shell: [git, log, "--", "{{input}}"]
    prompt: "Explain to {{input}}: {{output}}"
    agent: bert
    new_session: true
    timeout_s: 5
    admin_only: false
  a_joke: {description: A joke, prompt: Tell a joke.}
"""
    )
    assert settings.commands == (
        CustomCommand(
            name="z-log",
            description="Explains the log",
            shell=("git", "log", "--", "{{input}}"),
            prompt="Explain to {{input}}: {{output}}",
            agent="bert",
            new_session=True,
            timeout_s=5,
            admin_only=False,
        ),
        CustomCommand(name="a_joke", description="A joke", prompt="Tell a joke."),
    )
    assert home.load(render_settings(settings)).commands == settings.commands


@pytest.mark.proves("T35-commands")
def test_a_name_of_32_and_a_description_of_100_characters_are_possible(home: Home):
    (found,) = home.load(f"commands: {{{'n' * 32}: {{description: {'d' * 100}, prompt: Go.}}}}").commands
    assert (len(found.name), len(found.description)) == (32, 100)


def test_a_secret_in_a_command_is_in_no_text_that_is_made_of_it(home: Home):
    text = "commands: {x: {description: '${S}', shell: [curl, '${S}'], prompt: '${S}'}}"
    settings = home.load(text, S="planted-secret")
    assert settings.commands[0].shell == ("curl", "planted-secret")
    assert "planted" not in repr((settings, settings.commands)) + render_settings(settings)


def test_the_names_that_are_taken_are_those_of_the_commands_that_there_are():
    assert frozenset(COMMANDS) == BUILT_IN_COMMANDS


@pytest.mark.parametrize("name", sorted(BUILT_IN_COMMANDS))
def test_a_command_that_is_built_in_cannot_be_replaced(home: Home, name: str):
    error = home.refuse(f"commands: {{{name}: {{description: Mine, prompt: Go.}}}}")
    assert f"commands.{name}: this command is built in." in error.message
    assert error.fix == "Give yours another name."


PLACES = "Known here: {{input}}"
# (what it is, name, its keys, where, what the error says, what the fix says)
BAD = [
    ("capitals", "Deploy", "prompt: Go.", "Deploy", "cannot be the name of a command", "lower-case letters"),
    ("space", "de ploy", "prompt: Go.", '"de ploy"', "cannot be the name of a command", "lower-case letters"),
    ("slash", "/deploy", "prompt: Go.", '"/deploy"', "cannot be the name of a command", "lower-case letters"),
    ("long name", "n" * 33, "prompt: Go.", "n" * 33, "cannot be the name of a command", "32 characters at most"),
    ("long description", "x", f"prompt: Go., description: {'d' * 101}", "x.description", "at most 100", "Shorten it"),
    ("empty description", "x", "prompt: Go., description: ' '", "x.description", "must not be empty", "Write a value"),
    ("nothing to do", "x", "agent: ''", "x", "needs shell or prompt", "PROGRAM"),
    ("empty prompt", "x", "prompt: '  '", "x", "needs shell or prompt", "PROGRAM"),
    ("shell as a line", "x", "shell: make all", "x.shell", "must be a list, not a text", "[one, two]"),
    ("user's program", "x", "shell: ['{{input}}']", "x.shell", "must be a program", "only be an argument"),
    ("empty program", "x", "shell: ['', a]", "x.shell", "must be a program", "only be an argument"),
    ("placeholder", "x", "prompt: 'a {{inptu}}'", "x.prompt", "placeholder is not known", PLACES),
    ("spaced placeholder", "x", "prompt: '{{ input }}'", "x.prompt", "placeholder is not known", PLACES),
    ("placeholder of shell", "x", "shell: [a, '{{user}}']", "x.shell", "placeholder is not known", PLACES),
    ("both known", "x", "shell: [a], prompt: '{{x}}'", "x.prompt", "is not known", "{{input}} and {{output}}"),
    ("output of shell in shell", "x", "shell: [a, '{{output}}']", "x.shell", "there is no output here", "in prompt"),
    ("output of nothing", "x", "prompt: '{{output}}'", "x.prompt", "there is no output here", "write shell beside it"),
    ("no time", "x", "prompt: Go., timeout_s: 0", "x.timeout_s", "must be between 1 and 600", "bounds"),
    ("too much time", "x", "prompt: Go., timeout_s: 601", "x.timeout_s", "must be between 1 and 600", "bounds"),
    ("agent", "x", "prompt: Go., agent: denizn", "x.agent", "there is no agent 'denizn'", "Did you mean 'denizen'?"),
    ("key", "x", "promt: Go.", "x.promt", "this key is not known", "Did you mean 'prompt'?"),
    ("flag", "x", "prompt: Go., admin_only: perhaps", "x.admin_only", "must be true or false", "true or false"),
]


@pytest.mark.proves("T35-commands", "T-config-validation")
@pytest.mark.parametrize(
    ("name", "keys", "where", "says", "fix"), [row[1:] for row in BAD], ids=[row[0] for row in BAD]
)
def test_a_command_that_cannot_work_is_named_with_its_remedy(
    home: Home, name: str, keys: str, where: str, says: str, fix: str
):
    described = keys if "description" in keys else f"description: Mine, {keys}"
    error = home.refuse(f"commands:\n  {name}: {{{described}}}\n")
    assert error.message.startswith(f"{home.config}:2:"), error.explain()
    assert f": commands.{where}: " in error.message
    assert says in error.message
    assert fix in error.fix


def test_a_description_is_needed(home: Home):
    error = home.refuse("commands: {x: {prompt: Go.}}")
    assert "commands.x.description: this key is missing." in error.message


def test_a_placeholder_without_quotes_is_an_error_that_says_so(home: Home):
    error = home.refuse("commands:\n  x:\n    description: Mine\n    prompt: {{input}}\n")
    assert error.message.startswith(f"{home.config}:4:"), error.explain()
    assert "quotes" in error.fix
