"""Our commands in Discord's form, and what is written so that Discord has them."""

from __future__ import annotations

import pytest

from denizen.adapters.discord.commands import normalize, parse_invocation, plan_sync, to_payload
from denizen.domain.errors import InvalidInput
from denizen.ports.channel import CommandOption, CommandSpec

ASK = CommandSpec("ask", "Ask something", (CommandOption("text", "What to ask", required=True),))
ALLOW = CommandSpec(
    "allow",
    "Who may talk",
    groups=(CommandSpec("add", "Let in", (CommandOption("user", "Who", suggests=True),)), CommandSpec("list", "Show")),
)


def to_stored_command(spec: CommandSpec, number: int = 1, **more: object) -> dict[str, object]:
    """As Discord gives it back: with ids, and without what is at its default."""
    payload = to_payload(spec)
    options = [{key: value for key, value in each.items() if value not in (False, [])} for each in payload["options"]]
    return {**payload, "options": options, "id": str(number), "version": "7", "nsfw": False, **more}


def test_groups_are_subcommands_and_required_options_come_first() -> None:
    payload = to_payload(ALLOW)
    assert [(each["type"], each["name"]) for each in payload["options"]] == [(1, "add"), (1, "list")]
    assert payload["options"][0]["options"][0]["autocomplete"] is True
    mixed = CommandSpec("x", "y", (CommandOption("a", "b"), CommandOption("c", "d", required=True)))
    assert [each["name"] for each in to_payload(mixed)["options"]] == ["c", "a"]


def test_an_administrative_command_is_hidden_from_nobody() -> None:
    assert "default_member_permissions" not in to_payload(CommandSpec("reset", "Forget", admin_only=True))


def test_choices_are_offered_without_asking() -> None:
    option = CommandOption("mode", "Which", choices=("fast", "cheap"), suggests=True)
    row = to_payload(CommandSpec("mode", "Presets", (option,)))["options"][0]
    assert row["choices"] == [{"name": "fast", "value": "fast"}, {"name": "cheap", "value": "cheap"}]
    assert row["autocomplete"] is False


@pytest.mark.parametrize("spec", [ASK, ALLOW], ids=["options", "groups"])
def test_what_discord_gives_back_is_the_same(spec: CommandSpec) -> None:
    assert normalize(to_stored_command(spec)) == to_payload(spec)


@pytest.mark.parametrize(
    "spec",
    [
        CommandSpec("Ask", "big letters"),
        CommandSpec("a" * 33, "too long"),
        CommandSpec("ask", ""),
        CommandSpec("ask", "d" * 101),
        CommandSpec("ask", "d", tuple(CommandOption(f"o{number}", "d") for number in range(26))),
        CommandSpec("ask", "d", (CommandOption("o", "d", choices=("c",) * 26),)),
        CommandSpec("ask", "d", groups=(CommandSpec("two words", "d"),)),
    ],
)
def test_what_discord_would_refuse_is_told_before(spec: CommandSpec) -> None:
    with pytest.raises(InvalidInput) as caught:
        to_payload(spec)
    assert caught.value.code == "discord_bad_command"


def test_a_command_is_read_with_its_subcommand_and_what_is_typed() -> None:
    data = {
        "name": "allow",
        "options": [
            {"type": 1, "name": "add", "options": [{"type": 3, "name": "user", "value": "an", "focused": True}]}
        ],
    }
    given = parse_invocation(data)
    assert (given.name, given.group, dict(given.options), given.focused) == ("allow", "add", {"user": "an"}, "user")
    assert parse_invocation({"name": "help"}).options == {}


def test_nothing_is_written_when_nothing_differs() -> None:
    plan = plan_sync([to_payload(ASK)], [to_stored_command(ASK)], frozenset({"ask"}))
    assert (list(plan.creations), dict(plan.edits), dict(plan.deletions)) == ([], {}, {})


def test_only_what_differs_is_written_and_others_are_left_alone() -> None:
    changed = CommandSpec("ask", "Ask me", ASK.options)
    existing = [
        to_stored_command(ASK, 1),
        to_stored_command(CommandSpec("old", "Old"), 2),
        to_stored_command(CommandSpec("foreign", "Theirs"), 3),
    ]
    plan = plan_sync([to_payload(changed), to_payload(ALLOW)], existing, frozenset({"old", "ask"}))
    assert [each["name"] for each in plan.creations] == ["allow"]
    assert list(plan.edits) == ["1"]
    assert dict(plan.deletions) == {"2": "old"}
    assert not plan.is_first


def test_a_menu_command_of_the_same_name_is_another_command() -> None:
    plan = plan_sync([to_payload(ASK)], [{"id": "9", "type": 3, "name": "ask"}], frozenset({"ask"}))
    assert [each["name"] for each in plan.creations] == ["ask"]
    assert dict(plan.deletions) == {}
