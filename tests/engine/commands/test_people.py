"""/allow and /memory: who may talk, and what is kept about whom."""

import pytest

from denizen.domain.attention import AccountPolicy, AccountScope, AccountStaff
from denizen.domain.ids import AgentName
from denizen.ports.inbox import AllowedKind
from tests.engine.commands.command_fixture import ADA, ANA, BEN, ZOE, CommandFixture, open_commands

pytestmark = pytest.mark.anyio


async def list_allowed(engine: CommandFixture, kind: AllowedKind, agent: AgentName = ADA) -> set[str]:
    async with engine.store.work(write=False) as work:
        return set(await work.inbox.list_allowed(agent, "chat", kind))


@pytest.mark.proves("V24")
async def test_users_and_roles_are_put_on_the_list_shown_and_taken_off() -> None:
    async with open_commands() as engine:
        assert "everybody may talk to me here" in (await engine.give("/allow list", ZOE)).text
        first = (await engine.give("/allow add @Ben Berg", ZOE)).text
        assert "The user @Ben Berg may talk to me." in first
        assert "others may not talk to me any more" in first
        assert "others may not" not in (await engine.give("/allow add role: @Helpers", ZOE)).text
        assert await list_allowed(engine, AllowedKind.USER) == {"2"}
        assert await list_allowed(engine, AllowedKind.ROLE) == {"70"}
        assert await list_allowed(engine, AllowedKind.USER, AgentName("bob")) == set()
        listed = (await engine.give("/allow list", ZOE)).text
        assert "- users: `2`" in listed
        assert "- roles: `70`" in listed
        assert "is off the list." in (await engine.give("/allow remove user: 2", ZOE)).text
        assert "everybody may talk to me" in (await engine.give("/allow remove role: <@&70>", ZOE)).text
        assert await list_allowed(engine, AllowedKind.USER) | await list_allowed(engine, AllowedKind.ROLE) == set()


@pytest.mark.proves("V24")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/allow add", "Name one user or one role"),
        ("/allow add user: @Ana role: Mods", "Name one user or one role"),
        ("/allow add @Nobody", "There is no user '@Nobody' here"),
        ("/allow add role: Nobodies", "There is no role 'Nobodies' here"),
        ("/allow add @Mods", "Write role: @Mods."),
        ("/allow add <@&71>", "Write role: <@&71>."),
        ("/allow remove @Ana", "is not on the list"),
        ("/allow remove user: 77", "The operator takes it out of denizen.yaml"),
    ],
)
async def test_what_cannot_be_allowed_is_refused_with_the_way_to_do_it(text: str, words: str) -> None:
    account_policy = AccountPolicy(
        staff=AccountStaff(owners=frozenset({ZOE.id})), scope=AccountScope(users=frozenset({"77"}))
    )
    async with open_commands(account_policy=account_policy) as engine:
        refused = await engine.give(text, ZOE)
        assert refused.is_failure
        assert words in refused.text
        assert await list_allowed(engine, AllowedKind.USER) | await list_allowed(engine, AllowedKind.ROLE) == set()


async def test_the_list_shows_what_the_configuration_allows() -> None:
    account_policy = AccountPolicy(
        staff=AccountStaff(owners=frozenset({ZOE.id})),
        scope=AccountScope(users=frozenset({"77"}), roles=frozenset({"78"})),
    )
    async with open_commands(account_policy=account_policy) as engine:
        assert "- by the configuration: `77`, `78`" in (await engine.give("/allow list", ZOE)).text
        assert "others may not" not in (await engine.give("/allow add @Ana", ZOE)).text
        assert "everybody" not in (await engine.give("/allow remove @Ana", ZOE)).text


async def test_one_sees_what_is_kept_about_oneself() -> None:
    async with open_commands() as engine:
        engine.user_data.posts = {("chat", "1"): 12, ("chat", "2"): 99}
        await engine.give("/mode set cheap")
        told = (await engine.give("/memory show")).text
        assert "- archive: 12 posts" in told
        assert "- sessions with agents: 6 messages" in told
        assert "- settings: `mode: cheap`" in told
        assert "99" not in told


async def test_forgetting_has_to_be_meant_and_is_about_oneself_only() -> None:
    async with open_commands() as engine:
        engine.user_data.posts = {("chat", "1"): 1, ("chat", "2"): 99}
        for who in (ANA, BEN):
            await engine.give("/mode set cheap", who)
        for text in ("/memory forget", "/memory forget confirm: no"):
            assert (await engine.give(text)).is_failure
        assert "Write /memory forget confirm: yes." in (await engine.give("/memory forget")).text
        assert engine.user_data.posts[("chat", "1")] == 1
        told = (await engine.give("/memory forget confirm: yes")).text
        assert "Forgotten: 1 post with their earlier texts, your words in sessions, 1 setting." in told
        assert engine.user_data.posts == {("chat", "2"): 99}
        assert await engine.settings(ANA) == {}
        assert await engine.settings(BEN) == {"mode": "cheap"}


async def test_one_leaves_the_archive_and_comes_back() -> None:
    async with open_commands() as engine:
        engine.user_data.posts = {("chat", "1"): 5}
        assert "Nothing that you write is archived any more" in (await engine.give("/memory opt-out")).text
        assert "0 posts; you are not archived any more" in (await engine.give("/memory show")).text
        assert engine.user_data.out == {("chat", "1")}
        assert "archived again from now on" in (await engine.give("/memory opt-in")).text
        assert engine.user_data.out == set()
