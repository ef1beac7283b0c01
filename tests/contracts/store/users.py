"""The contract of people with accounts: users, sign-ins, identities, keys, invitations, and all data of a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, cast

import anyio
import pytest
import sqlalchemy as sa

from denizen.adapters.store.columns import (
    EnumValue,
    EscapedText,
    JsonText,
    JsonTuple,
    PlatformId,
    Usd,
    UtcTime,
    metadata,
)
from denizen.adapters.store.database import SqlUnitOfWork
from denizen.adapters.store.personal_data import IMPERSONAL, MENTIONED, OWNED
from denizen.domain.handover import HANDOVER_KEY
from denizen.domain.principal import RoleName
from denizen.domain.user import Invitation, LinkedIdentity, SignIn, User, UserKey
from denizen.ports.store import Store
from tests.contracts.store.records import NOON, at


def make_user(name: str, role: RoleName = RoleName.MEMBER) -> User:
    return User(id=f"user_{name}", email=f"{name}@example.org", name=name, role=role, created_at=NOON)


def make_sign_in(user: User, number: int) -> SignIn:
    return SignIn(
        id=f"sign_{user.name}_{number}",
        digest=f"digest {user.name} {number}",
        user_id=user.id,
        created_at=NOON,
        seen_at=NOON,
        expires_at=NOON + timedelta(days=number),
        agent="Firefox\x00",
        network="127.0.0.1",
    )


def make_identity(user: User, subject: str) -> LinkedIdentity:
    return LinkedIdentity(provider="github", subject=subject, user_id=user.id, login=f"{user.name}-hub", linked_at=NOON)


def make_key(user: User | None, name: str) -> UserKey:
    return UserKey(
        id=f"key_{name}",
        digest=f"digest {name}",
        name=name,
        user_id=user.id if user else "",
        role=RoleName.ADMIN,
        created_by="local:local",
        created_at=NOON,
    )


def make_invitation(name: str, by: str = "web_user:user_ann") -> Invitation:
    return Invitation(
        id=f"inv_{name}",
        digest=f"digest {name}",
        role=RoleName.ADMIN,
        email="",
        created_by=by,
        created_at=NOON,
        expires_at=at(24),
    )


ANN, BEN = make_user("ann", RoleName.OWNER), make_user("ben")


@pytest.mark.anyio
@pytest.mark.proves("S-data-accounts")
class UserContract:
    async def test_users_come_back_as_they_were_and_an_e_mail_has_one_account(self, store: Store) -> None:
        odd = replace(ANN, name="A\x00\ud800", password_hash="$argon2id$", is_verified=True)
        async with store.work() as work:
            assert not await work.users.any_exists()
            assert await work.users.add(odd)
            assert await work.users.add(BEN)
            assert not await work.users.add(replace(BEN, id="user_other"))
            assert await work.users.any_exists()
            assert await work.users.find(ANN.id) == odd == await work.users.find_by_email(ANN.email)
            assert await work.users.find("user_x") is None is await work.users.find_by_email("x@example.org")
            assert await work.users.list_users() == [odd, BEN]
            assert await work.users.lock_owners() == [odd]

    async def test_a_user_is_changed_but_not_to_the_e_mail_of_another(self, store: Store) -> None:
        async with store.work() as work:
            await work.users.add(ANN)
            await work.users.add(BEN)
            changed = replace(BEN, email="b@example.org", name="B", role=RoleName.ADMIN, is_verified=True)
            assert await work.users.update(changed)
            assert not await work.users.update(replace(changed, email=ANN.email))
            assert not await work.users.update(make_user("cleo"))
            assert await work.users.find(BEN.id) == changed

    async def test_of_several_who_come_first_at_once_one_founds_the_place(self, store: Store) -> None:
        added: list[bool] = []

        async def come(name: str) -> None:
            async with store.work() as work:
                added.append(await work.users.add(make_user(name), is_founder=True))

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(come, f"u{number}")
        assert added.count(True) == 1

    async def test_a_name_of_an_admin_stays_with_who_held_it_first(self, store: Store) -> None:
        async with store.work() as work:
            assert await work.admin_names.find_holder("github:octo") is None
            assert await work.admin_names.hold("github:octo", "one", now=NOON) == "one"
            assert await work.admin_names.hold("github:octo", "two", now=at(1)) == "one"
            assert await work.admin_names.hold("github:o\x00", "two", now=NOON) == "two"
            assert await work.admin_names.find_holder("github:octo") == "one"

    async def test_removing_a_user_ends_the_sign_ins_identities_and_keys(self, store: Store) -> None:
        async with store.work() as work:
            for user in (ANN, BEN):
                await work.users.add(user)
                await work.sign_ins.add(make_sign_in(user, 1))
                await work.identities.add(make_identity(user, user.id))
                await work.user_keys.add(make_key(user, user.name))
            assert await work.users.remove(ANN.id)
            assert not await work.users.remove(ANN.id)
            assert await work.sign_ins.find("digest ann 1") is None
            assert await work.sign_ins.find("digest ben 1") == make_sign_in(BEN, 1)
            assert await work.identities.find("github", ANN.id) is None
            assert await work.user_keys.list_all() == [make_key(BEN, "ben")]

    async def test_sign_ins_are_found_renewed_and_ended_only_by_their_user(self, store: Store) -> None:
        one, two, other = make_sign_in(ANN, 1), make_sign_in(ANN, 2), make_sign_in(BEN, 3)
        async with store.work() as work:
            await work.users.add(ANN)
            await work.users.add(BEN)
            for each in (one, two, other):
                await work.sign_ins.add(each)
            assert await work.sign_ins.list_for(ANN.id) == [two, one]
            await work.sign_ins.touch(one.id, seen_at=at(1), expires_at=at(2))
            assert await work.sign_ins.find(one.digest) == replace(one, seen_at=at(1), expires_at=at(2))
            assert not await work.sign_ins.remove(one.id, user_id=BEN.id)
            assert await work.sign_ins.remove_all(ANN.id, but=one.id) == 1
            assert await work.sign_ins.remove(one.id, user_id=ANN.id)
            await work.sign_ins.remove_expired(NOON + timedelta(days=2))
            assert await work.sign_ins.find(other.digest) == other
            await work.sign_ins.remove_expired(other.expires_at)
            assert await work.sign_ins.find(other.digest) is None

    async def test_an_identity_belongs_to_one_user_who_has_one_of_a_site(self, store: Store) -> None:
        mine = make_identity(ANN, "1")
        async with store.work() as work:
            await work.users.add(ANN)
            await work.users.add(BEN)
            assert await work.identities.add(mine)
            assert not await work.identities.add(make_identity(BEN, "1"))
            assert not await work.identities.add(make_identity(ANN, "2"))
            await work.identities.rename("github", "1", "new")
            assert await work.identities.find("github", "1") == replace(mine, login="new")
            assert await work.identities.find("discord", "1") is None
            assert await work.identities.list_for(ANN.id) == [replace(mine, login="new")]
            assert not await work.identities.remove("github", user_id=BEN.id)
            assert await work.identities.remove("github", user_id=ANN.id)

    async def test_keys_are_of_a_user_or_of_nobody(self, store: Store) -> None:
        own, robot = make_key(ANN, "own"), make_key(None, "robot")
        async with store.work() as work:
            await work.users.add(ANN)
            await work.user_keys.add(own)
            await work.user_keys.add(robot)
            assert await work.user_keys.find(own.digest) == own
            assert (await work.user_keys.list_for(ANN.id), await work.user_keys.list_for("")) == ([own], [robot])
            await work.user_keys.touch(robot.id, used_at=at(1))
            assert await work.user_keys.list_all() == [own, replace(robot, used_at=at(1))]
            assert not await work.user_keys.remove(robot.id, user_id=ANN.id)
            assert not await work.user_keys.remove(own.id, user_id=BEN.id)
            assert await work.user_keys.remove(robot.id)
            assert await work.user_keys.remove(own.id, user_id=ANN.id)

    @pytest.mark.proves("X-storage")
    async def test_an_invitation_is_used_once_and_in_time(self, store: Store) -> None:
        one, late, kept = make_invitation("one"), make_invitation("late"), make_invitation("kept", by="local:x")
        async with store.work() as work:
            for each in (one, late, kept):
                await work.invitations.add(each)
            assert await work.invitations.use(late.digest, now=at(24)) is None
            assert await work.invitations.use(one.digest, now=at(1)) == replace(one, used_at=at(1))
            assert await work.invitations.use(one.digest, now=at(1)) is None
            await work.invitations.remove_made_by(one.created_by)
            assert [each.id for each in await work.invitations.list_all()] == [kept.id, one.id]
            assert await work.invitations.remove(kept.id)
            assert await work.invitations.find(kept.digest) is None

    async def test_of_several_who_use_an_invitation_at_once_one_gets_it(self, store: Store) -> None:
        used: list[Invitation | None] = []
        async with store.work() as work:
            await work.invitations.add(make_invitation("one"))

        async def use() -> None:
            async with store.work() as work:
                used.append(await work.invitations.use("digest one", now=at(1)))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(use)
        assert len([each for each in used if each]) == 1


# --- all data of a person --------------------------------------------------------------------------------------------

TABLES = [table for table in metadata.sorted_tables if table in OWNED or table in MENTIONED]
FOR_THE_DATABASE = {"position", "words", "is_founder", "digest", "password_hash"}


def make_row(table: sa.Table, who: str, number: int) -> dict[str, Any]:
    """A row of a person in that table, with a mark of the person in each text."""
    key, ids = f"web_user:user_{who}", {"users": f"user_{who}"}
    owners: Mapping[str, object] = {
        "conversations.channel": key,
        "chats.owner": key,
        "turns.principal_kind": "web_user",
        "turns.principal_id": f"user_{who}",
        "spend.kind": "user",
        "budget_scopes.kind": "user",
        "memories.private": True,
        "prompts.segments": [["persona", 0, 1, 1, f"sha of {who}"], ["rules", 0, 1, 1, "sha of all"]],
        "approvals.voices": (key, "web_user:user_other"),
        "users.id": f"user_{who}",
        **{
            f"{each}.principal": key
            for each in ("user_settings", "steps", "side_requests", "usage_reports", "usage_days")
        },
        **{f"{each}.requester": key for each in ("approvals", "grants")},
        **{f"{each}.asker": key for each in ("reminders", "gaps", "proposals", "questions")},
        **{f"{each}.key": key for each in ("spend", "budget_scopes")},
        **{
            f"{each}.turn_id": f"{who} turns.id"
            for each in ("deliveries", "claims", "messages", "approvals", "gaps", "questions")
        },
        "memories.owner": key,
        "memories.told_by": key,
        "memories.superseded_by": "",
        "reservations.user": key,
        "invitations.created_by": key,
        "proposals.proposer": key,
        "proposals.decided_by": key,
        "allowlist.allowed_by": key,
        "events.actor": key,
        "schedule_runs.asked_by": key,
        "feeds.subscriber": key,
        "workflow_runs.started_by": key,
        "workflow_nodes.run": f"{who} workflow_runs.id",
        "messages.conversation_id": f"{who} conversations.id",
        "projects.audience": f"person:{key}",
        **{f"{each}.author": key for each in ("projects", "tasks", "task_comments", "project_documents")},
    }
    row: dict[str, Any] = {}
    for column in table.c:
        name = f"{table.name}.{column.name}"
        parent = next(iter(column.foreign_keys), None)
        if name in owners:
            row[column.name] = owners[name]
        elif parent is not None:
            target = parent.column
            row[column.name] = number if target.name == "position" else ids.get(target.table.name, f"{who} {target}")
        else:
            row[column.name] = make_value(column, who, name, number)
    return row


def make_value(column: sa.Column[Any], who: str, name: str, number: int) -> object:
    kind = column.type
    if isinstance(kind, EnumValue):
        return next(iter(kind.kind))
    if isinstance(kind, JsonTuple):
        return ()
    if isinstance(kind, JsonText):
        return {"text": f"{who} {name}"}
    if isinstance(kind, UtcTime):
        return NOON
    if isinstance(kind, Usd):
        return Decimal(1)
    if isinstance(kind, sa.Boolean):
        return False
    if isinstance(kind, sa.LargeBinary):
        return f"{who} {name}".encode()
    if isinstance(kind, EscapedText | PlatformId | sa.Text):
        return "2026-11-24" if column.name == "day" else f"{who} {name}"
    return number


@pytest.mark.anyio
@pytest.mark.proves("S-data-accounts")
class PersonalDataContract:
    def test_every_table_is_known_as_one_with_or_without_data_of_people(self) -> None:
        groups = (
            {table.name for table in OWNED},
            {table.name for table in MENTIONED} - {"approvals", "projects", "questions"},
            set(IMPERSONAL),
        )
        assert set.union(*groups) == set(metadata.tables)
        assert sum(map(len, groups)) == len(metadata.tables), "each is in one group"
        personal = {"principal", "principal_id", "asker", "owner", "requester", "user_id", "told_by", "email", "user"}
        assert not [name for name in IMPERSONAL if personal & set(metadata.tables[name].c.keys())]

    async def test_all_data_of_a_person_is_exported_and_nothing_of_others_and_no_secrets(self, store: Store) -> None:
        await fill(store)
        async with store.work(write=False) as work:
            exported = await work.personal_data.export("user_zoe")
        assert set(exported) == {table.name for table in TABLES}
        for table in TABLES:
            [row] = exported[table.name]
            assert set(row) == set(table.c.keys()) - FOR_THE_DATABASE, table.name
        assert "kim" not in str(exported)
        assert "password_hash" not in str(exported)

    async def test_the_turns_of_a_person_are_listed(self, store: Store) -> None:
        await fill(store)
        async with store.work(write=False) as work:
            assert await work.personal_data.list_turns("user_zoe") == ["zoe turns.id"]

    async def test_nothing_of_a_person_is_left_after_deletion_and_everything_of_others(self, store: Store) -> None:
        await fill(store)
        async with store.work() as work:
            for who in ("zoe", "kim"):
                key = f"{HANDOVER_KEY}{who} conversations.id"
                await work.user_settings.put(key, "ada", {"agent": "bob"}, now=at(0))
        before = await dump(store)
        async with store.work() as work:
            await work.personal_data.erase("user_zoe")
        after = await dump(store)
        alone = {table.name for table in OWNED} | {"prompt_texts"}
        for name, rows in after.items():
            mark = "zoe" if name in alone else "user_zoe"
            assert not [row for row in rows if mark in row], name
        assert not [
            row for row in after["usage_reports"] if "source_id" in row.replace("kim usage_reports.source_id", "")
        ]
        for name, rows in before.items():
            assert [row for row in rows if "kim" in row] == [row for row in after[name] if "kim" in row], name
        assert [row for row in after["prompt_texts"] if "all" in row], "a text that others have stays"


async def fill(store: Store) -> None:
    """Rows of two people in every table that has rows of people."""
    async with store.work() as work:
        unit = cast("SqlUnitOfWork", work)

        def job(connection: sa.Connection) -> None:
            for sha, text in (("sha of zoe", "zoe"), ("sha of kim", "kim"), ("sha of all", "all")):
                connection.execute(metadata.tables["prompt_texts"].insert(), {"sha256": sha, "text": text})
            for number, who in enumerate(("zoe", "kim"), 1):
                for table in TABLES:
                    connection.execute(table.insert(), make_row(table, who, number))

        await unit.transaction.write(job)


async def dump(store: Store) -> dict[str, list[str]]:
    """All rows of all tables as texts."""
    async with store.work(write=False) as work:
        unit = cast("SqlUnitOfWork", work)

        def job(connection: sa.Connection) -> dict[str, list[str]]:
            return {
                name: sorted(str(tuple(row)) for row in connection.execute(sa.select(table)))
                for name, table in metadata.tables.items()
            }

        return await unit.transaction.read(job)
