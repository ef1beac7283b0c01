"""/model and /mode: what one chooses holds for oneself."""

import pytest

from denizen.domain.errors import NotFound
from denizen.engine.choices import MODE, MODEL, model_of
from denizen.testing.memory_store import MemoryStore
from denizen.testing.scripted_model import ScriptedModels
from tests.engine.commands.command_fixture import ANA, BEN, ZOE, CommandHouse, Person, models, open_command_house

pytestmark = pytest.mark.anyio


async def chosen(house: CommandHouse, who: Person) -> str:
    async with house.store.work(write=False) as work:
        return await model_of(work, house.principal(who).key, house.runtime.current.models)


@pytest.mark.proves("V16")
async def test_a_model_is_set_listed_and_removed() -> None:
    async with open_command_house() as house:
        assert "You chose none, so ada uses its own: `balanced`" in (await house.give("/model list")).text
        assert "`house` (acme/large) answers you" in (await house.give("/model set house")).text
        assert await chosen(house, ANA) == "house"
        listed = (await house.give("/model list")).text
        assert "You chose the model `house`" in listed
        assert "- `cheap`: acme/small" in listed
        assert "`house` no longer answers you" in (await house.give("/model remove")).text
        assert await chosen(house, ANA) == ""
        assert "nothing changed" in (await house.give("/model remove")).text


async def test_the_choices_of_two_users_do_not_affect_each_other() -> None:
    async with open_command_house() as house:
        await house.give("/model set house", ANA)
        await house.give("/mode set cheap", BEN)
        assert [await chosen(house, who) for who in (ANA, BEN, ZOE)] == ["house", "cheap", ""]
        await house.give("/model remove", ANA)
        assert [await chosen(house, who) for who in (ANA, BEN, ZOE)] == ["", "cheap", ""]


@pytest.mark.proves("V16")
async def test_aliases_are_for_everybody_and_any_model_is_for_admins() -> None:
    async with open_command_house() as house:
        refused = await house.give("/model set acme/large", ANA)
        assert refused.is_failure
        assert "Models without an alias are for admins" in refused.text
        assert "`balanced`, `cheap`, `fast`, `house`" in refused.text
        assert not (await house.give("/model set acme/large", ZOE)).is_failure
        assert await chosen(house, ZOE) == "acme/large"
        assert "There is no model 'acme/none'" in (await house.give("/model set acme/none", ZOE)).text
        assert await chosen(house, ZOE) == "acme/large"


@pytest.mark.proves("V16")
async def test_an_admin_chooses_for_somebody_else() -> None:
    async with open_command_house() as house:
        for name in ("@Ben Berg", "ben berg", "<@2>", "2"):
            assert not (await house.give(f"/model set house user: {name}", ZOE)).is_failure
            assert await chosen(house, BEN) == "house"
            assert await chosen(house, ZOE) == ""
            assert not (await house.give(f"/model remove user: {name}", ZOE)).is_failure
            assert await chosen(house, BEN) == ""
        assert "There is no user '@Nobody'" in (await house.give("/model set house user: @Nobody", ZOE)).text
        assert (await house.give("/model set house user: @Ben Berg", ANA)).is_failure
        assert await chosen(house, BEN) == ""


@pytest.mark.proves("V17")
async def test_a_mode_is_set_shown_cleared_and_listed() -> None:
    async with open_command_house() as house:
        assert "Mode `fast`: acme/small answers you" in (await house.give("/mode set Fast")).text
        assert await chosen(house, ANA) == "fast"
        assert "You chose the mode `fast`" in (await house.give("/mode status")).text
        listed = (await house.give("/mode list")).text
        assert "- `fast`: acme/small" in listed
        assert "- `quality`: not configured here" in listed
        assert "Your mode is cleared" in (await house.give("/mode clear")).text
        assert await house.settings(ANA) == {}


@pytest.mark.proves("V17")
async def test_a_mode_without_a_model_is_refused_and_the_others_are_named() -> None:
    async with open_command_house() as house:
        refused = await house.give("/mode set quality")
        assert refused.is_failure
        assert "A mode uses the model alias of the same name" in refused.text
        assert "Choose one of: `fast`, `cheap`, `balanced`" in refused.text
        assert await house.settings(ANA) == {}


async def test_a_named_model_goes_before_a_mode() -> None:
    async with open_command_house() as house:
        await house.give("/model set house")
        assert "your model `house` goes before it" in (await house.give("/mode set fast")).text
        assert await house.settings(ANA) == {MODEL: "house", MODE: "fast"}
        assert await chosen(house, ANA) == "house"
        await house.give("/model remove")
        assert await chosen(house, ANA) == "fast"


async def test_a_choice_that_is_not_configured_any_more_says_how_to_choose_again() -> None:
    store = MemoryStore()
    async with open_command_house(store=store) as house:
        await house.give("/model set house", ANA)
        await house.give("/mode set fast", BEN)
    async with open_command_house(store=store, scripted=ScriptedModels(models(balanced="acme/middle"))) as house:
        for who, fix in ((ANA, "/model remove"), (BEN, "/mode clear")):
            with pytest.raises(NotFound) as gone:
                await chosen(house, who)
            assert fix in gone.value.fix
            assert not (await house.give(fix, who)).is_failure
            assert await chosen(house, who) == ""


async def test_models_are_suggested_as_far_as_one_may_choose_them() -> None:
    async with open_command_house() as house:
        assert list(await house.suggest("model", "set", "model", "")) == ["balanced", "cheap", "fast", "house"]
        assert list(await house.suggest("model", "set", "model", "large")) == []
        assert list(await house.suggest("model", "set", "model", "LARGE", ZOE)) == ["acme/large"]
