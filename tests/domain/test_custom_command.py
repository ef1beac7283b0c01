"""Configured commands: how their templates are filled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.custom_command import MAX_INPUT_CHARS, CustomCommand, fill_argv, fill_prompt
from denizen.domain.errors import InvalidInput

PLAIN = st.text(st.characters(exclude_characters="\x00"), max_size=100).filter(lambda text: not text.startswith("-"))


@pytest.mark.proves("T37")
@given(PLAIN)
def test_whatever_is_written_stays_within_its_own_argument(text: str) -> None:
    assert fill_argv(("grep", "-n", "{{input}}", "a{{input}}b", "x"), text) == ("grep", "-n", text, f"a{text}b", "x")


@pytest.mark.parametrize("text", ["-rf", "--exec=sh", "-"])
def test_an_input_is_not_taken_for_an_option(text: str) -> None:
    with pytest.raises(InvalidInput, match="must not begin with a dash") as refused:
        fill_argv(("rm", "{{input}}"), text)
    assert "`--`" in refused.value.fix
    assert fill_argv(("rm", "--", "{{input}}"), text) == ("rm", "--", text)
    assert fill_argv(("rm", "--name={{input}}"), text) == ("rm", f"--name={text}")


@pytest.mark.parametrize("text", ["a\x00b", "x" * (MAX_INPUT_CHARS + 1)])
def test_what_no_program_can_be_given_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        fill_argv(("echo", "{{input}}"), text)


@pytest.mark.proves("T37")
@pytest.mark.parametrize(
    ("prompt", "filled"),
    [
        ("Say {{input}} to {{output}}.", "Say IN {{output}} to OUT {{input}}."),
        ("Explain {{input}}", "Explain IN {{output}}\n\nOUT {{input}}"),
        ("{{other}} {{output}}", "{{other}} OUT {{input}}"),
    ],
)
def test_what_is_filled_in_is_not_filled_again(prompt: str, filled: str) -> None:
    assert fill_prompt(prompt, text="IN {{output}}", output="OUT {{input}}") == filled


def test_no_output_leaves_the_prompt_as_it_is() -> None:
    assert fill_prompt("Say {{input}}", text="x") == "Say x"


def test_the_tool_is_named_after_the_command() -> None:
    command = CustomCommand("status", "S.", shell=("a",), prompt="{{input}}")
    assert command.tool == "command_status"
    assert command.takes_input
    assert not command.shell_takes_input
