"""/model and /mode: what one chooses holds for oneself."""

import pytest

from denizen.domain.errors import NotFound
from denizen.engine.configuration.choices import MODE, MODEL, find_model_choice
from denizen.testing.scripted_model import ScriptedModels
from denizen.testing.temporary_store import TemporaryStore
from tests.engine.commands.command_fixture import ANA, BEN, ZOE, CommandFixture, Person, models, open_commands

pytestmark = pytest.mark.anyio


async def find_model(engine: CommandFixture, who: Person) -> str:
    async with engine.store.work(write=False) as work:
        return await find_model_choice(work, engine.principal(who).key, engine.runtime.current.models)


@pytest.mark.proves("V16")
async def test_a_model_is_set_listed_and_removed() -> None:
    async with open_commands() as engine:
        assert "You chose none, so ada uses its own: `balanced`" in (await engine.give("/model list")).text
        assert "`house` (acme/large) answers you" in (await engine.give("/model set house")).text
        assert await find_model(engine, ANA) == "house"
        listed = (await engine.give("/model list")).text
        assert "You chose the model `house`" in listed
        assert "- `cheap`: acme/small" in listed
        assert "`house` no longer answers you" in (await engine.give("/model remove")).text
        assert await find_model(engine, ANA) == ""
        assert "nothing changed" in (await engine.give("/model remove")).text


@pytest.mark.proves("VW7")
@pytest.mark.parametrize("way", ["set house", "list", "remove"])
async def test_only_who_asked_about_models_sees_the_answer(way: str) -> None:
    async with open_commands() as engine:
        assert (await engine.give(f"/model {way}")).private


async def test_the_choices_of_two_users_do_not_affect_each_other() -> None:
    async with open_commands() as engine:
        await engine.give("/model set house", ANA)
        await engine.give("/mode set cheap", BEN)
        assert [await find_model(engine, who) for who in (ANA, BEN, ZOE)] == ["house", "cheap", ""]
        await engine.give("/model remove", ANA)
        assert [await find_model(engine, who) for who in (ANA, BEN, ZOE)] == ["", "cheap", ""]


@pytest.mark.proves("V16")
async def test_aliases_are_for_everybody_and_any_model_is_for_admins() -> None:
    async with open_commands() as engine:
        refused = await engine.give("/model set acme/large", ANA)
        assert refused.is_failure
        assert "Models without an alias are for admins" in refused.text
        assert "`balanced`, `cheap`, `fast`, `house`" in refused.text
        assert not (await engine.give("/model set acme/large", ZOE)).is_failure
        assert await find_model(engine, ZOE) == "acme/large"
        assert "There is no model 'acme/none'" in (await engine.give("/model set acme/none", ZOE)).text
        assert await find_model(engine, ZOE) == "acme/large"


@pytest.mark.proves("V16")
async def test_an_admin_chooses_for_somebody_else() -> None:
    async with open_commands() as engine:
        for name in ("@Ben Berg", "ben berg", "<@2>", "2"):
            assert not (await engine.give(f"/model set house user: {name}", ZOE)).is_failure
            assert await find_model(engine, BEN) == "house"
            assert await find_model(engine, ZOE) == ""
            assert "Users with a model of their own:\n- 2: `house`" in (await engine.give("/model list", ZOE)).text
            assert "of their own" not in (await engine.give("/model list", ANA)).text
            assert not (await engine.give(f"/model remove user: {name}", ZOE)).is_failure
            assert "of their own" not in (await engine.give("/model list", ZOE)).text
            assert await find_model(engine, BEN) == ""
        assert "There is no user '@Nobody'" in (await engine.give("/model set house user: @Nobody", ZOE)).text
        assert (await engine.give("/model set house user: @Ben Berg", ANA)).is_failure
        assert await find_model(engine, BEN) == ""


@pytest.mark.proves("V17")
async def test_a_mode_is_set_shown_cleared_and_listed() -> None:
    async with open_commands() as engine:
        assert "Mode `fast`: acme/small answers you" in (await engine.give("/mode set Fast")).text
        assert await find_model(engine, ANA) == "fast"
        assert "You chose the mode `fast`" in (await engine.give("/mode status")).text
        listed = (await engine.give("/mode list")).text
        assert "- `fast`: acme/small" in listed
        assert "- `balanced`: " in listed and "- `cheap`: acme/small" in listed
        assert "- `quality`: not configured here" in listed
        assert "Your mode is cleared" in (await engine.give("/mode clear")).text
        assert await engine.settings(ANA) == {}


@pytest.mark.proves("V17")
@pytest.mark.parametrize("mode", ["fast", "cheap", "balanced", "quality"])
async def test_each_mode_chooses_the_model_that_is_configured_for_it(mode: str) -> None:
    choices = {each: f"acme/{each}-one" for each in ("fast", "cheap", "balanced", "quality")}
    async with open_commands(scripted=ScriptedModels(models(**choices))) as engine:
        assert f"Mode `{mode}`: acme/{mode}-one answers you" in (await engine.give(f"/mode set {mode}")).text
        assert await find_model(engine, ANA) == mode
        assert f"You chose the mode `{mode}`" in (await engine.give("/mode status")).text
        listed = (await engine.give("/mode list")).text
        assert all(f"- `{each}`: {model}" in listed for each, model in choices.items())


@pytest.mark.proves("V17")
async def test_a_mode_without_a_model_is_refused_and_the_others_are_named() -> None:
    async with open_commands() as engine:
        refused = await engine.give("/mode set quality")
        assert refused.is_failure
        assert "A mode uses the model alias of the same name" in refused.text
        assert "Choose one of: `fast`, `cheap`, `balanced`" in refused.text
        assert await engine.settings(ANA) == {}


async def test_a_named_model_goes_before_a_mode() -> None:
    async with open_commands() as engine:
        await engine.give("/model set house")
        assert "your model `house` goes before it" in (await engine.give("/mode set fast")).text
        assert await engine.settings(ANA) == {MODEL: "house", MODE: "fast"}
        assert await find_model(engine, ANA) == "house"
        await engine.give("/model remove")
        assert await find_model(engine, ANA) == "fast"


async def test_a_choice_that_is_not_configured_any_more_says_how_to_choose_again() -> None:
    store = TemporaryStore()
    async with open_commands(store=store) as engine:
        await engine.give("/model set house", ANA)
        await engine.give("/mode set fast", BEN)
    async with open_commands(store=store, scripted=ScriptedModels(models(balanced="acme/middle"))) as engine:
        for who, fix in ((ANA, "/model remove"), (BEN, "/mode clear")):
            with pytest.raises(NotFound) as gone:
                await find_model(engine, who)
            assert fix in gone.value.fix
            assert not (await engine.give(fix, who)).is_failure
            assert await find_model(engine, who) == ""


async def test_models_are_suggested_as_far_as_one_may_choose_them() -> None:
    async with open_commands() as engine:
        assert list(await engine.suggest("model", "set", "model", "")) == ["balanced", "cheap", "fast", "house"]
        assert list(await engine.suggest("model", "set", "model", "large")) == []
        assert list(await engine.suggest("model", "set", "model", "LARGE", ZOE)) == ["acme/large"]
