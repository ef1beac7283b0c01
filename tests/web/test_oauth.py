"""Signing in at another site: who gets in, what is linked to whom, and what does not work for an attacker."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from denizen.app.users import read_admins
from denizen.domain.principal import RoleName
from denizen.domain.user import CONFIRMED_FOR
from denizen.engine.users.credentials import UserPolicy
from denizen.web.http.auth import LOGIN_COOKIE, Exposure
from denizen.web.pages.oauth import JOURNEY_COOKIE
from tests.web.oauth_server import OAuthServer, open_oauth_server, read_callback
from tests.web.people import OPERATOR, PASSWORD, add_user, open_browser, sign_in
from tests.web_fixture import UserRegistration, WebFixture, open_web

pytestmark = pytest.mark.anyio


@dataclass
class OAuthFixture:
    web: WebFixture
    site: OAuthServer
    registration: UserRegistration


@asynccontextmanager
async def open_oauth(*, is_open: bool = True, exposure: Exposure | None = None) -> AsyncGenerator[OAuthFixture]:
    registration = UserRegistration(UserPolicy(is_open=is_open))
    async with open_oauth_server() as site, open_web(registration=registration, exposure=exposure) as web:
        registration.providers = {"github": site.github, "discord": site.discord}
        yield OAuthFixture(web, site, registration)


async def leave(browser: httpx2.AsyncClient, path: str = "/login/github") -> str:
    """Goes to the site and signs in there. Returns the address of the way back."""
    begun = await browser.get(path)
    assert begun.status_code == 303, begun.text
    async with httpx2.AsyncClient() as outside:
        return (await outside.get(begun.headers["location"])).headers["location"]


async def go(browser: httpx2.AsyncClient, path: str = "/login/github") -> httpx2.Response:
    """The whole journey, as browsers make it: the way back comes from another site."""
    back = read_callback(await leave(browser, path))
    return await browser.get(back, headers={"sec-fetch-site": "cross-site"})


async def find_account(browser: httpx2.AsyncClient) -> dict[str, object]:
    return (await browser.get("/api/account")).json()


@pytest.mark.proves("S-auth-sign-in")
@pytest.mark.parametrize("site", ["github", "discord"])
async def test_people_sign_up_and_in_again_with_an_account_of_another_site(site: str) -> None:
    async with open_oauth() as fixture:
        await add_user(fixture.web, "owner")
        fixture.site.be("octo", subject=7, email="Octo@example.org")
        async with open_browser(fixture.web) as first, open_browser(fixture.web) as second:
            assert f"sign in with {site}" in (await first.get("/login")).text.lower()
            assert (await go(first, f"/login/{site}")).headers["location"] == "/"
            account = await find_account(first)
            assert (account["email"], account["role"], account["is_verified"]) == ("octo@example.org", "member", True)
            fixture.site.be("renamed", subject=7, email="other@example.org")
            await go(second, f"/login/{site}")
            again = await find_account(second)
            assert again["id"] == account["id"], "the id at the site counts, not its names"
            assert again["identities"][0]["login"] == "renamed"  # type: ignore[index]


@pytest.mark.proves("S-auth-sign-in")
async def test_an_account_of_another_site_needs_an_invitation_as_everybody_does() -> None:
    async with open_oauth(is_open=False) as fixture:
        await add_user(fixture.web, "owner")
        fixture.site.be("octo", email="octo@example.org")
        async with open_browser(fixture.web) as browser:
            refused = await go(browser)
            assert (refused.status_code, "needs an invitation" in refused.text) == (403, True)
            assert LOGIN_COOKIE not in browser.cookies
            text, _ = await fixture.web.users.registration.invite(OPERATOR, role=RoleName.ADMIN)
            page = (await browser.get(f"/sign-up?invite={text}")).text
            assert f"/login/github?invite={text}" in page
            await go(browser, f"/login/github?invite={text}")
            assert (await find_account(browser))["role"] == "admin"


async def test_nobody_gets_the_first_account_of_a_public_address_from_another_site() -> None:
    async with open_oauth(exposure=Exposure(listens_beyond_loopback=True)) as fixture:
        fixture.site.be("octo", email="octo@example.org")
        async with open_browser(fixture.web) as browser:
            refused = await go(browser)
            assert (refused.status_code, "denizen run" in refused.text) == (403, True)
            fixture.registration.policy = UserPolicy(admins=read_admins(["octo"]))
            assert (await go(browser)).status_code == 403
            link = await fixture.web.users.registration.make_founder_link()
            await go(browser, f"/login/github?invite={link}")
            assert (await find_account(browser))["role"] == "owner"


@pytest.mark.proves("S-auth-admin-list")
@pytest.mark.parametrize(
    ("listed", "site", "status"),
    [
        ("Octo", "github", 200),
        ("github:octo", "github", 200),
        ("octo@example.org", "github", 200),
        ("octo@example.org", "discord", 200),
        ("discord:octo", "discord", 200),
        ("octo", "discord", 403),
        ("discord:octo", "github", 403),
        ("other", "github", 403),
    ],
)
async def test_users_on_the_list_are_admins_by_e_mail_or_by_their_name_at_that_site(
    listed: str, site: str, status: int
) -> None:
    async with open_oauth() as fixture:
        await add_user(fixture.web, "owner")
        fixture.registration.policy = UserPolicy(is_open=True, admins=read_admins([listed]))
        fixture.site.be("octo", email="octo@example.org")
        async with open_browser(fixture.web) as browser:
            await go(browser, f"/login/{site}")
            assert (await browser.get("/api/admin/users")).status_code == status


async def test_a_name_on_the_list_that_somebody_else_takes_over_makes_no_admin(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_oauth() as fixture:
        await add_user(fixture.web, "owner")
        fixture.registration.policy = UserPolicy(is_open=True, admins=read_admins(["octo"]))
        fixture.site.be("octo", subject=7, email="octo@example.org")
        async with (
            open_browser(fixture.web) as octo,
            open_browser(fixture.web) as eve,
            open_browser(fixture.web) as new,
        ):
            await go(octo)
            assert (await octo.get("/api/admin/users")).status_code == 200
            fixture.site.be("renamed", subject=7, email="octo@example.org")
            await go(octo)
            fixture.site.be("octo", subject=8, email="eve@example.org")
            await go(eve)
            assert (await eve.get("/api/admin/users")).status_code == 403
            line = next(each.__dict__ for each in caplog.records if "list of admins" in each.getMessage())
            assert (line["admin"], "on the page Users" in line["fix"]) == ("github:octo", True)
            fixture.registration.policy = UserPolicy(admins=read_admins(["octo"]))
            fixture.site.be("octo", subject=9, email="new@example.org")
            assert (await go(new)).status_code == 403, "nor does it replace an invitation"
            fixture.site.be("octo", subject=7, email="octo@example.org")
            await go(octo)
            assert (await octo.get("/api/admin/users")).status_code == 200, "it is still the first one's"


async def test_a_name_that_comes_onto_the_list_belongs_to_who_has_it_then() -> None:
    async with open_oauth() as fixture:
        await add_user(fixture.web, "owner")
        fixture.site.be("octo", subject=7, email="octo@example.org")
        async with open_browser(fixture.web) as octo, open_browser(fixture.web) as eve:
            await go(octo)
            fixture.registration.policy = UserPolicy(is_open=True, admins=read_admins(["octo"]))
            fixture.web.users.credentials.forget()
            assert (await octo.get("/api/admin/users")).status_code == 200
            fixture.site.be("octo", subject=8, email="eve@example.org")
            await go(eve)
            assert (await eve.get("/api/admin/users")).status_code == 403


async def test_who_is_on_the_list_needs_no_invitation() -> None:
    async with open_oauth(is_open=False) as fixture:
        await add_user(fixture.web, "owner")
        fixture.registration.policy = UserPolicy(admins=read_admins(["octo"]))
        fixture.site.be("octo", email="octo@example.org")
        async with open_browser(fixture.web) as browser:
            assert (await go(browser)).status_code == 303
            assert (await browser.get("/api/admin/users")).status_code == 200


# --- which account it is ---------------------------------------------------------------------------------------------


async def test_a_verified_e_mail_leads_to_the_account_that_has_it_verified() -> None:
    async with open_oauth() as fixture:
        await add_user(fixture.web, "owner")
        ann = await add_user(fixture.web, "ann")  # by an invitation for the address
        fixture.site.be("ann-hub", email="ANN@example.org")
        async with open_browser(fixture.web) as browser:
            await go(browser)
            assert (await find_account(browser))["id"] == ann.id


async def test_an_account_that_somebody_made_with_an_address_of_others_is_not_handed_to_them() -> None:
    """Otherwise whoever made it beforehand would share it with its victim."""
    async with open_oauth() as fixture:
        await add_user(fixture.web, "owner")
        async with open_browser(fixture.web) as eve:
            form = {"email": "ann@example.org", "name": "Ann", "password": "the password of eve"}
            assert (await eve.post("/sign-up", data=form)).status_code == 303
        fixture.site.be("ann", email="ann@example.org")
        async with open_browser(fixture.web) as ann:
            refused = await go(ann)
            assert (refused.status_code, "link GitHub in your settings" in refused.text) == (403, True)
            assert LOGIN_COOKIE not in ann.cookies


@pytest.mark.parametrize("site", ["github", "discord"])
async def test_an_e_mail_that_the_site_did_not_verify_counts_for_nothing(site: str) -> None:
    async with open_oauth() as fixture:
        await add_user(fixture.web, "owner")
        fixture.site.be("eve", email="owner@example.org", verified=False)
        async with open_browser(fixture.web) as browser:
            refused = await go(browser, f"/login/{site}")
            assert (refused.status_code, "no verified e-mail" in refused.text) == (403, True)


@pytest.mark.proves("S-user-settings")
async def test_people_link_an_account_of_another_site_see_it_and_unlink_it() -> None:
    async with open_oauth() as fixture:
        ann = await add_user(fixture.web, "ann")
        fixture.site.be("ann-hub", subject=9, email="elsewhere@example.org", verified=False)
        async with sign_in(fixture.web, ann) as browser:
            assert "/login/github?link=1" in (await browser.client.get("/settings")).text
            linked = await go(browser.client, "/login/github?link=1")
            assert (linked.status_code, linked.headers["location"]) == (303, "/settings")
            assert "ann-hub" in (await browser.client.get("/settings")).text
            async with open_browser(fixture.web) as other:
                await go(other)
                assert (await find_account(other))["id"] == ann.id
            await browser.submit("/settings/identities/unlink", provider="github")
            assert (await browser.client.get("/api/account/identities")).json() == []


async def test_an_identity_of_somebody_else_cannot_be_linked() -> None:
    async with open_oauth() as fixture:
        ann, ben = await add_user(fixture.web, "ann"), await add_user(fixture.web, "ben")
        fixture.site.be("hub", subject=9, email="x@example.org")
        async with sign_in(fixture.web, ann) as first, sign_in(fixture.web, ben) as second:
            await go(first.client, "/login/github?link=1")
            refused = await go(second.client, "/login/github?link=1")
            assert (refused.status_code, "belongs to another account" in refused.text) == (409, True)
            assert (await second.client.get("/api/account/identities")).json() == []


async def test_the_last_way_in_stays() -> None:
    async with open_oauth() as fixture:
        await add_user(fixture.web, "owner")
        fixture.site.be("octo", email="octo@example.org")
        async with open_browser(fixture.web) as browser:
            await go(browser)
            user = (await fixture.web.users.accounts.list_users())[1]
        async with sign_in(fixture.web, user) as signed_in:
            refused = await signed_in.client.delete("/api/account/identities/github")
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "last_way_in")


# --- attacks ---------------------------------------------------------------------------------------------------------


async def test_a_code_that_somebody_else_slips_in_signs_nobody_in() -> None:
    """Login CSRF: the attacker's own code, opened in the victim's browser."""
    async with open_oauth() as fixture:
        await add_user(fixture.web, "owner")
        fixture.site.be("eve", email="eve@example.org")
        async with open_browser(fixture.web) as eve, open_browser(fixture.web) as victim:
            slipped = read_callback(await leave(eve))
            refused = await victim.get(slipped)
            assert (refused.status_code, "did not begin here" in refused.text) == (403, True)
            await victim.get("/login/github")  # now the victim is under way too, with another state
            assert (await victim.get(slipped)).status_code == 403
            assert LOGIN_COOKIE not in victim.cookies


async def test_a_code_of_the_attacker_is_not_linked_to_the_account_of_the_victim() -> None:
    async with open_oauth() as fixture:
        ann = await add_user(fixture.web, "ann")
        fixture.site.be("eve", email="eve@example.org")
        async with open_browser(fixture.web) as eve, sign_in(fixture.web, ann) as victim:
            slipped = read_callback(await leave(eve))
            assert (await victim.client.get(slipped)).status_code == 403
            assert (await victim.client.get("/api/account/identities")).json() == []


async def test_linking_begins_on_the_own_page_and_ends_in_the_same_sign_in() -> None:
    async with open_oauth() as fixture:
        ann, ben = await add_user(fixture.web, "ann"), await add_user(fixture.web, "ben")
        fixture.site.be("hub", email="x@example.org")
        async with sign_in(fixture.web, ann) as browser:
            foreign = {"sec-fetch-site": "cross-site"}
            assert (await browser.client.get("/login/github?link=1", headers=foreign)).status_code == 403
            back = read_callback(await leave(browser.client, "/login/github?link=1"))
            async with sign_in(fixture.web, ben) as other:
                browser.client.cookies.set(LOGIN_COOKIE, other.token)
                assert (await browser.client.get(back)).status_code == 403
        assert await fixture.web.users.accounts.list_identities(ben) == []


async def test_linking_asks_for_the_password_unless_the_sign_in_is_of_late() -> None:
    async with open_oauth() as fixture:
        ann, clock = await add_user(fixture.web, "ann"), fixture.web.clock
        fixture.site.be("eve", email="eve@example.org")
        async with sign_in(fixture.web, ann) as browser:
            back = read_callback(await leave(browser.client, "/login/github?link=1"))
            clock.advance(CONFIRMED_FOR.total_seconds() + 1)
            refused = await browser.client.get(back)
            assert (refused.status_code, "that it is you" in refused.text) == (403, True), "however it was begun"
            assert (await browser.client.get("/login/github?link=1")).json()["error"]["code"] == "confirmation_needed"
            page = (await browser.client.get("/settings")).text
            assert ("/login/github" in page, 'action="/settings/confirm"' in page) == (False, True)
            wrong = await browser.submit("/settings/confirm", password="nope")
            assert (wrong.status_code, "not your password" in wrong.text) == (403, True)
            assert await fixture.web.users.accounts.list_identities(ann) == []
            assert (await browser.submit("/settings/confirm", password=PASSWORD)).status_code == 303
            assert "/login/github?link=1" in (await browser.client.get("/settings")).text
            await go(browser.client, "/login/github?link=1")
            assert len(await fixture.web.users.accounts.list_identities(ann)) == 1


async def test_who_has_no_password_signs_in_again_before_the_account_can_be_taken_over() -> None:
    async with open_oauth() as fixture:
        await add_user(fixture.web, "owner")
        fixture.site.be("octo", email="octo@example.org")
        async with open_browser(fixture.web) as first:
            await go(first)
            octo = (await fixture.web.users.accounts.list_users())[1]
        async with sign_in(fixture.web, octo) as browser:
            fixture.web.clock.advance(CONFIRMED_FOR.total_seconds() + 1)
            assert "sign out and in again" in (await browser.client.get("/settings")).text
            assert (await browser.client.get("/login/discord?link=1")).status_code == 403
            for method, path, body in (
                ("PUT", "/api/account/password", {"new": "another good password"}),
                ("POST", "/api/account/api-keys", {"name": "laptop"}),
                ("PATCH", "/api/account", {"email": "eve@example.org"}),
                ("DELETE", "/api/account", {}),
            ):
                refused = await browser.client.request(method, path, json=body)
                assert (refused.status_code, refused.json()["error"]["code"]) == (403, "confirmation_needed"), path
        async with sign_in(fixture.web, octo) as again:
            made = await again.client.put("/api/account/password", json={"new": "another good password"})
            assert made.status_code == 204


async def test_signing_in_at_another_site_makes_a_new_token_whatever_cookie_the_browser_had() -> None:
    async with open_oauth() as fixture:
        await add_user(fixture.web, "owner")
        fixture.site.be("octo", email="octo@example.org")
        async with open_browser(fixture.web) as browser:
            browser.cookies.set(LOGIN_COOKIE, "fixed-by-eve")
            answer = await go(browser)
            assert LOGIN_COOKIE in answer.headers["set-cookie"] and "fixed-by-eve" not in answer.headers["set-cookie"]
        async with open_browser(fixture.web) as eve:
            eve.cookies.set(LOGIN_COOKIE, "fixed-by-eve")
            assert (await eve.get("/api/account")).status_code == 401


async def test_who_is_not_signed_in_links_nothing() -> None:
    async with open_oauth() as fixture:
        await add_user(fixture.web, "owner")
        async with open_browser(fixture.web) as browser:
            assert (await browser.get("/login/github?link=1")).status_code == 403


async def test_the_state_of_one_site_is_none_of_another() -> None:
    async with open_oauth() as fixture:
        await add_user(fixture.web, "owner")
        fixture.site.be("octo", email="octo@example.org")
        async with open_browser(fixture.web) as browser:
            back = read_callback(await leave(browser))
            assert (await browser.get(back.replace("github", "discord"))).status_code == 403


async def test_a_code_works_once_and_the_journey_ends_with_it() -> None:
    async with open_oauth() as fixture:
        await add_user(fixture.web, "owner")
        fixture.site.be("octo", email="octo@example.org")
        async with open_browser(fixture.web) as browser:
            back = read_callback(await leave(browser))
            assert (await browser.get(back)).status_code == 303
            assert JOURNEY_COOKIE not in browser.cookies
            assert (await browser.get(back)).status_code == 403


async def test_a_stolen_code_is_worth_nothing_without_the_verifier() -> None:
    async with open_oauth() as fixture:
        await add_user(fixture.web, "owner")
        fixture.site.be("ann", email="ann@example.org")
        async with open_browser(fixture.web) as victim, open_browser(fixture.web) as eve:
            code = parse_qs(urlsplit(await leave(victim)).query)["code"][0]
            own = parse_qs(urlsplit(await leave(eve)).query)["state"][0]
            refused = await eve.get(f"/login/github/callback?code={code}&state={own}")
            assert (refused.status_code, "did not let you sign in" in refused.text) == (403, True)
            assert LOGIN_COOKIE not in eve.cookies


@pytest.mark.parametrize("target", ["https://evil.example", "//evil.example", "/\\evil.example"])
async def test_the_journey_ends_on_this_server(target: str) -> None:
    async with open_oauth() as fixture:
        await add_user(fixture.web, "owner")
        fixture.site.be("octo", email="octo@example.org")
        async with open_browser(fixture.web) as browser:
            assert (await go(browser, f"/login/github?next={target}")).headers["location"] == "/"
            assert (await go(browser, "/login/github?next=/settings")).headers["location"] == "/settings"


@pytest.mark.parametrize("cookie", ["", "zz", "7b7d", "5b5d", b'{"provider":1}'.hex()])
async def test_a_broken_cookie_of_the_journey_is_refused_with_words(cookie: str) -> None:
    async with open_oauth() as fixture, open_browser(fixture.web) as browser:
        await add_user(fixture.web, "owner")
        browser.cookies.set(JOURNEY_COOKIE, cookie)
        assert (await browser.get("/login/github/callback?code=x&state=")).status_code == 403


async def test_a_site_that_does_not_answer_is_told() -> None:
    async with open_oauth() as fixture, open_browser(fixture.web) as browser:
        await add_user(fixture.web, "owner")
        fixture.site.be("octo", email="octo@example.org")
        fixture.site.is_broken = True
        answer = await go(browser)
        assert (answer.status_code, "does not answer as it should" in answer.text) == (503, True)


@pytest.mark.parametrize("path", ["/login/github", "/login/google", "/login/github/callback"])
async def test_a_site_that_is_not_configured_is_not_there(path: str) -> None:
    async with open_web() as web, web.client() as client:
        assert (await client.get(path)).status_code == 404
