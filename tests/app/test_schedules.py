"""Schedules of a home folder: over HTTP, in the SDK and on their pages, written to the file with its comments."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

import httpx2
import pytest

from denizen.app.build import Denizen
from denizen.app.configuration import HomeConfiguration
from denizen.app.reload import Reloader
from denizen.app.schedule_configuration import HomeSchedules
from denizen.domain.errors import Conflict, InvalidInput, LimitExceeded, NotAllowed, NotFound
from denizen.domain.ids import AgentName, SessionId, TurnId
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.room import Room
from denizen.domain.schedule import DeliveryRoute, ScheduleDelivery
from denizen.engine.schedules.own_schedules import MAX_OWN, OwnSchedules
from denizen.ports.toolset import CallOptions, CallScope
from denizen.web.http.dependencies import ScheduleServices
from denizen_sdk import ApiError, DenizenClient
from tests.app.component_web_fixture import read_words
from tests.app.home_folder import LAB, Home, open_home
from tests.web.knowledge_web_fixture import OWNER
from tests.web.test_source_pages import Browser
from tests.web_fixture import ADA, ANN, LOCAL, WebFixture, make_hello_model, open_web

pytestmark = pytest.mark.anyio

TEXT = f"""# Ours.
{LAB}
schedules:
  # Every morning.
  news:
    cron: 0 9 * * *  # at nine
    prompt: What is new?
"""


@dataclass
class Served:
    """A home folder whose schedules are served: `olga` is an owner, `ada` an admin."""

    home: Home
    denizen: Denizen
    web: WebFixture
    olga: Browser
    ada: Browser

    @property
    def text(self) -> str:
        return self.home.config.read_text(encoding="utf-8")

    def client(self, key: str) -> DenizenClient:
        return DenizenClient(LOCAL, key, transport=httpx2.ASGITransport(self.web.app))


@asynccontextmanager
async def open_schedules(home: Home, text: str = TEXT) -> AsyncGenerator[Served]:
    async with open_home(home, text) as denizen:
        files = HomeConfiguration(denizen, Reloader(denizen))
        services = ScheduleServices(denizen.schedule_catalog, HomeSchedules(denizen.schedule_catalog, files))
        async with (
            open_web(make_hello_model(), keys=[OWNER, ADA, ANN], configuration=files, schedules=services) as web,
            web.client() as client,
        ):
            yield Served(home, denizen, web, Browser(client, "key-of-olga"), Browser(client, "key-of-ada"))


@pytest.mark.proves("T-http-cron", "T33")
async def test_a_schedule_is_switched_over_http_in_the_file_and_in_force_at_once(home: Home) -> None:
    async with open_schedules(home) as server, server.client("key-of-olga") as olga:
        off = await olga.switch_schedule("news", enabled=False)
        assert (off.enabled, off.times.next_at) == (False, None)
        assert server.text == TEXT.replace("new?\n", "new?\n    enabled: false\n")
        assert not server.denizen.runtime.current.schedules["news"].enabled
        on = await olga.switch_schedule("news", enabled=True)
        assert on.times.next_at is not None
        assert "# at nine" in server.text and "# Every morning." in server.text


@pytest.mark.proves("T-http-cron", "T33")
async def test_a_schedule_is_run_over_http_and_its_run_can_be_seen(home: Home) -> None:
    async with open_schedules(home) as server, server.client("key-of-ada") as ada:
        first = await ada.run_schedule("news", idempotency_key="once")
        assert await ada.run_schedule("news", idempotency_key="once") == first
        with pytest.raises(ApiError, match="runs at the moment"):
            await ada.run_schedule("news")
        [run] = await ada.list_schedule_runs("news")
        assert (run.id, run.outcome, run.asked_by) == (first, "waiting", "api_key:ada")
        [listed] = await ada.list_schedules()
        assert listed.last == run and listed == await ada.get_schedule("news")


async def test_members_see_no_schedules_and_admins_do_not_switch_them(home: Home) -> None:
    async with open_schedules(home) as server, server.client("key-of-ann") as ann, server.client("key-of-ada") as ada:
        for call in (ann.list_schedules(), ann.run_schedule("news"), ada.switch_schedule("news", enabled=False)):
            with pytest.raises(ApiError) as refused:
                await call
            assert refused.value.status == 403
        with pytest.raises(ApiError, match="no schedule 'nws'") as unknown:
            await ada.run_schedule("nws")
        assert unknown.value.status == 404
        assert server.text == TEXT


async def test_a_schedule_is_added_changed_switched_and_removed_by_forms(home: Home) -> None:
    async with open_schedules(home) as server:
        olga, path = server.olga, "/admin/schedules/tidy"
        form = {"name": "tidy", "when": "@daily", "prompt": "Tidy up.", "wake_agent": "yes", "to": "log"}
        assert (await olga.send("/admin/add-schedule", **form)).headers["location"] == f"{path}?done=added"
        assert "  tidy:\n    cron: '@daily'\n    prompt: Tidy up.\n" in server.text
        assert "@daily, UTC" in read_words(await olga.read("/admin/schedules"))
        [box] = re.findall(r'<input id="wake_agent"[^>]*>', await olga.read(path))
        assert {"checked", 'aria-describedby="wake_agent-hint"'} <= set(box.strip("<>").split())
        changed = {**form, "zone": "UTC", "when": "0 7 * * *", "new_session": "yes"}
        assert (await olga.send(path, **changed)).status_code == 303
        assert "  tidy:\n    cron: 0 7 * * *\n    prompt: Tidy up.\n    new_session: true\n" in server.text
        assert (await olga.send(f"{path}/switch", off="yes")).status_code == 303
        assert "Off" in read_words(await olga.read(path))
        assert (await olga.send(f"{path}/run")).status_code == 303
        assert "waiting" in read_words(await server.ada.read(path))
        assert (await olga.send(f"{path}/remove")).status_code == 303
        assert server.text == TEXT


async def test_a_form_that_cannot_run_is_refused_with_the_reason_and_keeps_what_was_typed(home: Home) -> None:
    async with open_schedules(home) as server:
        form = {"name": "tidy", "when": "0 9 31 2 *", "prompt": "Tidy up.", "to": "discord"}
        page = await server.olga.send("/admin/add-schedule", **form)
        assert page.status_code == 400
        assert "no cron expression" in read_words(page.text) and "0 9 31 2 *" in page.text
        taken = await server.olga.send("/admin/add-schedule", **{**form, "name": "news", "to": "log"})
        assert taken.status_code == 409
        assert (await server.ada.send("/admin/schedules/news/remove")).status_code == 403
        assert server.text == TEXT


async def test_a_form_makes_and_changes_a_schedule_of_a_tool_and_refuses_arguments_that_do_not_fit(home: Home) -> None:
    async with open_schedules(home) as server:
        olga, path = server.olga, "/admin/schedules/sum"
        form = {"name": "sum", "when": "@daily", "kind": "tool", "tool": "calculator", "prompt": "Kept.", "to": "log"}
        wrong = {"{": "no JSON object", "[1]": "no JSON object", '{"expresion": "1"}': "expression"}
        for args, why in wrong.items():
            page = await olga.send("/admin/add-schedule", **form, args=args)
            assert page.status_code == 400 and why in read_words(page.text)
            assert "Kept." in page.text and html.escape(args) in page.text.replace("&#34;", "&quot;")
        assert (await olga.send("/admin/add-schedule", **{**form, "tool": "calculater"})).status_code == 400
        assert server.text == TEXT
        made = await olga.send("/admin/add-schedule", **form, args='{"expression": "1+1"}')
        assert made.headers["location"] == f"{path}?done=added"
        assert "tool: calculator" in server.text and "expression: 1+1" in server.text and "Kept." not in server.text
        assert 'value="tool" selected' in await olga.read(path)
        assert (await olga.send(path, **form, args='{"expression": "2+2"}')).status_code == 303
        assert "expression: 2+2" in server.text and "1+1" not in server.text
        assert (await olga.send(path, **{**form, "kind": "prompt"}, wake_agent="yes")).status_code == 303
        assert "prompt: Kept." in server.text and "calculator" not in server.text


DISCORD = """
default_agent: denizen
agents: {denizen: {}}
channels: {discord: {accounts: {denizen: "${TOKEN}"}}}
"""
ROOM = Room("discord", "12", "general", guild="1")


def scope_of(user: str, key: str = "") -> CallScope:
    """A call that somebody wants in the open channel."""
    return CallScope(
        agent=AgentName("denizen"),
        principal=Principal(PrincipalKind.PLATFORM_USER, f"discord:{user}", user),
        place=ROOM.place,
        session_id=SessionId("s"),
        turn_id=TurnId("t"),
        account=AgentName("denizen"),
        options=CallOptions(idempotency_key=key),
    )


async def test_what_a_variable_stands_for_is_shown_nowhere_and_never_written_to_the_file(home: Home) -> None:
    home.add_file("secrets.env", "KEY=very-secret-key\nTIMES=0 9 * * *\nROOM=12\n", 0o600)
    text = TEXT.replace("0 9 * * *  # at nine", "${TIMES}").replace("What is new?", "Ask with ${KEY}, or $${KEY}.")
    text += '    session: ${KEY}\n    delivery: {to: discord-dm, target: "${ROOM}"}\n' + DISCORD.replace("TOKEN", "KEY")
    async with open_schedules(home, text) as server, server.client("key-of-ada") as ada:
        kept = server.denizen.runtime.current.schedules["news"]
        assert (kept.cron, kept.prompt) == ("0 9 * * *", "Ask with very-secret-key, or ${KEY}.")
        path, listed = "/admin/schedules/news", await ada.get_schedule("news")
        assert (listed.prompt, listed.times.cron) == ("Ask with ${KEY}, or $${KEY}.", "${TIMES}")
        assert (listed.conduct.session, listed.conduct.delivery.target) == ("${KEY}", "${ROOM}")
        page = await server.olga.read(path)
        assert "very-secret-key" not in page + await server.olga.read("/admin/schedules") and "${KEY}" in page
        form = {"when": "${TIMES}", "zone": "UTC", "agent": "denizen", "session": "${KEY}", "wake_agent": "yes"}
        form |= {"prompt": "Ask with ${KEY}, now.", "to": "discord", "target": "${ROOM}"}
        assert (await server.olga.send(path, **form)).headers["location"] == f"{path}?done=changed"
        assert "Ask with ${KEY}, now." in server.text and "very-secret-key" not in server.text
        assert "cron: ${TIMES}" in server.text and "${ROOM}" in server.text
        assert server.denizen.runtime.current.schedules["news"].conduct.delivery.target == "12"


@asynccontextmanager
async def open_own(home: Home) -> AsyncGenerator[tuple[Served, OwnSchedules]]:
    home.add_file("secrets.env", "TOKEN=very-secret-token\n", 0o600)
    async with open_schedules(home, TEXT + DISCORD) as server:
        own = server.denizen.generation_deps.skills.schedules
        files = HomeConfiguration(server.denizen, Reloader(server.denizen))
        own.open_configuration(HomeSchedules(server.denizen.schedule_catalog, files))
        async with server.denizen.services.store.work() as work:
            await work.archive.put_room(ROOM)
        yield server, own


async def test_people_have_schedules_of_their_own_where_they_ask_for_them(home: Home) -> None:
    async with open_own(home) as (server, own):
        ana, ben = own.open(scope_of("7", "call")), own.open(scope_of("8"))
        made = await ana.add("tea", "0 16 * * *", "Tell of ${TOKEN}.", zone="Europe/Berlin")
        assert await ana.add("tea", "0 16 * * *", "Tell of ${TOKEN}.", zone="Europe/Berlin") == made
        kept = server.denizen.runtime.current.schedules["tea"]
        assert (kept.owner, kept.agent, kept.prompt) == ("platform_user:discord:7", "denizen", "Tell of ${TOKEN}.")
        assert kept.conduct.delivery == ScheduleDelivery(DeliveryRoute.CHANNEL, "discord", "12")
        assert ([each.name for each in await ana.list()], await ben.list()) == (["tea"], [])
        for call in (ben.remove("tea"), ben.switch("tea", is_on=False), ben.run("tea"), ana.remove("news")):
            with pytest.raises(NotFound, match="You have no schedule"):
                await call
        with pytest.raises(Conflict):
            await ben.add("tea", "0 9 * * *", "Mine.")
        assert (await ana.switch("tea", is_on=False)).next_at is None
        await ana.run("tea")
        await ana.run("tea")
        assert len(await server.denizen.schedule_catalog.list_runs("tea")) == 1
        await ana.remove("tea")
        assert server.text == TEXT + DISCORD
        await ana.add("tea", "0 16 * * *", "Tell of ${TOKEN}.", zone="Europe/Berlin")
        assert server.denizen.runtime.current.schedules["tea"].life != kept.life


async def test_a_channel_that_no_account_sees_is_refused_once_the_accounts_channels_are_known(home: Home) -> None:
    home.add_file("secrets.env", "TOKEN=very-secret-token\n", 0o600)
    async with open_schedules(home, TEXT + DISCORD) as server:
        form = {"when": "@daily", "prompt": "Tidy.", "wake_agent": "yes", "to": "discord", "target": "13"}
        assert (await server.olga.send("/admin/add-schedule", name="early", **form)).status_code == 303
        async with server.denizen.services.store.work() as work:
            await work.archive.put_room(ROOM)
        for path in ("/admin/add-schedule", "/admin/schedules/news"):
            refused = await server.olga.send(path, name="late", **form)
            assert (refused.status_code, "13" in refused.text) == (404, True)
            assert "no channel" in read_words(refused.text) and "12 (#general)" in read_words(refused.text)
        assert "late" not in server.text
        for target in ("12", "${ROOM:-12}"):
            sent = await server.olga.send("/admin/schedules/news", **{**form, "target": target})
            assert (sent.status_code, f"target: {target}" in server.text.replace("'", "")) == (303, True)


async def test_a_variable_in_the_schedule_of_a_person_stays_plain_when_the_owner_edits_its_page(home: Home) -> None:
    async with open_own(home) as (server, own):
        ana, path = own.open(scope_of("7")), "/admin/schedules/tea"
        await ana.add("tea", "0 16 * * *", "Tell of ${TOKEN},\nplaese.")
        form = {"when": "0 16 * * *", "zone": "UTC", "agent": "denizen", "prompt": "Tell of ${TOKEN},\r\nplease."}
        form |= {"wake_agent": "yes", "to": "discord", "target": "12", "session": "${TOKEN}"}
        assert (await server.olga.send(path, **form)).headers["location"] == f"{path}?done=changed"
        assert "Tell of $${TOKEN},\n" in server.text and "\r" not in server.text
        kept = server.denizen.runtime.current.schedules["tea"]
        assert (kept.prompt, kept.conduct.session) == ("Tell of ${TOKEN},\nplease.", "${TOKEN}")
        assert [each.prompt for each in await ana.list()] == ["Tell of ${TOKEN},\nplease."]
        text = server.text
        assert (await server.olga.send(path, **form)).status_code == 303
        assert server.text == text


async def test_what_the_operator_has_switched_off_its_owner_neither_runs_nor_switches_on_nor_removes(
    home: Home,
) -> None:
    async with open_own(home) as (server, own):
        ana, path = own.open(scope_of("7", "call")), "/admin/schedules/tea/switch"
        await ana.add("tea", "0 16 * * *", "Tea.")
        await ana.switch("tea", is_on=False)
        assert (await ana.switch("tea", is_on=True)).next_at is not None
        await server.olga.send(path, off="yes")
        assert (await ana.switch("tea", is_on=False)).next_at is None
        for call in (ana.run("tea"), ana.switch("tea", is_on=True), ana.remove("tea")):
            with pytest.raises(NotAllowed, match="The operator has switched 'tea' off"):
                await call
        assert not server.denizen.runtime.current.schedules["tea"].enabled
        assert not await server.denizen.schedule_catalog.list_runs("tea")
        await server.olga.send(path, on="yes")
        assert server.denizen.runtime.current.schedules["tea"].enabled
        await ana.run("tea")
        await ana.remove("tea")


@pytest.mark.parametrize(
    ("cron", "zone", "error"),
    [("*/10 * * * *", "", LimitExceeded), ("0 9 31 2 *", "", InvalidInput), ("0 9 * * *", "Mars/Sea", InvalidInput)],
)
async def test_schedules_of_people_run_neither_often_nor_at_times_that_are_none(
    home: Home, cron: str, zone: str, error: type[Exception]
) -> None:
    async with open_own(home) as (server, own):
        with pytest.raises(error):
            await own.open(scope_of("7")).add("tea", cron, "Tea.", zone=zone)
        assert server.text == TEXT + DISCORD


async def test_one_person_has_ten_schedules_and_programs_none(home: Home) -> None:
    async with open_own(home) as (_, own):
        ana = own.open(scope_of("7"))
        for number in range(MAX_OWN):
            await ana.add(f"tea-{number}", "0 16 * * *", "Tea.")
        with pytest.raises(LimitExceeded):
            await ana.add("more", "0 16 * * *", "Tea.")
        loop = replace(scope_of("7"), principal=Principal(PrincipalKind.SCHEDULE, "tea-1", "tea-1"))
        with pytest.raises(NotAllowed):
            await own.open(loop).add("loop", "0 16 * * *", "Tea.")


@pytest.mark.proves("T27")
async def test_the_hooks_of_a_schedule_stand_behind_those_of_its_agent_and_must_have_a_tool(home: Home) -> None:
    hooks = "    hooks: {before_run: {tool: calculator, args: {expression: '{{last_run_epoch}}'}}}\n"
    async with open_schedules(home, TEXT + hooks) as server:
        current = server.denizen.runtime.current
        [hook] = current.trigger_hooks["schedule:news"].before
        assert hook.tool == "calculator"
        home.write(TEXT + hooks.replace("calculator", "calculater"))
        with pytest.raises(InvalidInput, match=r"schedules.news.hooks.before_run.tool: there is no tool 'calculater'"):
            await Reloader(server.denizen).reload()


async def test_words_are_kept_with_what_they_mean_and_one_time_is_not_read_anew(home: Home) -> None:
    async with open_schedules(home) as server:
        olga, path = server.olga, "/admin/schedules/tea"
        form = {"name": "tea", "when": "in 3 hours", "prompt": "Tea.", "wake_agent": "yes", "to": "log"}
        assert (await olga.send("/admin/add-schedule", **form)).status_code == 303
        planned = server.denizen.runtime.current.schedules["tea"].at
        assert planned is not None and "said: in 3 hours" in server.text
        assert (await olga.send(path, **{**form, "prompt": "More tea."})).status_code == 303
        assert server.denizen.runtime.current.schedules["tea"].at == planned
        assert "in 3 hours (" in read_words(await olga.read("/admin/schedules"))
        assert (await olga.send(path, **{**form, "when": "every Monday at 9"})).status_code == 303
        changed = server.denizen.runtime.current.schedules["tea"]
        assert (changed.cron, changed.words, changed.at) == ("0 9 * * mon", "every Monday at 9", None)
        assert "said:" not in server.text and "at: '" not in server.text
        page = await olga.send(path, **{**form, "when": "every 5 hours"})
        assert page.status_code == 400 and "5 hours do not divide 24" in read_words(page.text)


async def test_a_single_time_counts_in_the_zone_that_the_schedule_has_unless_another_is_given(home: Home) -> None:
    agent = "default_agent: denizen\nagents: {denizen: {timestamps: {enabled: true, zone: America/New_York}}}\n"
    text = TEXT.replace("# at nine\n", "# at nine\n    zone: Asia/Tokyo\n") + agent
    async with open_schedules(home, text) as server, server.client("key-of-olga") as olga:

        async def move(hour: int, **changes: object) -> str:
            moved = await olga.change_schedule("news", when=f"tomorrow at {hour}:00", **changes)
            assert moved.times.at is not None
            zone = moved.times.zone
            return f"{datetime.fromisoformat(moved.times.at).astimezone(ZoneInfo(zone)):%H:%M} {zone}"

        assert await move(9) == "09:00 Asia/Tokyo"
        assert await move(10, zone="Europe/London") == "10:00 Europe/London"
        assert await move(11) == "11:00 Europe/London"
        assert await move(12, zone=None) == "12:00 America/New_York"
        assert await move(13) == "13:00 America/New_York"
        assert await move(13, zone="Asia/Tokyo") == "13:00 Asia/Tokyo", "the same words say another moment there"
        kept = server.denizen.runtime.current.schedules["news"].at
        assert await move(13, zone="Asia/Tokyo", prompt="More.") == "13:00 Asia/Tokyo"
        assert server.denizen.runtime.current.schedules["news"].at == kept
        form = {"when": "tomorrow at 13:00", "zone": "Europe/London", "agent": "denizen", "prompt": "More."}
        sent = await server.olga.send("/admin/schedules/news", **form, wake_agent="yes", to="log")
        moved = server.denizen.runtime.current.schedules["news"]
        assert sent.status_code == 303 and moved.at is not None
        assert f"{moved.at.astimezone(ZoneInfo(moved.zone)):%H:%M} {moved.zone}" == "13:00 Europe/London"


async def test_what_is_cleared_of_a_delivery_is_gone_and_a_webhook_keeps_its_secret(home: Home) -> None:
    home.add_file("secrets.env", "HOOK=0123456789abcdef\n", 0o600)
    old = TEXT + "    delivery: {to: mail, target: ana@example.org, subject: Our news}\n"
    async with open_schedules(home, old) as server:
        olga, path = server.olga, "/admin/schedules/news"

        def read_delivery() -> ScheduleDelivery:
            return server.denizen.runtime.current.schedules["news"].conduct.delivery

        form = {"when": "0 9 * * *", "zone": "UTC", "agent": "denizen", "prompt": "What is new?", "wake_agent": "yes"}
        mail = {**form, "to": "mail", "target": "ana@example.org"}
        assert (await olga.send(path, **mail, subject="")).status_code == 303
        assert (read_delivery().subject, "Our news" in server.text) == ("", False)
        refused = await olga.send(path, **{**mail, "target": ""})
        assert refused.status_code == 400 and "mail needs an address" in read_words(refused.text)
        hook = {**form, "to": "webhook", "target": "https://example.org/a", "secret": "${HOOK}"}
        assert (await olga.send(path, **hook)).status_code == 303
        assert (await olga.send(path, **{**hook, "target": "https://example.org/b", "secret": ""})).status_code == 303
        assert (read_delivery().target, read_delivery().secret) == ("https://example.org/b", "0123456789abcdef")


async def test_people_say_times_in_words_and_have_no_other_times_for_it(home: Home) -> None:
    async with open_own(home) as (server, own):
        ana = own.open(scope_of("7"))
        added = await ana.add("tea", "every Monday at 9", "Tea.", zone="Europe/Berlin")
        assert (added.when, added.zone) == ("every Monday at 9 (0 9 * * mon)", "Europe/Berlin")
        assert await ana.add("tea", "every Monday at 9", "Tea.", zone="Europe/Berlin") == added
        once = await ana.add("once", "tomorrow at 9", "Tea.")
        assert once.when.startswith("tomorrow at 9 (") and once.next_at is not None
        assert await ana.add("once", "tomorrow at 9", "Tea.") == once
        with pytest.raises(LimitExceeded):
            await ana.add("often", "every 5 minutes", "Tea.")
        with pytest.raises(InvalidInput, match="not in the future"):
            await ana.add("late", "today at 0:00", "Tea.")
        assert "often" not in server.text and "late" not in server.text


async def test_a_schedule_is_added_changed_and_removed_over_http(home: Home) -> None:
    async with open_schedules(home) as server, server.client("key-of-olga") as olga:
        added = await olga.add_schedule(
            "tea", when="every Monday at 9", prompt="Tea.", zone="Europe/Berlin", jitter="5m"
        )
        assert (added.times.when, added.times.zone) == ("every Monday at 9 (0 9 * * mon)", "Europe/Berlin")
        changed = await olga.change_schedule("tea", when="in 3 hours", jitter=None)
        assert changed.times.at is not None and changed.times.cron == ""
        assert "said: in 3 hours" in server.text and "# Every morning." in server.text
        for wrong in ({"when": "soon", "prompt": "x"}, {"when": "every day at 9"}):
            with pytest.raises(ApiError) as refused:
                await olga.add_schedule("other", **wrong)
            assert refused.value.status == 400
        with pytest.raises(ApiError) as taken:
            await olga.add_schedule("tea", when="every day at 9", prompt="x")
        assert taken.value.status == 409
        await olga.remove_schedule("tea")
        assert server.text == TEXT
        async with server.client("key-of-ada") as ada:
            with pytest.raises(ApiError) as barred:
                await ada.add_schedule("tea", when="every day at 9", prompt="x")
            assert barred.value.status == 403
