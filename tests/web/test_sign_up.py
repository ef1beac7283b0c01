"""How people get accounts, who is the owner, and what an open machine becomes with the first of them."""

import re

import pytest

from denizen.app.users import read_admins
from denizen.domain.principal import RoleName
from denizen.engine.users.credentials import UserPolicy
from denizen.engine.users.registration import Admission, SignUpForm
from denizen.web.http.auth import LOGIN_COOKIE, Exposure
from tests.web.people import OPERATOR, PASSWORD, add_user, open_browser
from tests.web.people import sign_in as sign_in_as
from tests.web_fixture import ADA, ANN, UserRegistration, build_users, make_hello_model, open_web

pytestmark = pytest.mark.anyio

FORM = {"email": "Ann@Example.org", "name": "Ann", "password": PASSWORD}
PUBLIC = Exposure(listens_beyond_loopback=True)


async def test_without_accounts_and_keys_this_machine_stays_open() -> None:
    async with open_web(make_hello_model()) as web, web.client() as client:
        assert (await client.get("/")).status_code == 200
        assert (await client.get("/login")).headers["location"] == "/"
        assert (await client.get("/api/agents")).status_code == 200
        assert "Make the first account" in (await client.get("/settings")).text


@pytest.mark.proves("S-auth-first-user", "S-user-login")
async def test_whoever_is_at_an_open_machine_makes_the_first_account_which_owns_the_place_and_closes_it() -> None:
    async with open_web() as web, open_browser(web) as client:
        assert 'name="password"' in (await client.get("/sign-up")).text
        answer = await client.post("/sign-up", data=FORM)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        account = (await client.get("/api/account")).json()
        assert (account["email"], account["role"]) == ("ann@example.org", "owner")
        assert (await client.get("/")).status_code == 200
        async with web.client() as stranger:
            assert (await stranger.get("/api/agents")).status_code == 401
            assert (await stranger.get("/")).headers["location"] == "/login"
            again = await stranger.post("/sign-up", data=FORM | {"email": "ben@example.org"})
            assert (again.status_code, "needs an invitation" in again.text) == (403, True)


async def test_on_a_public_address_nobody_gets_the_first_account_by_being_quick() -> None:
    async with open_web(exposure=PUBLIC) as web, open_browser(web) as client:
        for answer in (await client.get("/sign-up"), await client.post("/sign-up", data=FORM)):
            assert (answer.status_code, "denizen run" in answer.text) == (403, True)
        for guess in ("x", "", "invite"):
            assert (await client.post("/sign-up", data=FORM | {"invite": guess})).status_code == 403
        assert not await web.users.credentials.any_user()


async def test_open_registration_does_not_open_the_first_account_either() -> None:
    registration = UserRegistration(UserPolicy(is_open=True))
    async with open_web(exposure=PUBLIC, registration=registration) as web, open_browser(web) as client:
        assert (await client.post("/sign-up", data=FORM)).status_code == 403


@pytest.mark.proves("S-auth-first-user")
async def test_the_link_of_the_start_makes_the_first_account_once() -> None:
    async with open_web(exposure=PUBLIC) as web, open_browser(web) as client:
        old, link = [await web.users.registration.make_founder_link() for _ in range(2)]
        assert (await client.post("/sign-up", data=FORM | {"invite": old})).status_code == 403, (
            "a later start replaces it"
        )
        page = (await client.get(f"/sign-up?invite={link}")).text
        assert re.search(r'name="invite" value="([^"]+)"', page)[1] == link  # type: ignore[index]
        assert (await client.post("/sign-up", data=FORM | {"invite": link})).status_code == 303
        assert (await client.get("/api/account")).json()["role"] == "owner"
        assert await web.users.registration.make_founder_link() == ""
        async with open_browser(web) as other:
            again = await other.post("/sign-up", data=FORM | {"email": "ben@example.org", "invite": link})
            assert (again.status_code, "cannot be used" in again.text) == (403, True)


async def test_a_key_of_the_configuration_does_not_open_the_first_account() -> None:
    async with open_web(keys=[ANN]) as web, web.client(**{"x-api-key": "key-of-ann"}) as client:
        assert (await client.post("/sign-up", data=FORM)).status_code == 403


async def test_an_admins_key_cannot_invite_the_owner() -> None:
    async with open_web(keys=[ADA]) as web, web.client(**{"x-api-key": "key-of-ada"}) as client:
        for role in ("owner", "member"):
            answer = await client.post("/api/admin/invitations", json={"role": role})
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "owner_only")


async def test_a_second_process_on_the_same_store_learns_that_somebody_has_an_account() -> None:
    async with open_web() as web:
        other = build_users(web.store, web.clock, UserRegistration())
        assert not await web.users.credentials.any_user()
        await other.registration.sign_up(
            SignUpForm(email=FORM["email"], name="Ann", password=PASSWORD), Admission(at_open_machine=True)
        )
        web.clock.advance(3)
        async with web.client() as client:
            assert (await client.get("/api/agents")).status_code == 401


@pytest.mark.proves("S-user-login")
async def test_an_invitation_makes_one_account_with_its_role_and_for_its_address_only() -> None:
    async with open_web() as web, open_browser(web) as client:
        await add_user(web, "ann")
        text, _ = await web.users.registration.invite(OPERATOR, role=RoleName.ADMIN, email="ben@example.org")
        assert text in (await client.get(f"/sign-up?invite={text}")).text, "the form takes it along"
        wrong = await client.post("/sign-up", data=FORM | {"email": "eve@example.org", "invite": text})
        assert (wrong.status_code, "another e-mail" in wrong.text) == (403, True)
        right = await client.post("/sign-up", data=FORM | {"email": "ben@example.org", "invite": text})
        assert right.status_code == 303
        account = (await client.get("/api/account")).json()
        assert (account["role"], account["is_verified"]) == ("admin", True)


async def test_an_invitation_ends_after_a_week_and_when_it_is_withdrawn() -> None:
    async with open_web() as web, open_browser(web) as client:
        await add_user(web, "ann")
        old, _ = await web.users.registration.invite(OPERATOR, role=RoleName.MEMBER)
        web.clock.advance(8 * 24 * 3600)
        text, invitation = await web.users.registration.invite(OPERATOR, role=RoleName.MEMBER)
        await web.users.registration.withdraw(OPERATOR, invitation.id)
        for each in (old, text):
            assert (await client.get(f"/sign-up?invite={each}")).status_code == 403
            assert (await client.post("/sign-up", data=FORM | {"invite": each})).status_code == 403


@pytest.mark.proves("S-user-login")
async def test_with_open_registration_everybody_becomes_a_member() -> None:
    registration = UserRegistration(UserPolicy(is_open=True))
    async with open_web(registration=registration) as web, open_browser(web) as client:
        await add_user(web, "ann")
        assert "Make an account" in (await client.get("/login")).text
        assert (await client.post("/sign-up", data=FORM | {"email": "ben@example.org"})).status_code == 303
        assert (await client.get("/api/account")).json()["role"] == "member"
        taken = await client.post("/sign-up", data=FORM | {"email": "ANN@example.org"})
        assert taken.status_code == 409


@pytest.mark.proves("S-auth-admin-list")
async def test_who_is_on_the_list_is_an_admin_when_somebody_vouches_for_the_address_and_nobody_claims_it() -> None:
    registration = UserRegistration(UserPolicy(is_open=True, admins=read_admins(["Ben@example.org"])))
    async with open_web(registration=registration) as web, open_browser(web) as client:
        await add_user(web, "ann")
        claimed = await client.post("/sign-up", data=FORM | {"email": "ben@example.org"})
        assert (claimed.status_code, "needs an invitation" in claimed.text) == (403, True)
        ben = await add_user(web, "ben")
        async with sign_in_as(web, ben) as browser:
            assert (await browser.client.get("/api/admin/users")).status_code == 200
            registration.policy = UserPolicy()
            web.clock.advance(3)
            assert (await browser.client.get("/api/admin/users")).status_code == 403


async def test_who_takes_an_address_of_the_list_into_the_profile_is_no_admin() -> None:
    registration = UserRegistration(UserPolicy(admins=read_admins(["boss@example.org"])))
    async with open_web(registration=registration) as web:
        await add_user(web, "ann")
        async with sign_in_as(web, await add_user(web, "eve")) as browser:
            body = {"email": "boss@example.org", "password": PASSWORD}
            assert (await browser.client.patch("/api/account", json=body)).json()["role"] == "member"
            assert (await browser.client.get("/api/admin/users")).status_code == 403


@pytest.mark.parametrize(
    "changed",
    [
        {"email": "nobody"},
        {"email": "a@b@c.org"},
        {"email": "x" * 300 + "@example.org"},
        {"name": " "},
        {"name": "x" * 65},
        {"password": "short"},
        {"password": "aaaaaaaaaaaaaaa"},
        {"password": "x" * 201},
        {"email": "ann.smith@example.org", "password": "ann.smith@example.org"},
    ],
)
async def test_a_form_that_cannot_be_used_comes_back_with_what_was_written_but_the_password(
    changed: dict[str, str],
) -> None:
    async with open_web() as web, open_browser(web) as client:
        answer = await client.post("/sign-up", data=FORM | changed)
        assert (answer.status_code, 'role="alert"' in answer.text) == (400, True)
        assert PASSWORD not in answer.text
        assert LOGIN_COOKIE not in client.cookies
        assert not await web.users.credentials.any_user()


async def test_who_sends_many_forms_has_to_wait() -> None:
    async with open_web(exposure=PUBLIC) as web, open_browser(web) as client:
        codes = {(await client.post("/sign-up", data=FORM)).status_code for _ in range(20)}
        assert codes == {403}
        assert (await client.post("/sign-up", data=FORM)).status_code == 429
