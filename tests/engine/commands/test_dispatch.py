"""Commands as a whole: what is offered, who may give what, how refusals read; as text and by slash."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.attention import AccountPolicy, AccountScope, AccountStaff, TriggerPolicy
from denizen.domain.custom_command import CustomCommand
from denizen.engine.commands.dispatch import COMMANDS, PERMISSIONS
from denizen.engine.commands.text import parse_text
from denizen.engine.configuration.generation import CustomCommandSet
from denizen.ports.channel import CommandSpec
from denizen.ports.inbox import AllowedKind
from tests.engine.commands.command_fixture import ADA, ANA, BEN, DIRECT, OTHER_ROOM, ROOM, ZOE, Person, open_commands

pytestmark = pytest.mark.anyio

SPECS = [command.spec for command in COMMANDS.values()]
OWNED = frozenset({ZOE.id})


def every_spec() -> list[CommandSpec]:
    return [each for spec in SPECS for each in (spec, *spec.groups)]


async def test_the_built_in_commands_are_offered_and_each_says_who_may_give_it() -> None:
    names = [
        "ask",
        "new",
        "reset",
        "agent",
        "handover",
        "agents",
        "model",
        "mode",
        "context",
        "compact",
        "why",
        "usage",
        "memory",
        "reminders",
        "tasks",
        "schedules",
        "run",
        "allow",
        "observer",
        "migrate",
        "help",
    ]
    async with open_commands() as engine:
        assert [spec.name for spec in engine.commands.specs(ADA)] == names
        assert engine.commands.specs(ADA)[0].description == "Ask ada something."
    assert {name for name in PERMISSIONS if not re.search("[ :]", name)} == set(names)
    groups = {f"{spec.name} {group.name}" for spec in SPECS for group in spec.groups}
    assert {name for name in PERMISSIONS if " " in name} <= groups
    options = {f"{spec.name}:{each.name}" for spec in SPECS for group in (spec, *spec.groups) for each in group.options}
    assert {name for name in PERMISSIONS if ":" in name} <= options


async def test_no_platform_refuses_the_way_in_which_commands_are_offered() -> None:
    for spec in every_spec():
        assert re.fullmatch(r"[a-z0-9_-]{1,32}", spec.name)
        assert 1 <= len(spec.description) <= 100
        required = [option.required for option in spec.options]
        assert required == sorted(required, reverse=True), f"{spec.name}: required options come first"
        assert not (spec.options and spec.groups)
        for option in spec.options:
            assert re.fullmatch(r"[a-z0-9_-]{1,32}", option.name)
            assert 1 <= len(option.description) <= 100
            assert len(option.choices) <= 25
            assert not (option.choices and option.suggests)
    for command in COMMANDS.values():
        offered = {o.name for each in (command.spec, *command.spec.groups) for o in each.options if o.suggests}
        assert set(command.suggests) == offered


@pytest.mark.proves("VW7")
async def test_no_command_has_an_option_for_a_key_or_an_address() -> None:
    words = {option.name for spec in every_spec() for option in spec.options}
    assert not any(re.search(r"key|token|secret|url|password", word) for word in words)
    async with open_commands() as engine:
        reply = await engine.slash("model", "set", {"model": "house", "api_key": "sk-1"}, who=ZOE)
        assert reply.is_failure
        assert "There is no option `api_key`" in reply.text
        assert "sk-1" not in reply.text
        assert await engine.settings(ZOE) == {}


@pytest.mark.proves("T36")
@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("/new", ("new", "", {})),
        ("  /NEW  \n", ("new", "", {})),
        ("/ask what is it: a cat?", ("ask", "", {"text": "what is it: a cat?"})),
        ("/ask text: hi\nthere", ("ask", "", {"text": "hi\nthere"})),
        ("/model set cheap user: @Ben Berg", ("model", "set", {"model": "cheap", "user": "@Ben Berg"})),
        ("/model set user=@Ana model=cheap", ("model", "set", {"model": "cheap", "user": "@Ana"})),
        ("/model", ("model", "", {})),
        ("/model sets x", ("model", "sets", {})),
        ("/allow add @Ben Berg", ("allow", "add", {"user": "@Ben Berg"})),
        ("/allow add role: Mods", ("allow", "add", {"role": "Mods"})),
        ("/memory forget confirm: yes", ("memory", "forget", {"confirm": "yes"})),
        ("/memory forget yes", ("memory", "forget", {"confirm": "yes"})),
        ("/shrug whatever", ("shrug", "", {})),
        ("/etc/hosts is empty", None),
        ("/ 2", None),
        ("//", None),
        ("and /new", None),
    ],
)
def test_a_command_can_be_written_as_text(text: str, typed: object) -> None:
    assert parse_text(text, SPECS) == typed


@given(st.text(max_size=200), st.sampled_from([*COMMANDS, "", "x"]), st.text(max_size=80))
def test_no_text_is_read_as_an_option_that_does_not_exist(rest: str, name: str, more: str) -> None:
    typed = parse_text(f"/{name} {rest} {more}", SPECS)
    if typed is None or typed[0] not in COMMANDS:
        return
    spec = COMMANDS[typed[0]].spec
    group = next((each for each in spec.groups if each.name == typed[1]), spec)
    assert set(typed[2]) <= {option.name for option in group.options}


@pytest.mark.proves("T36")
async def test_a_command_does_the_same_as_text_and_by_slash() -> None:
    async with open_commands() as engine:
        typed, slashed = await engine.give("/model set cheap"), await engine.slash("model", "set", {"model": "cheap"})
        assert typed == slashed
        assert not typed.is_failure


@pytest.mark.proves("T36")
@pytest.mark.parametrize(
    ("text", "hints"),
    [
        ("/modle set x", ["There is no command /modle", "Did you mean /mode", "/help"]),
        ("/xyzzy", ["There is no command /xyzzy", "/help lists"]),
        ("/allow", ["/allow needs one more word", "`/allow add [user] [role]` or `/allow remove [user] [role]`"]),
        ("/allow ad @Ana", ["/allow has no 'ad'", "Write `/allow add [user] [role]`."]),
        ("/ask", ["`text` is missing", "Write `/ask <text>`"]),
        ("/mode set turbo", ["`mode` cannot be 'turbo'", "fast, cheap, balanced, quality"]),
    ],
)
async def test_what_cannot_be_understood_is_answered_with_the_way_to_write_it(text: str, hints: list[str]) -> None:
    async with open_commands() as engine:
        reply = await engine.give(text, ZOE)
        assert reply.is_failure
        assert reply.private
        for hint in hints:
            assert hint in reply.text


@pytest.mark.proves("V24")
async def test_administrative_commands_are_for_admins_and_owners() -> None:
    account_policy = AccountPolicy(
        staff=AccountStaff(owners=OWNED, admins=frozenset({"5"}), admin_roles=frozenset({"71"}))
    )
    people = [Person("5", "Eve"), Person("6", "Mod", frozenset({"71"})), ZOE]
    async with open_commands(account_policy=account_policy) as engine:
        for text in ("/allow list", "/allow add @Ben", "/model set house user: @Ana"):
            refused = await engine.give(text, ANA)
            assert refused.is_failure
            assert "is for admins only" in refused.text
        assert "The option `user` of /model" in (await engine.give("/model remove user: @Ben", ANA)).text
        for who in people:
            assert not (await engine.give("/allow list", who)).is_failure
        async with engine.store.work(write=False) as work:
            assert await work.inbox.list_allowed(ADA, "chat", AllowedKind.USER) == frozenset()


@pytest.mark.proves("V24")
async def test_who_is_not_on_the_list_may_only_look_after_their_own_data() -> None:
    async with open_commands() as engine:
        await engine.give("/allow add @Ben Berg", ZOE)
        for text in ("/ask hello", "/new", "/why", "/agent", "/mode status", "/compact", "/reset"):
            refused = await engine.give(text, ANA)
            assert refused.is_failure
            assert "not on the list" in refused.text
        assert engine.opened == []
        assert not (await engine.give("/memory show", ANA)).is_failure
        offered = (await engine.give("/help", ANA)).text
        assert "/memory" in offered
        assert "/ask" not in offered
        assert not (await engine.give("/ask hello", BEN)).is_failure
        assert not (await engine.give("/ask hello", ZOE)).is_failure


async def test_a_role_on_the_list_is_as_good_as_a_name() -> None:
    async with open_commands() as engine:
        await engine.give("/allow add role: Helpers", ZOE)
        assert (await engine.give("/ask hello", ANA)).is_failure
        assert not (await engine.give("/ask hello", Person("1", "Ana", frozenset({"70"})))).is_failure


async def test_commands_hold_to_the_channels_of_the_account() -> None:
    account_policy = AccountPolicy(
        scope=AccountScope(channels=frozenset({ROOM.id})), triggers=TriggerPolicy(mentions=False, direct_messages=False)
    )
    async with open_commands(account_policy=account_policy) as engine:
        assert not (await engine.give("/ask hello", room=ROOM)).is_failure
        assert "I do not talk here" in (await engine.give("/ask hello", room=OTHER_ROOM)).text
        assert "I do not talk here" in (await engine.give("/ask hello", room=DIRECT)).text
        assert len(engine.opened) == 1


@pytest.mark.proves("T35")
async def test_help_lists_what_this_person_may_give_here() -> None:
    customs = CustomCommandSet(
        (
            CustomCommand("deploy", "Deploys.", prompt="x"),
            CustomCommand("sum", "Sums up.", prompt="x", admin_only=False),
        )
    )
    async with open_commands(customs=customs) as engine:
        member, owner = (await engine.give("/help")).text, (await engine.give("/help", ZOE)).text
        assert "- `/sum` Sums up." in member
        for word in ("/allow", "/deploy"):
            assert word not in member
            assert word in owner
        one = (await engine.give("/help model")).text
        assert "`/model set <model> [user]` Choose a model." in one
        assert "One of: fast, cheap, balanced, quality." in (await engine.give("/help /mode")).text
        assert "Did you mean /model" in (await engine.give("/help modell")).text
        assert (await engine.give("/help allow")).is_failure
        assert list(await engine.suggest("help", "", "command", "mod")) == ["model", "mode"]


async def test_ask_opens_a_turn_and_says_nothing_itself() -> None:
    async with open_commands() as engine:
        reply = await engine.give("/ask What is new?")
        assert reply.is_pending
        assert not reply.private
        assert not reply.text
        assert [(opened.text, opened.agent, opened.call.author_id) for opened in engine.opened] == [
            ("What is new?", "", "1")
        ]


async def test_a_reply_is_never_longer_than_a_message() -> None:
    many = CustomCommandSet(tuple(CustomCommand(f"c{at}", "x" * 90, prompt="x", admin_only=False) for at in range(100)))
    async with open_commands(customs=many) as engine:
        assert len((await engine.give("/help")).text) == engine.account_policy.style.message_limit


async def test_nothing_is_suggested_for_what_one_may_not_give() -> None:
    async with open_commands() as engine:
        await engine.give("/allow add @Ben Berg", ZOE)
        assert await engine.suggest("allow", "remove", "user", "", ZOE) == ["2"]
        assert await engine.suggest("allow", "remove", "role", "", ZOE) == []
        assert await engine.suggest("allow", "remove", "user", "", BEN) == []
        assert await engine.suggest("model", "set", "user", "", ZOE) == []
        assert await engine.suggest("nothing", "", "x", "", ZOE) == []
