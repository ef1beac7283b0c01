"""Backups at set times: when they are made, which ones stay, and what people hear of one that failed."""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from denizen.adapters.cron import CroniterTimes
from denizen.app import health
from denizen.app.backup_schedule import BackupSchedule, BackupState, find_due, load_backup_state
from denizen.app.backups import restore_backup, verify_backup
from denizen.app.build import Denizen
from denizen.app.owner_notice import tell_owners
from denizen.app.settings.backups import BackupsSection
from denizen.domain.diagnosis import Severity
from denizen.domain.ids import AgentName
from denizen.engine.events.signal import Signal
from tests.app.home_folder import LAB, Home, open_home
from tests.clock import NOON, ManualClock
from tests.memory_channel import MemoryChannel
from tests.memory_platform import MemoryPlatform

pytestmark = pytest.mark.anyio

DAILY = f"{LAB}backups: {{schedule: '0 4 * * *', keep: 2}}\n"


@dataclass
class Scheduled:
    """A home folder with a schedule on a clock that stands. `told` is what owners heard."""

    denizen: Denizen
    clock: ManualClock = field(default_factory=ManualClock)
    told: list[str] = field(default_factory=list[str])
    reachable: bool = True

    async def tell(self, text: str, key: str) -> bool:
        del key
        if self.reachable:
            self.told.append(text)
        return self.reachable

    @property
    def schedule(self) -> BackupSchedule:
        """That of a process that has just been started."""
        store, times = self.denizen.services.store, CroniterTimes()
        return BackupSchedule(
            lambda: self.denizen.settings, store, self.clock, times, changed=Signal(), tell_owners=self.tell
        )

    @property
    def names(self) -> list[str]:
        return sorted(each.name for each in (self.denizen.home / "backups").glob("*"))

    async def load(self) -> BackupState:
        return await load_backup_state(self.denizen.services.store, self.denizen.home)


@asynccontextmanager
async def scheduled(home: Home, text: str = DAILY) -> AsyncGenerator[Scheduled]:
    async with open_home(home, text) as denizen:
        yield Scheduled(denizen)


async def diagnose(it: Scheduled) -> list[tuple[Severity, str]]:
    it.denizen.services = replace(it.denizen.services, clock=it.clock)
    checks = {each.name: each for each in health.list_checks(it.denizen, offline=True)}
    return [(each.severity, each.what) for each in (await health.run_check(checks["backups"])).diagnoses]


async def test_the_first_is_made_at_once_and_the_next_when_its_time_has_come(home: Home, tmp_path: Path) -> None:
    async with scheduled(home) as it:
        assert await it.schedule.look() == 60
        assert it.names == ["denizen-20261121-120000.zip"]
        verify_backup(it.denizen.home / "backups" / it.names[0], None, lambda _: None)
        it.clock.advance(hours=15, minutes=59)
        assert await it.schedule.look() == 60
        assert len(it.names) == 1
        it.clock.advance(minutes=1)
        await it.schedule.look()
        assert it.names == ["denizen-20261121-120000.zip", "denizen-20261122-040000.zip"]
        assert (await it.load()).good_at == it.clock.now()
        new = tmp_path / "new"
        restore_backup(it.denizen.home / "backups" / it.names[1], new, None, lambda _: None)
    async with open_home(Home(new), DAILY) as restored:  # it begins anew, and knows nothing of the files of the other
        assert await load_backup_state(restored.services.store, new) == BackupState(home=str(new))


async def test_each_home_folder_of_a_fleet_knows_its_own(home: Home, tmp_path: Path) -> None:
    async with scheduled(home, f"{DAILY}store: {{url: 'sqlite:///{tmp_path}/shared.db'}}\n") as it:
        for name in ("one", "two", "one", "two", "one"):  # the upkeep moves
            (tmp_path / name).mkdir(exist_ok=True)
            it.denizen.settings = replace(it.denizen.settings, home=tmp_path / name)
            await it.schedule.look()
            it.clock.advance(days=1)
        store, made = it.denizen.services.store, ["denizen-20261123-120000.zip", "denizen-20261125-120000.zip"]
        assert sorted(each.name for each in (tmp_path / "one/backups").iterdir()) == made
        state = await load_backup_state(store, tmp_path / "one")
        assert [Path(each).name for each in state.made] == made[::-1]
        assert len((await load_backup_state(store, tmp_path / "two")).made) == 2


async def test_without_a_schedule_none_is_made(home: Home) -> None:
    async with scheduled(home, LAB) as it:
        assert await it.schedule.look() is None
        assert it.names == []
        assert await diagnose(it) == [(Severity.OK, "backups: none at set times; backups.schedule says when")]


async def test_old_ones_go_when_a_new_one_was_checked_and_those_of_people_stay(home: Home) -> None:
    async with scheduled(home) as it:
        home.add_file("backups/denizen-20200101-000000.zip", "made by hand")
        for _ in range(4):
            await it.schedule.look()
            it.clock.advance(days=1)
        made = ["denizen-20261123-120000.zip", "denizen-20261124-120000.zip"]
        assert it.names == ["denizen-20200101-000000.zip", *made]
        assert [Path(each).name for each in (await it.load()).made] == made[::-1]
        damage(it.denizen.home)
        await it.schedule.look()
        assert it.names == ["denizen-20200101-000000.zip", *made]


def damage(home: Path) -> None:
    """Lets a row refer to one that is not there, which a check of the copy finds."""
    with closing(sqlite3.connect(home / "denizen.db")) as database:
        database.execute("PRAGMA foreign_keys=OFF")
        database.execute("CREATE TABLE IF NOT EXISTS odd (id TEXT REFERENCES turns (id))")
        database.execute("INSERT INTO odd VALUES ('gone')")
        database.commit()


async def test_a_failure_is_told_once_and_tried_again_later_and_later(home: Home) -> None:
    elsewhere = home.path / "disk"
    text = f"{LAB}backups: {{schedule: '@daily', folder: {elsewhere}}}\n"
    async with scheduled(home, text.replace(str(elsewhere), "/nowhere/at/all")) as it:
        await it.schedule.look()
        assert len(it.told) == 1
        assert "/nowhere/at/all" in it.told[0]
        it.clock.advance(minutes=4)
        await it.schedule.look()
        failure = (await it.load()).failure
        assert failure is not None
        assert (failure.tries, failure.at) == (1, NOON)
        it.clock.advance(minutes=1)
        await it.schedule.look()
        it.clock.advance(minutes=9)
        await it.schedule.look()
        failure = (await it.load()).failure
        assert failure is not None
        assert (failure.tries, failure.is_told, len(it.told)) == (2, True, 1)
        [(severity, what), *_] = await diagnose(it)
        assert severity is Severity.WARNING
        assert "9 minutes ago" in what
        assert "/nowhere/at/all" in what
        it.denizen.settings = home.load(text)
        it.clock.advance(minutes=1)
        await it.schedule.look()
        state = await it.load()
        assert state.failure is None
        assert len(list(elsewhere.glob("*.zip"))) == 1


async def test_an_old_one_that_cannot_be_looked_at_costs_neither_the_new_one_nor_those_that_go(home: Home) -> None:
    async with scheduled(home) as it:
        await it.schedule.look()
        odd = str(it.denizen.home / ("x" * 300))  # of which the system tells an error
        with pytest.raises(OSError, match="too long"):
            Path(odd).stat()
        state = await it.load()
        async with it.denizen.services.store.work() as work:
            [(key, value)] = (await work.user_settings.get("backups")).items()
            assert isinstance(value, dict)
            await work.user_settings.put("backups", key, {**value, "made": [odd, *state.made]}, now=NOON)
        for _ in range(2):
            it.clock.advance(days=1)
            await it.schedule.look()
        state = await it.load()
        assert (state.good_at, state.failure) == (it.clock.now(), None)
        assert it.names == ["denizen-20261122-120000.zip", "denizen-20261123-120000.zip"]
        assert odd in state.made


async def test_a_fault_of_the_program_is_a_failure_that_is_told_and_waits(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    async with scheduled(home, f'{LAB}backups: {{schedule: "@daily", folder: "a\\0b"}}\n') as it:
        assert await it.schedule.look() == 60
        failure = (await it.load()).failure
        assert failure is not None
        assert (failure.tries, failure.why, failure.is_told) == (1, "ValueError", True)
        assert "a fault of the program" in it.told[0]
        assert "embedded null byte" in caplog.text


async def test_a_file_in_the_place_of_the_folder_is_a_failure_that_names_it(home: Home) -> None:
    home.add_file("mine", "a file")
    async with scheduled(home, f"{LAB}backups: {{schedule: '@daily', folder: mine}}\n") as it:
        await it.schedule.look()
        failure = (await it.load()).failure
        assert failure is not None
        assert (failure.message, failure.why) == (f"{home.path / 'mine'} cannot be written or read.", "File exists")


async def test_a_process_that_dies_over_its_backup_does_not_begin_again_at_once(home: Home) -> None:
    async with scheduled(home) as it:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await it.schedule.look()
        await interrupt(it)
        failure = (await it.load()).failure
        assert failure is not None
        assert "interrupted" in failure.message
        assert it.names == []
        await it.schedule.look()
        assert (it.names, it.told) == ([], [])
        it.clock.advance(minutes=5)
        await it.schedule.look()
        assert (len(it.names), it.told) == (1, [])


async def interrupt(it: Scheduled) -> None:
    """Stops a backup as soon as it has begun."""
    async with anyio.create_task_group() as group:

        async def stop_soon() -> None:
            while (failure := (await it.load()).failure) is None or failure.at != it.clock.now():
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

        group.start_soon(it.schedule.look)
        group.start_soon(stop_soon)


async def test_a_failure_after_one_that_was_interrupted_is_told_once(home: Home) -> None:
    async with scheduled(home) as it:
        await interrupt(it)
        it.denizen.settings = home.load(DAILY.replace("keep: 2", "folder: /nowhere/at/all"))
        it.clock.advance(minutes=5)
        await it.schedule.look()
        assert len(it.told) == 1
        assert "/nowhere/at/all" in it.told[0]
        it.denizen.settings = home.load(DAILY)
        it.clock.advance(minutes=10)
        await interrupt(it)
        it.denizen.settings = home.load(DAILY.replace("keep: 2", "folder: /nowhere/at/all"))
        it.clock.advance(minutes=20)
        await it.schedule.look()
        assert len(it.told) == 1


async def test_one_that_is_interrupted_twice_is_told(home: Home) -> None:
    async with scheduled(home) as it:
        await interrupt(it)
        it.clock.advance(minutes=5)
        await interrupt(it)
        for _ in range(2):
            await it.schedule.look()
            assert len(it.told) == 1
        assert "interrupted" in it.told[0]


async def test_one_that_is_there_when_the_server_stops_is_kept_as_any_other(home: Home) -> None:
    async with scheduled(home) as it:
        for _ in range(3):
            async with anyio.create_task_group() as group:
                group.start_soon(it.schedule.look)
                while not list((it.denizen.home / "backups").glob(f"denizen-{it.clock.now():%Y%m%d-%H%M%S}.zip")):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            state = await it.load()
            assert (state.good_at, state.failure) == (it.clock.now(), None)
            assert [Path(each).name for each in state.made] == it.names[::-1]
            it.clock.advance(days=1)
        assert len(it.names) == 2


async def test_one_that_is_twice_too_old_is_a_warning(home: Home) -> None:
    async with scheduled(home) as it:
        await it.schedule.look()
        it.clock.advance(days=1)
        assert await diagnose(it) == [(Severity.OK, "backups: the last good one is 1 day old, 1 kept")]
        it.clock.advance(hours=17)
        [(severity, what), _] = await diagnose(it)
        assert (severity, what) == (Severity.WARNING, "backups: the last good one is 1 day old")


async def test_they_are_encrypted_for_the_configured_key_with_secrets_where_that_is_wanted(
    home: Home, tmp_path: Path
) -> None:
    pyrage: Any = importlib.import_module("pyrage")
    own = pyrage.x25519.Identity.generate()
    (tmp_path / "key.txt").write_text(str(own))
    home.add_file("secrets.env", "LAB_KEY=very-secret-value\n", 0o600)
    more = f"backups: {{schedule: '@daily', with_secrets: true, encrypt_to: {own.to_public()}}}\n"
    async with scheduled(home, LAB + more) as it:
        await it.schedule.look()
        assert it.names == ["denizen-20261121-120000.zip.age"]
        file = it.denizen.home / "backups" / it.names[0]
        assert "home/secrets.env" in verify_backup(file, tmp_path / "key.txt", lambda _: None).files


async def test_what_cannot_work_is_refused_in_the_configuration(home: Home) -> None:
    for more, told in {
        "schedule: every day": "no cron expression",
        "schedule: '@daily', zone: Mars": "not a time zone",
        "schedule: '@daily', with_secrets: true": "encrypted backups only",
        "schedule: '@daily', encrypt_to: AGE-SECRET-KEY-1": "no public key",
        "schedule: '@daily', keep: 0": "keep",
    }.items():
        assert told in str(home.refuse(f"{LAB}backups: {{{more}}}\n"))


def test_a_failure_is_tried_again_after_six_hours_at_the_latest() -> None:
    from denizen.app.backup_schedule import BackupFailure

    section = BackupsSection(schedule="@daily")
    for tries, pause in ((1, timedelta(minutes=5)), (2, timedelta(minutes=10)), (500, timedelta(hours=6))):
        state = BackupState(home="/", failure=BackupFailure(at=NOON, tries=tries, message="It failed."))
        assert find_due(section, state, CroniterTimes(), NOON) == NOON + pause


def test_a_clock_that_was_ahead_puts_nothing_off() -> None:
    state = BackupState(home="/", good_at=NOON + timedelta(days=400))
    assert find_due(BackupsSection(schedule="@daily"), state, CroniterTimes(), NOON) == NOON


async def test_owners_are_told_where_they_are(home: Home) -> None:
    text = f"{LAB}channels: {{discord: {{owners: ['7'], accounts: {{denizen: {{token: '${{DISCORD_TOKEN}}'}}}}}}}}\n"
    home.add_file("secrets.env", "DISCORD_TOKEN=a-token-of-nobody\n", 0o600)
    async with open_home(home, text) as denizen:
        channels, outbox = denizen.platforms.channels, denizen.services.outbox
        assert not await tell_owners(denizen.runtime, channels, outbox, "The backup failed.", "one")
        platform = MemoryPlatform("discord")
        platform.add_person("7", "Ola")
        channels.add(MemoryChannel(platform, AgentName("denizen")))
        for _ in range(2):
            assert await tell_owners(denizen.runtime, channels, outbox, "The backup failed.", "one")
        async with denizen.services.store.work(write=False) as work:
            [owed] = await work.outbox.list_due(AgentName("denizen"), "discord", limit=10)
        assert owed.content.text == "The backup failed."
    async with open_home(home) as nobody:
        assert await tell_owners(nobody.runtime, nobody.platforms.channels, nobody.services.outbox, "Hello", "two")
