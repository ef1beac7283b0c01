"""Backups: what is in them, what is not, and what a restore checks."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import sqlite3
import stat
import sys
import threading
import zipfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from denizen.adapters.store import open_dialect
from denizen.adapters.store.snapshot import copy_databases
from denizen.app.backups import (
    BackupOptions,
    BackupProgress,
    drop_old_backups,
    list_backups,
    make_backup,
    restore_backup,
    verify_backup,
)
from denizen.domain.errors import Conflict, InvalidInput, NeedsAttention
from tests.app.home_folder import LAB, Home, open_home
from tests.unprivileged import run_unprivileged

pytest_plugins = ["tests.postgres"]
pytestmark = pytest.mark.anyio
NOW = datetime(2026, 11, 29, 6, 0, tzinfo=UTC)


@dataclass
class Told:
    stages: list[str] = field(default_factory=list[str])

    def __call__(self, progress: BackupProgress) -> None:
        self.stages.append(progress.stage)


async def fill(home: Home, text: str = LAB) -> None:
    async with open_home(home, text) as denizen, denizen.services.store.work() as work:
        await work.generations.add(digest="written by the test", source="test", now=NOW)


def read_digests(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as database:
        return [row[0] for row in database.execute("SELECT digest FROM config_generations ORDER BY number")]


async def test_a_backup_is_restored_with_the_data_and_the_files_but_without_secrets(home: Home, tmp_path: Path) -> None:
    home.path.joinpath("agents").mkdir()
    home.add_file("agents/SOUL.md", "kind")
    home.add_file("secrets.env", "LAB_KEY=very-secret-value\n", 0o600)
    home.add_file("models/weights.gguf", "fetched again")
    await fill(home)
    told = Told()
    made = make_backup(home.load(), BackupOptions(), NOW, told)
    assert made.file == home.path / "backups" / "denizen-20261129-060000.zip"
    assert made.file.stat().st_mode & 0o777 == 0o600
    assert "copying the databases" in told.stages
    assert verify_backup(made.file, None, told) == made.manifest

    new = tmp_path / "new"
    restore_backup(made.file, new, None, told)
    assert read_digests(new / "denizen.db") == read_digests(home.path / "denizen.db")
    assert (new / "agents/SOUL.md").read_text() == "kind"
    assert (new / "denizen.yaml").read_text() == LAB
    assert sorted(path.name for path in new.iterdir()) == ["agents", "denizen.db", "denizen.yaml"]
    async with open_home(Home(new)) as denizen, denizen.services.store.work(write=False) as work:
        assert "written by the test" in [each.digest for each in await work.generations.list_generations()]


async def test_secrets_are_in_a_backup_when_they_are_asked_for(home: Home, tmp_path: Path) -> None:
    home.add_file("secrets.env", "LAB_KEY=very-secret-value\n", 0o600)
    await fill(home)
    made = make_backup(home.load(), BackupOptions(with_secrets=True), NOW, Told())
    restore_backup(made.file, tmp_path / "new", None, Told())
    assert (tmp_path / "new" / "secrets.env").read_text() == "LAB_KEY=very-secret-value\n"
    assert (tmp_path / "new" / "secrets.env").stat().st_mode & 0o777 == 0o600


async def test_a_backup_for_a_key_is_read_with_that_key_only(home: Home, tmp_path: Path) -> None:
    await fill(home)
    pyrage: Any = importlib.import_module("pyrage")
    own, other = pyrage.x25519.Identity.generate(), pyrage.x25519.Identity.generate()
    keys = tmp_path / "key.txt", tmp_path / "other.txt"
    for file, identity in zip(keys, (own, other), strict=True):
        file.write_text(f"# a comment\n{identity}\n")
    made = make_backup(home.load(), BackupOptions(recipient=str(own.to_public())), NOW, Told())
    assert made.file.name.endswith(".zip.age")
    assert not zipfile.is_zipfile(made.file)
    keyless = tmp_path / "none.txt"
    keyless.write_text("# nothing\n")
    for identity in (None, keys[1], keyless):
        with pytest.raises(InvalidInput) as caught:
            verify_backup(made.file, identity, Told())
        assert caught.value.code == "backup_key"
    both = tmp_path / "both.txt"
    both.write_text(f"{other}\n{own}\n")
    assert verify_backup(made.file, keys[0], Told()) == verify_backup(made.file, both, Told()) == made.manifest
    assert list(made.file.parent.iterdir()) == [made.file]
    renamed = made.file.rename(tmp_path / "of-last-week")
    assert verify_backup(renamed, keys[0], Told()) == made.manifest
    renamed.write_bytes(renamed.read_bytes()[:-20])
    with pytest.raises(NeedsAttention, match="damaged"):
        verify_backup(renamed, keys[0], Told())
    with pytest.raises(InvalidInput, match="no public key"):
        make_backup(home.load(), BackupOptions(target=tmp_path / "x.zip", recipient="age1nonsense"), NOW, Told())
    assert not (tmp_path / "x.zip").exists()


@pytest.mark.parametrize("beside", ["..", ".", "disk"])
async def test_all_files_are_in_a_backup_wherever_it_is_written_and_no_other_backup(home: Home, beside: str) -> None:
    home.add_file("agents/SOUL.md", "kind")
    home.add_file("photos.zip", "no archive")
    home.add_file("secrets.env~", "KEY=very-secret")
    await fill(home)
    for name in ("a.zip", "b.zip"):
        made = make_backup(home.load(), BackupOptions(target=(home.path / beside / name).resolve()), NOW, Told())
        inside = {each for each in made.manifest.files if each.startswith("home/")}
        assert inside == {"home/denizen.yaml", "home/agents/SOUL.md", "home/photos.zip"}


async def test_links_within_the_home_stay_links_and_others_bring_what_they_lead_to(
    home: Home, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home.add_file("agents/SOUL.md", "kind")
    elsewhere = tmp_path_factory.mktemp("dotfiles")
    (elsewhere / "about.md").write_text("of elsewhere")
    (elsewhere / "keys").write_text("KEY=very-secret")
    (home.path / "workbench").mkdir()
    for name, target in {
        "workbench/about.md": elsewhere / "about.md",
        "workbench/soul.md": home.path / "agents/SOUL.md",
        "workbench/agents": Path("../agents"),
        "workbench/dotfiles": elsewhere,
        "workbench/gone.md": elsewhere / "gone",
        "secrets.env": elsewhere / "keys",
    }.items():
        (home.path / name).symlink_to(target)
    await fill(home)
    made = make_backup(home.load(), BackupOptions(), NOW, Told())
    left_out = made.manifest.left_out
    assert sorted(left_out) == ["secrets.env", "workbench/dotfiles", "workbench/gone.md"]
    assert left_out["secrets.env"] == "a secret"
    new = tmp_path / "new"
    restore_backup(made.file, new, None, Told())
    assert (new / "workbench/about.md").read_text() == "of elsewhere"
    assert not (new / "workbench/about.md").is_symlink()
    assert (new / "workbench/soul.md").readlink() == Path("../agents/SOUL.md")
    assert (new / "workbench/agents/SOUL.md").read_text() == "kind"


async def test_a_file_that_cannot_be_read_fails_the_backup_and_is_named(home: Home) -> None:
    await fill(home)
    home.add_file("agents/locked/SOUL.md", "kind")
    os.mkfifo(home.path / "agents" / "pipe")
    settings = home.load()

    async def main() -> None:
        for name, mode in (("agents/locked/SOUL.md", 0o600), ("agents/locked", 0o700)):
            (home.path / name).chmod(0)
            with pytest.raises(NeedsAttention, match=f"{name} cannot be"):
                make_backup(settings, BackupOptions(), NOW, Told())
            (home.path / name).chmod(mode)
        made = make_backup(settings, BackupOptions(), NOW, Told())
        assert made.manifest.left_out == {"agents/pipe": "no file"}

    run_unprivileged(main)


async def test_what_vanishes_meanwhile_is_not_in_the_backup(home: Home, tmp_path: Path) -> None:
    await fill(home)
    for number in range(5):
        home.add_file(f"uploads/{number}", "soon gone")

    def remove(progress: BackupProgress) -> None:
        if progress.stage == "writing the file":
            for number in range(1, 5):
                (home.path / f"uploads/{number}").unlink(missing_ok=True)

    made = make_backup(home.load(), BackupOptions(), NOW, remove)
    restore_backup(made.file, tmp_path / "new", None, Told())
    assert not (tmp_path / "new" / "uploads/4").exists()


async def test_another_database_in_use_is_copied_with_what_was_committed_last(home: Home, tmp_path: Path) -> None:
    await fill(home)
    home.add_file("agents/x/plain.db-journal", "no database")
    with closing(sqlite3.connect(home.path / "agents/x/notes.db")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE notes (text)")
        database.commit()
        database.execute("INSERT INTO notes VALUES ('last')")
        database.commit()
        made = make_backup(home.load(), BackupOptions(), NOW, Told())
    inside = {each for each in made.manifest.files if each.startswith("home/agents/x")}
    assert inside == {"home/agents/x/notes.db", "home/agents/x/plain.db-journal"}
    restore_backup(made.file, tmp_path / "new", None, Told())
    with closing(sqlite3.connect(tmp_path / "new" / "agents/x/notes.db")) as database:
        assert database.execute("SELECT text FROM notes").fetchall() == [("last",)]


async def test_the_store_is_in_a_backup_once_wherever_it_is_and_files_of_the_process_are_not(home: Home) -> None:
    (home.path / "data").mkdir()
    await fill(home, f"{LAB}store: {{url: 'sqlite:///{home.path / 'data/own.db'}'}}\n")
    home.add_file("data/own.db-journal", "")
    home.add_file("denizen.db.before-1018", "")
    home.add_file("durable.db-workers/some", "")
    home.add_file("notes.db", "no database, in spite of its name")
    made = make_backup(home.load(), BackupOptions(), NOW, Told())
    assert sorted(made.manifest.files) == ["denizen.db", "home/denizen.yaml", "home/notes.db"]


async def test_a_killed_backup_leaves_nothing_that_counts_and_the_next_one_removes_it(home: Home) -> None:
    await fill(home)
    folder = home.path / "backups"
    code = (
        "import os, sys; from pathlib import Path; from denizen.app.backups import *; "
        "from denizen.cli.home import load_home_settings; from datetime import datetime, UTC; "
        "make_backup(load_home_settings(Path(sys.argv[1])), BackupOptions(), datetime.now(UTC), "
        "lambda told: os.kill(os.getpid(), 9) if told.stage == 'writing the file' else None)"
    )
    killed = await anyio.run_process([sys.executable, "-c", code, str(home.path)], check=False)
    assert killed.returncode == -9
    assert len(list(folder.glob(".denizen-backup-*"))) >= 1
    assert list_backups(folder) == []
    made = make_backup(home.load(), BackupOptions(), NOW, Told())
    assert list(folder.iterdir()) == [made.file]


async def test_a_restore_fills_an_empty_folder_that_is_there_and_removes_what_a_killed_one_left(
    home: Home, tmp_path: Path
) -> None:
    home.add_file("agents/SOUL.md", "kind")
    await fill(home)
    made = make_backup(home.load(), BackupOptions(), NOW, Told())
    left = tmp_path / "new" / ".denizen-backup-left"
    left.mkdir(parents=True)
    (left / "lock").touch()
    before = (tmp_path / "new").stat().st_ino
    restore_backup(made.file, tmp_path / "new", None, Told())
    assert sorted(each.name for each in (tmp_path / "new").iterdir()) == ["agents", "denizen.db", "denizen.yaml"]
    assert (tmp_path / "new").stat().st_ino == before


@pytest.mark.parametrize("place", [0.2, 0.5, 0.9])
async def test_a_damaged_backup_is_refused_and_leaves_nothing_behind(home: Home, tmp_path: Path, place: float) -> None:
    await fill(home)
    made = make_backup(home.load(), BackupOptions(target=tmp_path / "it.zip"), NOW, Told())
    data = bytearray(made.file.read_bytes())
    data[int(len(data) * place)] ^= 0x55
    made.file.write_bytes(data)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(NeedsAttention, match="damaged"):
        restore_backup(made.file, tmp_path / "new", None, Told())
    assert sorted(tmp_path.iterdir()) == before


async def test_damage_at_any_place_is_an_error_that_says_so(home: Home, tmp_path: Path) -> None:
    home.add_file("uploads/noise", "".join(chr(0x20 + each % 95) for each in range(3000)))
    await fill(home)
    made = make_backup(home.load(), BackupOptions(target=tmp_path / "it.zip"), NOW, Told())
    whole = made.file.read_bytes()
    places = [*range(0, len(whole), len(whole) // 40), *range(len(whole) - 60, len(whole), 3)]
    found = 0
    for place in places:
        made.file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:  # a byte that nobody reads, such as of a date, may differ
            assert verify_backup(made.file, None, Told()).tables == made.manifest.tables
        except (NeedsAttention, InvalidInput) as error:
            assert error.code in {"backup_damaged", "backup_foreign", "backup_newer"}
            found += 1
    assert found > 40
    made.file.write_bytes(whole[:-1000])
    with pytest.raises(InvalidInput, match="no backup"):
        verify_backup(made.file, None, Told())


def rewrite(file: Path, change: Callable[[dict[str, Any]], None], more: Mapping[str, bytes] = {}) -> Path:
    """Makes another archive, whose manifest is changed and which holds more entries."""
    new = file.with_name("hostile.zip")
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in old.namelist():
            if name != "manifest.json" and name not in more:
                archive.writestr(name, old.read(name))
        for name, content in more.items():
            archive.writestr(name, content)
        manifest = json.loads(old.read("manifest.json"))
        change(manifest)
        archive.writestr("manifest.json", json.dumps(manifest))
    return new


def claim(name: str, content: bytes = b"evil", **more: Any) -> Callable[[dict[str, Any]], None]:
    entry = {"size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), "mode": 0o600, **more}
    return lambda manifest: manifest["files"].update({name: entry})


def link(*names_and_targets: str) -> Callable[[dict[str, Any]], None]:
    links = dict(zip(names_and_targets[::2], names_and_targets[1::2], strict=True))
    return lambda manifest: manifest.update(links=links)


HOSTILE: list[tuple[Callable[[dict[str, Any]], None], Mapping[str, bytes]]] = [
    (claim("../evil"), {"../evil": b"evil"}),
    (claim("home/../../evil"), {"home/../../evil": b"evil"}),
    (claim("/tmp/evil"), {"/tmp/evil": b"evil"}),
    (claim("evil"), {"evil": b"evil"}),
    (claim("home/agents"), {"home/agents": b"evil"}),
    (claim("home/bomb", b"0"), {"home/bomb": b"0" * 10_000_000}),
    (claim("home/big", size_bytes=1 << 60), {"home/big": b"evil"}),
    (claim("home/less", size_bytes=-5), {"home/less": b"evil"}),
    (claim("home/gone"), {}),
    (link("home/out", "/etc/passwd"), {}),
    (link("home/out", "../../.."), {}),
    (link("home/agents/../out", "SOUL.md"), {}),
    (link("home/agents/SOUL.md", "../denizen.yaml"), {}),
    (link("home/circle", "circle"), {}),
    (link("out", "home/denizen.yaml"), {}),
    (link("home/a", "agents/x/../../y", "home/agents/x", "../agents", "home/y", "/"), {}),
    (link("home/a", "agents", "home/a/b", "/etc"), {}),
    (lambda manifest: manifest["tables"].update({"../evil.db": {}}), {}),
    (lambda manifest: manifest["tables"].pop("denizen.db"), {}),
    (lambda manifest: manifest["files"].pop("denizen.db"), {}),
    (lambda manifest: manifest.update(files=["denizen.db"]), {}),
    (lambda manifest: manifest.update(tables="denizen.db"), {}),
]


async def test_a_hostile_archive_is_refused_and_leaves_nothing_behind(home: Home, tmp_path: Path) -> None:
    home.add_file("agents/SOUL.md", "kind")
    await fill(home)
    made = make_backup(home.load(), BackupOptions(target=tmp_path / "it.zip"), NOW, Told())
    for change, more in HOSTILE:
        hostile = rewrite(made.file, change, more)
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises((NeedsAttention, InvalidInput)) as caught:
            restore_backup(hostile, tmp_path / "new", None, Told())
        assert caught.value.code in {"backup_damaged", "backup_foreign", "backup_disk"}
        with pytest.raises(type(caught.value), match=re.escape(caught.value.message)):
            verify_backup(hostile, None, Told())
        assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/tmp/evil").exists()


async def test_a_mode_of_the_archive_opens_a_file_to_nobody_but_its_owner_and_sets_no_user(
    home: Home, tmp_path: Path
) -> None:
    await fill(home)
    made = make_backup(home.load(), BackupOptions(target=tmp_path / "it.zip"), NOW, Told())
    odd = rewrite(made.file, claim("home/odd", mode=0o104000), {"home/odd": b"evil"})
    restore_backup(odd, tmp_path / "new", None, Told())
    assert stat.S_IMODE((tmp_path / "new" / "odd").stat().st_mode) == 0o600


async def test_a_restore_never_overwrites_and_never_takes_a_foreign_file(home: Home, tmp_path: Path) -> None:
    await fill(home)
    made = make_backup(home.load(), BackupOptions(), NOW, Told())
    with pytest.raises(Conflict):
        restore_backup(made.file, home.path, None, Told())
    with pytest.raises(Conflict):
        make_backup(home.load(), BackupOptions(target=made.file), NOW, Told())
    into = make_backup(home.load(), BackupOptions(target=tmp_path), NOW, Told())
    assert into.file == tmp_path / made.file.name
    foreign = tmp_path / "photos.zip"
    with zipfile.ZipFile(foreign, "w") as archive:
        archive.writestr("cat.txt", "meow")
    with pytest.raises(InvalidInput, match="no backup"):
        restore_backup(foreign, tmp_path / "new", None, Told())


async def test_a_restored_home_does_not_write_into_the_old_database(home: Home, tmp_path: Path) -> None:
    elsewhere = tmp_path / "data.db"
    await fill(home, f"{LAB}store: {{url: 'sqlite:///{elsewhere}'}}\n")
    made = make_backup(home.load(), BackupOptions(), NOW, Told())
    restore_backup(made.file, tmp_path / "new", None, Told())
    assert Home(tmp_path / "new").load().store_url == f"sqlite:///{tmp_path / 'new' / 'denizen.db'}"
    assert read_digests(tmp_path / "new" / "denizen.db") == read_digests(elsewhere)


@pytest.mark.xdist_group("postgres")
async def test_a_store_on_postgres_is_backed_up_and_restored_to_a_file(
    home: Home, tmp_path: Path, postgres_url: str
) -> None:
    await fill(home, f"{LAB}store: {{url: '{postgres_url}'}}\n")
    made = make_backup(home.load(), BackupOptions(), NOW, Told())
    assert (made.manifest.backend, list(made.manifest.tables)) == ("postgresql", ["denizen.db"])
    restore_backup(made.file, tmp_path / "new", None, Told())
    assert "written by the test" in read_digests(tmp_path / "new" / "denizen.db")
    assert Home(tmp_path / "new").load().store_url.startswith("sqlite")
    dialect = open_dialect(postgres_url)
    with dialect.engine.connect() as connection:
        connection.exec_driver_sql("UPDATE denizen_revision SET version_num = '1001'")
        connection.commit()
    with pytest.raises(NeedsAttention, match="another schema"):
        make_backup(home.load(), BackupOptions(target=tmp_path / "x.zip"), NOW, Told())
    with dialect.engine.connect() as connection:
        assert dialect.find_revision(connection) == "1001"


async def test_only_the_newest_backups_are_kept(home: Home) -> None:
    folder = home.path / "backups"
    folder.mkdir()
    for day in range(1, 6):
        (folder / f"denizen-2026110{day}-000000.zip").touch()
    (folder / "mine.zip").touch()
    (folder / "denizen-old.zip").touch()
    drop_old_backups(folder, 2)
    assert [each.name for each in list_backups(folder)] == [f"denizen-2026110{day}-000000.zip" for day in (5, 4)]
    assert (folder / "mine.zip").exists()
    assert (folder / "denizen-old.zip").exists()


async def test_databases_are_copied_as_they_are_at_one_moment(tmp_path: Path) -> None:
    """A writer adds to one database and then to the other, so that at any moment the first is ahead by one at most."""
    files = tmp_path / "first.db", tmp_path / "second.db"
    for file in files:
        with closing(sqlite3.connect(file)) as database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("CREATE TABLE notes (text)")
            database.executemany("INSERT INTO notes VALUES (?)", [("x" * 1000,)] * 5000)
            database.commit()
    stop, has_written = threading.Event(), threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(files[0])) as first, closing(sqlite3.connect(files[1])) as second:
            while not stop.is_set():
                for database in (first, second):
                    database.execute("INSERT INTO notes VALUES ('later')")
                    database.commit()
                has_written.set()

    writer = threading.Thread(target=write)
    writer.start()
    has_written.wait()
    try:
        copy_databases({file: file.with_suffix(".copy") for file in files}, lambda done, total: None)
    finally:
        stop.set()
        writer.join()
    counts = list[int]()
    for file in files:
        with closing(sqlite3.connect(file.with_suffix(".copy"))) as copy:
            counts.append(copy.execute("SELECT count(*) FROM notes WHERE text = 'later'").fetchone()[0])
    assert counts[0] - counts[1] in {0, 1}
