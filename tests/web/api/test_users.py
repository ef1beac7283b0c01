"""`/api/admin/users`, `/api/admin/invitations` and `/api/admin/api-keys`: who may come in."""

import contextlib

import anyio
import pytest

from denizen.domain.errors import DenizenError
from denizen.domain.principal import RoleName
from denizen.domain.user import User
from tests.web.people import add_user, sign_in
from tests.web_fixture import ADA, ANN, open_web

pytestmark = pytest.mark.anyio


@pytest.mark.proves("S-http-admin-users-get")
async def test_an_admin_lists_the_users_without_their_passwords() -> None:
    async with open_web() as web:
        people = [await add_user(web, "ann"), await add_user(web, "ben", RoleName.ADMIN), await add_user(web, "cleo")]
        async with sign_in(web, people[1]) as admin, sign_in(web, people[2]) as member:
            listed = await admin.client.get("/api/admin/users")
            roles = [(each["name"], each["role"]) for each in listed.json()]
            assert roles == [("Ann", "owner"), ("Ben", "admin"), ("Cleo", "member")]
            assert "argon2" not in listed.text
            one = await admin.client.get(f"/api/admin/users/{people[2].id}")
            assert one.json()["email"] == "cleo@example.org"
            assert (await member.client.get("/api/admin/users")).status_code == 403


@pytest.mark.proves("S-http-admin-users-patch")
async def test_an_admin_changes_the_role_of_somebody_else_but_not_the_own_one() -> None:
    async with open_web() as web:
        ann, ben, cleo = (
            await add_user(web, "ann"),
            await add_user(web, "ben", RoleName.ADMIN),
            await add_user(web, "cleo"),
        )
        async with sign_in(web, ben) as admin, sign_in(web, cleo) as member:
            users = "/api/admin/users"
            assert (await member.client.patch(f"{users}/{ben.id}", json={"role": "member"})).status_code == 403
            assert (await admin.client.patch(f"{users}/{cleo.id}", json={"role": "admin"})).json()["role"] == "admin"
            assert (await member.client.get(users)).status_code == 200
            own = await admin.client.patch(f"{users}/{ben.id}", json={"role": "member"})
            assert (own.status_code, own.json()["error"]["code"]) == (403, "own_account")
            for user, role in ((ann, "member"), (cleo, "owner")):
                refused = await admin.client.patch(f"{users}/{user.id}", json={"role": role})
                assert (refused.status_code, refused.json()["error"]["code"]) == (403, "owner_only")
            assert (await admin.client.patch(f"{users}/{cleo.id}", json={"role": "king"})).status_code == 400
            assert (await admin.client.patch(f"{users}/user_x", json={"role": "member"})).status_code == 404


async def test_an_owner_cannot_demote_oneself_but_another_owner_can() -> None:
    async with open_web() as web:
        ann, ben = await add_user(web, "ann"), await add_user(web, "ben")
        async with sign_in(web, ann) as owner:
            own = await owner.client.patch(f"/api/admin/users/{ann.id}", json={"role": "member"})
            assert own.json()["error"]["code"] == "own_account"
            await owner.client.patch(f"/api/admin/users/{ben.id}", json={"role": "owner"})
        async with sign_in(web, ben) as other:
            body = {"role": "member"}
            assert (await other.client.patch(f"/api/admin/users/{ann.id}", json=body)).status_code == 200


async def test_of_two_owners_that_demote_each_other_at_once_one_stays() -> None:
    async with open_web() as web:
        ann = await add_user(web, "ann")
        ben = await web.users.accounts.change_role(
            ann.principal(ann.role), (await add_user(web, "ben")).id, RoleName.OWNER
        )

        async def demote(actor: User, target: User) -> None:
            with contextlib.suppress(DenizenError):
                await web.users.accounts.change_role(actor.principal(actor.role), target.id, RoleName.MEMBER)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(demote, ann, ben)
            tasks.start_soon(demote, ben, ann)
        roles = [each.role for each in await web.users.accounts.list_users()]
        assert roles.count(RoleName.OWNER) == 1


@pytest.mark.proves("S-http-admin-users-delete")
async def test_an_admin_deletes_somebody_else_but_not_oneself_and_no_owner() -> None:
    async with open_web() as web:
        ann, ben, cleo = (
            await add_user(web, "ann"),
            await add_user(web, "ben", RoleName.ADMIN),
            await add_user(web, "cleo"),
        )
        async with sign_in(web, ben) as admin, sign_in(web, cleo) as member:
            assert (await member.client.delete(f"/api/admin/users/{ben.id}")).status_code == 403
            assert (await admin.client.delete(f"/api/admin/users/{cleo.id}")).status_code == 204
            assert (await member.client.get("/api/account")).status_code == 401
            own = await admin.client.delete(f"/api/admin/users/{ben.id}")
            assert (own.status_code, own.json()["error"]["code"]) == (403, "own_account")
            owner = await admin.client.delete(f"/api/admin/users/{ann.id}")
            assert (owner.status_code, owner.json()["error"]["code"]) == (403, "owner_only")
            assert len((await admin.client.get("/api/admin/users")).json()) == 2


async def test_an_admin_invites_sees_and_withdraws() -> None:
    async with open_web() as web:
        await add_user(web, "ann")
        async with sign_in(web, await add_user(web, "ben", RoleName.ADMIN)) as admin:
            path = "/api/admin/invitations"
            made = (await admin.client.post(path, json={"email": "Dan@example.org"})).json()
            assert made["path"].startswith("/sign-up?invite=")
            [listed] = (await admin.client.get(path)).json()
            assert (listed["email"], listed["role"]) == ("dan@example.org", "member")
            assert made["path"].partition("=")[2] not in (await admin.client.get(path)).text
            assert (await admin.client.post(path, json={"role": "owner"})).status_code == 403
            assert (await admin.client.post(path, json={"email": "ann@example.org"})).status_code == 409
            assert (await admin.client.delete(f"{path}/{listed['id']}")).status_code == 204
            assert (await admin.client.delete(f"{path}/{listed['id']}")).status_code == 404
            assert (await admin.client.get(made["path"])).status_code == 403


@pytest.mark.proves("S-http-admin-api-keys-get", "S-http-admin-api-keys-post", "S-http-admin-api-keys-delete")
async def test_an_admin_lists_creates_and_revokes_keys_whose_text_is_shown_once() -> None:
    async with open_web(keys=[ANN]) as web:
        async with web.client(**{"x-api-key": "key-of-ann"}) as member:
            assert (await member.get("/api/admin/api-keys")).status_code == 403
        web.keys.append(ADA)
        async with web.client(**{"x-api-key": "key-of-ada"}) as admin:
            made = (await admin.post("/api/admin/api-keys", json={"name": "robot", "role": "admin"})).json()
            listed = await admin.get("/api/admin/api-keys")
            found = [(each["name"], each["role"], each["is_configured"]) for each in listed.json()]
            assert found == [("ann", "member", True), ("ada", "admin", True), ("robot", "admin", False)]
            assert not [text for text in (made["key"], "key-of-ann", "key-of-ada") if text in listed.text]
            async with web.client(**{"x-api-key": made["key"]}) as robot:
                assert (await robot.get("/api/admin/users")).status_code == 200
                assert (await admin.delete(f"/api/admin/api-keys/{made['info']['id']}")).status_code == 204
                refused = await robot.get("/api/agents")
                assert (refused.status_code, refused.json()["error"]["code"]) == (401, "credentials_wrong")
            assert (await admin.post("/api/admin/api-keys", json={"name": "king", "role": "owner"})).status_code == 403
            assert (await admin.post("/api/admin/api-keys", json={"name": ""})).status_code == 400


async def test_every_change_is_in_the_audit_log_without_names_and_addresses() -> None:
    async with open_web() as web:
        ann, ben = await add_user(web, "ann"), await add_user(web, "ben")
        actor = ann.principal(ann.role)
        await web.users.accounts.change_role(actor, ben.id, RoleName.ADMIN)
        await web.users.accounts.create_key(actor, "robot")
        await web.users.accounts.delete(actor, ben.id)
        async with web.store.work(write=False) as work:
            entries = await work.audit.list_entries()
        acts = [(each.event.actor, each.event.details.get("act")) for each in entries if each.event.kind == "account"]
        assert acts[-3:] == [(actor.key, "role"), (actor.key, "create key"), (actor.key, "delete")]
        assert not [each for each in entries if "example.org" in str(each) or "Ben" in str(each)]


async def test_invitations_of_somebody_who_is_demoted_end() -> None:
    async with open_web() as web:
        ann, ben = await add_user(web, "ann"), await add_user(web, "ben", RoleName.ADMIN)
        text, _ = await web.users.registration.invite(ben.principal(ben.role), role=RoleName.ADMIN)
        await web.users.accounts.change_role(ann.principal(ann.role), ben.id, RoleName.MEMBER)
        async with web.client() as newcomer:
            assert (await newcomer.get(f"/sign-up?invite={text}")).status_code == 403


async def test_admins_end_no_keys_and_invitations_of_owners() -> None:
    async with open_web() as web:
        owner, ada = await add_user(web, "olga"), await add_user(web, "ada", RoleName.ADMIN)
        acting = owner.principal(owner.role)
        _, key = await web.users.accounts.create_key(acting, "backup", role=RoleName.OWNER)
        _, invitation = await web.users.registration.invite(acting, role=RoleName.OWNER)
        async with sign_in(web, ada) as browser:
            for path in (f"/api/admin/api-keys/{key.id}", f"/api/admin/invitations/{invitation.id}"):
                assert (await browser.client.delete(path)).status_code == 403
        assert [each.id for each in await web.users.accounts.list_keys(None)] == [key.id]
        assert [each.id for each in await web.users.registration.list_invitations()] == [invitation.id]


async def test_keys_for_programs_do_not_outlive_the_rights_of_who_made_them() -> None:
    async with open_web() as web:
        owner, ada = await add_user(web, "olga"), await add_user(web, "ada", RoleName.ADMIN)
        acting = ada.principal(ada.role)
        for name, role in (("ci", RoleName.ADMIN), ("reader", RoleName.MEMBER)):
            await web.users.accounts.create_key(acting, name, role=role)
        await web.users.accounts.change_role(owner.principal(owner.role), ada.id, RoleName.MEMBER)
        assert [each.name for each in await web.users.accounts.list_keys(None)] == ["reader"]
        await web.users.accounts.delete(owner.principal(owner.role), ada.id)
        assert await web.users.accounts.list_keys(None) == []


async def test_a_reset_password_ends_keys_and_links_too() -> None:
    async with open_web() as web:
        owner, ann = await add_user(web, "olga"), await add_user(web, "ann")
        text, _ = await web.users.accounts.create_key(ann.principal(ann.role), "found", user=ann)
        async with web.client(**{"x-api-key": text}) as intruder:
            assert (await intruder.get("/api/account")).status_code == 200
            await web.users.accounts.reset_password(owner.principal(owner.role), ann, "another good password")
            assert (await intruder.get("/api/account")).status_code == 401
        assert await web.users.accounts.list_identities(ann) == []
