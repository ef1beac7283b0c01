"""Buttons and menus that an account posts in somebody's name, and what becomes of what people choose."""

from __future__ import annotations

import pytest

from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.domain.json import Json
from denizen.testing.discord import DiscordPermission, SimMessage, SimRole, SimUser
from denizen.testing.discord.actions.embeds import find_component
from tests.adapters.discord.account_fixture import AccountFixture, running
from tests.adapters.discord.actions.action_fixture import (
    RunAction,
    get_posted_message,
    open_actions,
    open_actions_and_listener,
)

pytestmark = [pytest.mark.anyio, pytest.mark.proves("V-skill-components")]

P = DiscordPermission
COLOURS = ("red", "blue", "green")


def offers(message: SimMessage) -> list[tuple[str, str]]:
    """Label and id of each button; label and value of each option of a menu."""
    rows = [each for row in message.body.components for each in row["components"]]
    options = [option for each in rows for option in each.get("options", ())]
    return [(each["label"], each.get("custom_id") or each["value"]) for each in options or rows]


async def test_a_pressed_choice_says_its_label_and_what_it_was_asked(sim: AccountFixture) -> None:
    async with open_actions_and_listener(sim) as (act, heard):
        done = await act(
            sim.ben, "post_choices", text="Which colour?", choices=["Red", {"label": "Blue", "emoji": "🔵"}]
        )
        posted = get_posted_message(sim, done)
        (_, _), (label, custom_id) = offers(posted)
        assert label == "Blue"
        assert (find_component(posted.body.components, custom_id) or {})["emoji"]["name"] == "🔵"
        await sim.world.press(sim.ana, posted, custom_id)
        await heard.until(lambda: heard.presses)
    (press,) = heard.presses
    assert (press.value, press.about, press.author_id) == ("Blue", "Which colour?", str(sim.ana.id))
    assert press.message_id == str(posted.id)


async def test_a_menu_says_all_that_was_chosen_also_in_a_later_process(sim: AccountFixture) -> None:
    choices = [{"label": each, "description": f"the colour {each}"} for each in COLOURS]
    async with open_actions(sim) as act:
        done = await act(sim.ben, "post_choices", text="Which?", choices=choices, style="menu", several=True)
    posted = get_posted_message(sim, done)
    async with running(sim) as (_, heard):
        await sim.world.press(sim.ana, posted, "pick", ["red", "green"])
        await heard.until(lambda: heard.presses)
    assert heard.presses[0].value == "red, green"


async def test_a_menu_that_discord_would_not_take_is_refused(sim: AccountFixture) -> None:
    async with open_actions(sim) as act:
        wrongs: list[dict[str, Json]] = [
            {"choices": []},
            {"choices": ["a", "a"]},
            {"choices": ["x" * 81]},
            {"choices": ["a"], "style": "wheel"},
            {"choices": ["a", "b"], "several": True},
        ]
        for wrong in wrongs:
            with pytest.raises(InvalidInput):
                await act(sim.ben, "post_choices", text="Which?", **wrong)
    assert not sim.mine()


class RoleMenuFixture:
    """Three colours that the account and Ben may give, and one role above them."""

    def __init__(self, sim: AccountFixture) -> None:
        self.sim = sim
        guild = sim.guild
        guild.add_role("higher").position = 99
        # Each new role stands below those there are.
        guild.set_roles(sim.ada.user, [guild.add_role("top", permissions=P.MANAGE_ROLES)])
        guild.set_roles(sim.ben, [guild.add_role("keeper", permissions=P.MANAGE_ROLES)])
        self.colours: list[SimRole] = [guild.add_role(each) for each in COLOURS]
        self.cleo = sim.world.add_person("Cleo")
        guild.join(self.cleo)

    def held(self, who: SimUser) -> set[str]:
        return {self.sim.guild.roles[each].name for each in self.sim.guild.members[who.id].roles}

    async def menu(self, act: RunAction, **details: Json) -> SimMessage:
        given: dict[str, Json] = {"roles": list(COLOURS), "text": "Pick a colour", **details}
        done = await act(self.sim.ben, "post_role_menu", **given)
        return get_posted_message(self.sim, done)

    async def press(self, who: SimUser, menu: SimMessage, custom_id: str, values: list[str] | None = None) -> str:
        """What is said to the one who pressed it, and to nobody else."""
        used = await self.sim.world.press(who, menu, custom_id, values or [])
        (answer,) = await used.until_followups()
        assert answer.origin.seen_by is who
        return answer.content


async def test_a_button_gives_a_role_and_takes_it_again_without_the_agent(sim: AccountFixture) -> None:
    fixture = RoleMenuFixture(sim)
    async with open_actions_and_listener(sim) as (act, heard):
        menu = await fixture.menu(act)
        ids = dict(offers(menu))
        assert await fixture.press(fixture.cleo, menu, ids["red"]) == "You have now: red."
        assert await fixture.press(fixture.cleo, menu, ids["blue"]) == "You have now: blue."
        assert fixture.held(fixture.cleo) == {"red", "blue"}
        assert await fixture.press(fixture.cleo, menu, ids["red"]) == "You no longer have: red."
        assert fixture.held(fixture.cleo) == {"blue"}
        assert not heard.presses


async def test_of_roles_that_exclude_each_other_the_last_one_counts(sim: AccountFixture) -> None:
    fixture = RoleMenuFixture(sim)
    async with open_actions(sim) as act:
        ids = dict(offers(menu := await fixture.menu(act, only_one=True)))
        await fixture.press(fixture.cleo, menu, ids["red"])
        assert await fixture.press(fixture.cleo, menu, ids["blue"]) == "You have now: blue. You no longer have: red."
    assert fixture.held(fixture.cleo) == {"blue"}


async def test_a_role_menu_gives_what_is_chosen_and_takes_the_rest_after_a_restart_and_without_its_maker(
    sim: AccountFixture,
) -> None:
    fixture = RoleMenuFixture(sim)
    async with open_actions(sim) as act:
        menu = await fixture.menu(act, style="menu")
    sim.guild.set_roles(sim.ben, [])
    values = dict(offers(menu))
    async with running(sim):
        assert (
            await fixture.press(fixture.cleo, menu, "roles", [values["red"], values["blue"]])
            == "You have now: red, blue."
        )
        told = await fixture.press(fixture.cleo, menu, "roles", [values["green"]])
        assert told == "You have now: green. You no longer have: red, blue."
        assert await fixture.press(fixture.cleo, menu, "roles", []) == "You no longer have: green."
    assert fixture.held(fixture.cleo) == set()


async def test_a_role_menu_takes_the_right_to_give_each_of_its_roles(sim: AccountFixture) -> None:
    fixture = RoleMenuFixture(sim)
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match=r"You may not.*'Manage Roles'"):
            await act(fixture.cleo, "post_role_menu", roles=["red"], text="Pick")
        for roles, why in ((["red", "keeper"], "as high as yours"), (["higher"], "as high as yours")):
            with pytest.raises(NotAllowed, match=why):
                await fixture.menu(act, roles=roles)
        with pytest.raises(NotAllowed, match="as high as mine"):
            await act(sim.ana, "post_role_menu", roles=["higher"], text="Pick")
        with pytest.raises(NotAllowed, match="not for the taking"):
            await act(sim.ana, "post_role_menu", roles=["keeper"], text="Pick")
    sim.guild.set_roles(sim.ada.user, [])
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="I may not"):
            await act(sim.ana, "post_role_menu", roles=["red"], text="Pick")
    assert not sim.mine()


async def test_a_role_that_got_power_later_is_not_given_any_more(sim: AccountFixture) -> None:
    fixture = RoleMenuFixture(sim)
    async with open_actions(sim) as act:
        menu = await fixture.menu(act)
    fixture.colours[0].permissions |= P.BAN_MEMBERS
    async with running(sim):
        assert "not for the taking" in await fixture.press(fixture.cleo, menu, dict(offers(menu))["red"])
    assert fixture.held(fixture.cleo) == set()


async def test_a_press_when_the_account_may_not_give_roles_any_more_is_told(sim: AccountFixture) -> None:
    fixture = RoleMenuFixture(sim)
    async with open_actions(sim) as act:
        menu = await fixture.menu(act)
    sim.guild.set_roles(sim.ada.user, [])
    async with running(sim):
        assert "may not give roles" in await fixture.press(fixture.cleo, menu, dict(offers(menu))["red"])
    assert fixture.held(fixture.cleo) == set()
