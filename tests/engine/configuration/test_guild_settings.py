"""What those who manage a server have set holds there, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from denizen.domain.archiving import ArchivePolicy
from denizen.domain.budget import BudgetLimits, BudgetPolicy, BudgetScope, BudgetScopeKind
from denizen.domain.guild_settings import (
    GuildField,
    GuildSettings,
    read_settings,
    settings_from_json,
    settings_to_json,
    write_settings,
)
from denizen.domain.principal import Principal, PrincipalKind
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.archive.removal import ArchiveRetention
from denizen.engine.configuration.guild_settings import KEPT_S, GuildSettingsOverlay
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.clock import NOON
from tests.engine.engine_fixture import LOOK
from tests.engine.platform_fixture import PlatformFixture, open_platform
from tests.memory_platform import MemoryPlatform

pytestmark = pytest.mark.anyio

BEA = Principal(PrincipalKind.WEB_USER, "user_bea", "Bea")
HOME, OTHER = "1", "2"


def overlay_of(fixture: PlatformFixture) -> GuildSettingsOverlay:
    return fixture.shared_services.services.guilds


async def save(fixture: PlatformFixture, guild: str = HOME, **settings: Any) -> None:
    """As an operator who leaves everything to communities lets people do."""
    runtime = fixture.runtime
    await runtime.swap(replace(runtime.current, number=2, guild_fields=frozenset(GuildField)))
    await overlay_of(fixture).save(BEA, "discord", guild, GuildSettings(**settings))


def prompt_of(model: ScriptedModel) -> str:
    return "\n".join(segment.text for segment in model.requests[-1].segments)


async def test_agents_answer_only_in_the_channels_that_were_chosen_with_their_threads() -> None:
    async with open_platform() as fixture:
        platform, general = fixture.world.platform, fixture.world.general
        quiet = platform.add_room("quiet")
        direct = fixture.world.direct("ana")
        await fixture.settled()
        await save(fixture, channels=(general.id,))
        platform.say(quiet, "ana", "@ada hello?")
        platform.say(general, "ana", "@ada one?")
        platform.say(direct, "ana", "two?")
        assert await fixture.said() == ["Hello.", "Hello."]
        assert {sent.place.channel for sent in fixture.ada.sent} == {general.id, direct.id}


async def test_channels_of_another_server_change_nothing_here() -> None:
    async with open_platform() as fixture:
        await fixture.settled()
        await save(fixture, OTHER, channels=("7",), language="fr", tools=("*",), budget=Decimal(0))
        fixture.world.platform.say(fixture.world.general, "ana", "@ada hello?")
        assert await fixture.said() == ["Hello."]
        assert "'fr'" not in prompt_of(fixture.model)


async def test_language_and_words_stand_in_the_prompt_there_and_nowhere_else() -> None:
    async with open_platform() as fixture:
        direct = fixture.world.direct("ana")
        await fixture.settled()
        await save(fixture, language="de", persona="Speak of boats.")
        fixture.world.platform.say(fixture.world.general, "ana", "@ada hello?")
        await fixture.said()
        here = prompt_of(fixture.model)
        fixture.world.platform.say(direct, "ana", "hello?")
        await fixture.said()
        there = prompt_of(fixture.model)
    assert ("'de'" in here, "Speak of boats." in here) == (True, True)
    assert ("'de'" in there, "Speak of boats." in there) == (False, False)


async def test_a_tool_that_a_server_does_without_is_denied_there_whatever_else_allows_it() -> None:
    model = ScriptedModel(ScriptedReply(calls=[call(LOOK.name, q="here")]), otherwise=ScriptedReply("Hello."))
    async with open_platform(model=model) as fixture:
        await fixture.settled()
        await save(fixture, tools=(f"{LOOK.name[:2]}*",))
        fixture.world.platform.say(fixture.world.general, "ana", "@ada look")
        await fixture.said()
        assert fixture.tools.calls == []
        assert "do without" in str(model.requests[-1].messages[-1])
        direct = fixture.world.direct("ana")
        model.script(ScriptedReply(calls=[call(LOOK.name, q="here")]))
        fixture.world.platform.say(direct, "ana", "look")
        await fixture.said()
        assert [each.tool for each in fixture.tools.calls] == [LOOK.name]


async def test_a_server_can_only_make_its_budget_smaller() -> None:
    scope = BudgetScope(BudgetScopeKind.GUILD, "discord:1")
    policy = BudgetPolicy(special={scope: BudgetLimits(Decimal(5), Decimal(50))})

    def limit(usd: str | None) -> BudgetLimits:
        settings = GuildSettings(budget=None if usd is None else Decimal(usd))
        return settings.apply_to_budgets(policy, "discord:1").get_limits(scope)

    assert limit("2") == BudgetLimits(Decimal(2), Decimal(50))
    assert limit("9") == limit(None) == BudgetLimits(Decimal(5), Decimal(50))
    unlimited = GuildSettings(budget=Decimal(2)).apply_to_budgets(BudgetPolicy(), "discord:1")
    assert unlimited.get_limits(scope).per_day_usd == 2
    assert unlimited.get_limits(BudgetScope(BudgetScopeKind.GUILD, "discord:2")).per_day_usd is None


async def test_a_question_beyond_the_budget_of_its_server_is_refused() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Hello."), price_usd=(Decimal("0.01"), Decimal("0.01")))
    async with open_platform(model=model) as fixture:
        await fixture.settled()
        await save(fixture, budget=Decimal("0.0001"))
        fixture.world.platform.say(fixture.world.general, "ana", "@ada hello?")
        [said] = await fixture.said()
        assert "budget" in said.lower()
        assert model.requests == []


async def test_messages_of_a_server_leave_the_archive_after_its_days_and_do_not_come_back() -> None:
    async with open_platform() as fixture:
        await fixture.settled()
        clock, store = fixture.world.clock, fixture.store
        mirror = ArchiveMirror(store, ArchivePolicy, clock, overlay_of(fixture))
        retention = ArchiveRetention(store, ArchivePolicy, clock, guilds=overlay_of(fixture), sleep=clock.sleep)
        other = MemoryPlatform(guild=OTHER)
        other.add_person("ana", "Ana")
        home_post = fixture.world.platform.write(fixture.world.general, "ana", "old here")
        room = other.add_room("beach", room_id="5000")
        other_post = replace(other.write(room, "ana", "old there"), id="6000")
        await mirror.keep([home_post, other_post])
        await save(fixture, retention=7)
        assert await retention.sweep("discord") == 0
        clock.advance(days=8)
        assert await retention.sweep("discord") == 1
        await mirror.keep([home_post, other_post])
        async with store.work(write=False) as work:
            left = [post.text for post in await work.archive.find_many("discord", [home_post.id, other_post.id])]
    assert left == ["old there"]


def test_a_server_keeps_messages_no_longer_than_the_operator() -> None:
    now = NOON
    policy = ArchivePolicy(retention_days=30, guild_days={"1": 90, "2": 5})
    assert policy.horizon(now, "1") == policy.horizon(now) == now - timedelta(days=30)
    assert policy.horizon(now, "2") == now - timedelta(days=5)


async def test_what_the_operator_does_not_leave_to_servers_any_more_stops_at_once() -> None:
    async with open_platform() as fixture:
        await fixture.settled()
        await save(fixture, language="de", channels=("7",), retention=3)
        runtime, overlay = fixture.runtime, overlay_of(fixture)
        await runtime.swap(replace(runtime.current, number=3, guild_fields=frozenset({GuildField.LANGUAGE})))
        assert await overlay.load("discord", HOME) == GuildSettings(language="de")
        assert await overlay.load_retention("discord") == {}
        fixture.world.platform.say(fixture.world.general, "ana", "@ada hello?")
        assert await fixture.said() == ["Hello."]


async def test_a_change_by_another_process_counts_within_seconds() -> None:
    async with open_platform() as fixture:
        await fixture.settled()
        here = overlay_of(fixture)
        other = GuildSettingsOverlay(fixture.store, fixture.world.clock, fixture.runtime)
        assert await here.load("discord", HOME) == GuildSettings()
        await other.save(BEA, "discord", HOME, GuildSettings(language="de"))
        fixture.world.clock.advance(KEPT_S + 1)
        assert (await here.load("discord", HOME)).language == "de"


def test_settings_are_stored_and_read_back_as_they_were() -> None:
    given = {
        GuildField.LANGUAGE: "pt-BR",
        GuildField.PERSONA: "Two\r\nlines",
        GuildField.CHANNELS: "7 8 7",
        GuildField.TOOLS: "ban, look*",
        GuildField.BUDGET: "2.50",
        GuildField.RETENTION: "30",
    }
    settings = read_settings(given, ["ban", "lookup"])
    assert settings == GuildSettings(
        language="pt-BR",
        persona="Two\nlines",
        channels=("7", "8"),
        tools=("ban", "look*"),
        budget=Decimal("2.50"),
        retention=30,
    )
    assert settings_from_json({str(name): value for name, value in settings_to_json(settings).items()}) == settings
    assert read_settings(write_settings(settings), ["ban", "lookup"]) == settings
    assert settings_from_json({}) == read_settings({}, []) == GuildSettings()
    assert set(GuildSettings.__dataclass_fields__) == set(GuildField)
