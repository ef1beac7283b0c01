"""`/api/account`: people manage their own account, and nobody else's."""

from typing import Any

import pytest

from denizen.domain.principal import RoleName
from denizen.engine.users.credentials import Browser
from tests.web.people import PASSWORD, add_user, sign_in
from tests.web_fixture import ANN, WebFixture, make_hello_model, open_web

pytestmark = pytest.mark.anyio

NEW = "another good password"


@pytest.mark.proves("S-user-api-keys")
async def test_people_make_see_use_and_revoke_their_own_keys() -> None:
    async with open_web(make_hello_model()) as web, sign_in(web, await add_user(web, "ann")) as ann:
        guessed = await ann.client.post("/api/account/api-keys", json={"name": "laptop", "password": "guessed"})
        assert (guessed.status_code, guessed.json()["error"]["code"]) == (403, "password_wrong")
        wanted = {"name": "laptop", "password": PASSWORD}
        made = (await ann.client.post("/api/account/api-keys", json=wanted)).json()
        assert made["key"].startswith("dz_")
        listed = await ann.client.get("/api/account/api-keys")
        assert [key["name"] for key in listed.json()] == ["laptop"]
        assert made["key"] not in listed.text
        for headers in ({"x-api-key": made["key"]}, {"authorization": f"Bearer {made['key']}"}):
            async with web.client(**headers) as program:
                assert (await program.get("/api/account")).json()["name"] == "Ann"
                await program.post("/api/chat", json={"message": "hi"})
        assert {turn.principal.key for turn in await web.turns()} == {ann.user.key}
        assert (await ann.client.get("/api/account/api-keys")).json()[0]["used_at"]
        assert (await ann.client.delete(f"/api/account/api-keys/{made['info']['id']}")).status_code == 204
        async with web.client(**{"x-api-key": made["key"]}) as program:
            answer = await program.get("/api/account")
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "credentials_wrong")


async def test_a_key_has_the_role_that_its_person_has_by_now() -> None:
    async with open_web() as web:
        owner = await add_user(web, "ann")
        ben = await add_user(web, "ben", RoleName.ADMIN)
        text, _ = await web.users.accounts.create_key(ben.principal(ben.role), "x", user=ben)
        async with web.client(**{"x-api-key": text}) as program:
            assert (await program.get("/api/admin/users")).status_code == 200
            await web.users.accounts.change_role(owner.principal(owner.role), ben.id, RoleName.MEMBER)
            assert (await program.get("/api/admin/users")).status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/account/api-keys", {"name": "more", "password": PASSWORD}),
        ("PUT", "/api/account/password", {"old": PASSWORD, "new": NEW}),
        ("PATCH", "/api/account", {"email": "eve@example.org", "password": PASSWORD}),
        ("DELETE", "/api/account", {"password": PASSWORD}),
        ("DELETE", "/api/account/identities/github", {}),
        ("DELETE", "/api/account/sessions", {}),
    ],
)
async def test_whoever_finds_a_key_cannot_take_the_account_over(method: str, path: str, body: dict[str, str]) -> None:
    async with open_web() as web:
        ann = await add_user(web, "ann")
        text, _ = await web.users.accounts.create_key(ann.principal(ann.role), "x", user=ann)
        async with web.client(**{"x-api-key": text}) as program:
            answer = await program.request(method, path, json=body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "sign_in_needed")


async def test_a_key_of_a_program_has_no_account() -> None:
    async with open_web(keys=[ANN]) as web, web.client(**{"x-api-key": "key-of-ann"}) as program:
        for path in ("", "/export", "/sessions", "/api-keys", "/identities"):
            answer = await program.get(f"/api/account{path}")
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "account_missing")


async def test_the_password_is_changed_with_the_old_one_and_ends_all_other_sign_ins() -> None:
    async with open_web() as web:
        user = await add_user(web, "ann")
        async with sign_in(web, user) as here, sign_in(web, user) as there:
            path = "/api/account/password"
            wrong = await here.client.put(path, json={"old": "nope", "new": NEW})
            assert (wrong.status_code, wrong.json()["error"]["code"]) == (403, "password_wrong")
            weak = await here.client.put(path, json={"old": PASSWORD, "new": "short"})
            assert (weak.status_code, weak.json()["error"]["code"]) == (400, "password_invalid")
            assert (await there.client.get("/api/account")).status_code == 200
            assert (await here.client.put(path, json={"old": PASSWORD, "new": NEW})).status_code == 204
            assert (await here.client.get("/api/account")).status_code == 200
            assert (await there.client.get("/api/account")).status_code == 401
        assert await web.users.accounts.check_sign_in(user.email, PASSWORD) is None
        assert await web.users.accounts.check_sign_in(user.email, NEW) is not None


async def test_the_e_mail_is_changed_with_the_password_and_to_one_that_nobody_has() -> None:
    async with open_web() as web:
        await add_user(web, "ann")
        async with sign_in(web, await add_user(web, "ben")) as ben:
            assert (await ben.client.patch("/api/account", json={"email": "b@example.org"})).status_code == 403
            body = {"email": "ANN@example.org", "password": PASSWORD}
            taken = await ben.client.patch("/api/account", json=body)
            assert (taken.status_code, taken.json()["error"]["code"]) == (409, "email_taken")
            changed = (await ben.client.patch("/api/account", json=body | {"email": "B@example.org"})).json()
            assert (changed["email"], changed["is_verified"]) == ("b@example.org", False)
            assert (await ben.client.patch("/api/account", json={"name": "  Ben  B. "})).json()["name"] == "Ben B."
            unknown = await ben.client.patch("/api/account", json={"role": "owner"})
            assert (unknown.status_code, unknown.json()["error"]["code"]) == (400, "field_unknown")


async def test_people_see_and_end_their_sign_ins() -> None:
    async with open_web() as web:
        user = await add_user(web, "ann")
        async with sign_in(web, user, "Firefox") as here, sign_in(web, user, "<b>Phone</b>") as there:
            listed = (await here.client.get("/api/account/sessions")).json()
            assert [(each["agent"], each["is_current"]) for each in listed] == [
                ("<b>Phone</b>", False),
                ("Firefox", True),
            ]
            assert (await here.client.delete(f"/api/account/sessions/{listed[0]['id']}")).status_code == 204
            assert (await there.client.get("/api/account")).status_code == 401
            assert (await here.client.get("/api/account")).status_code == 200


async def test_the_last_owner_stays_while_there_are_others() -> None:
    async with open_web() as web:
        ann, ben = await add_user(web, "ann"), await add_user(web, "ben")
        async with sign_in(web, ann) as browser:
            body = {"password": PASSWORD}
            answer = await browser.client.request("DELETE", "/api/account", json=body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (409, "last_owner")
            await web.users.accounts.delete(ann.principal(ann.role), ben.id)
            assert (await browser.client.request("DELETE", "/api/account", json=body)).status_code == 204
        assert not await web.users.credentials.any_user()


async def list_ids(web: WebFixture, name: str) -> dict[str, str]:
    """Ids of things of a person, by the placeholder of their routes."""
    user = await add_user(web, name, RoleName.MEMBER)
    await web.users.credentials.open(user, Browser())
    _, key = await web.users.accounts.create_key(user.principal(user.role), "x", user=user)
    [sign_in_of] = await web.users.credentials.list_sign_ins(user)
    return {"sign_in": sign_in_of.id, "key": key.id, "user": user.id}


@pytest.mark.proves("S-user-api-keys")
async def test_nobody_reaches_the_sign_ins_and_keys_of_somebody_else() -> None:
    async with open_web() as web:
        await add_user(web, "owner")
        ids = await list_ids(web, "ann")
        async with sign_in(web, await add_user(web, "ben")) as ben:
            for path in (f"sessions/{ids['sign_in']}", f"api-keys/{ids['key']}"):
                theirs = await ben.client.delete(f"/api/account/{path}")
                nobodys = await ben.client.delete(f"/api/account/{path}x")
                assert (theirs.status_code, nobodys.status_code) == (404, 404)
                assert theirs.json() == nobodys.json(), "nobody learns which ids exist"
            for path, fields in (
                ("/settings/sessions/revoke", {"id": ids["sign_in"]}),
                ("/settings/api-keys/revoke", {"id": ids["key"]}),
            ):
                await ben.submit(path, **fields)
            told: list[Any] = [
                (await ben.client.get(f"/api/account/{each}")).text for each in ("", "export", "sessions", "api-keys")
            ]
            assert not [each for each in told if ids["user"] in each or ids["key"] in each]
        ann = await web.users.accounts.get(ids["user"])
        assert len(await web.users.credentials.list_sign_ins(ann)) == 1
        assert len(await web.users.accounts.list_keys(ann)) == 1
