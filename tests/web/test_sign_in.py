"""Signing in with e-mail and password or a key: what the browser gets, how long it holds, and who cannot misuse it."""

from dataclasses import replace

import anyio
import pytest

from denizen.domain.user import SIGN_IN_IDLE, SIGN_IN_LIFETIME
from denizen.engine.users.accounts import OWN_WRONG_PASSWORDS, WRONG_PASSWORDS, make_browser_token
from denizen.engine.users.credentials import CACHE_S, Browser
from denizen.engine.users.passwords import HashCost, PasswordHasher
from denizen.web.http.auth import LOGIN_COOKIE, make_csrf_token
from denizen.web.pages.login_cookie import BROWSER_COOKIE
from denizen.web.pages.sign_in import WRONG_KEYS
from tests.web.people import OPERATOR, PASSWORD, SignedIn, add_user, open_browser
from tests.web.people import sign_in as sign_in_as
from tests.web_fixture import ANN, CHEAP, UserRegistration, build_users, make_hello_model, open_web

pytestmark = pytest.mark.anyio

ANNS = {"email": "Ann@example.org ", "password": PASSWORD}


@pytest.mark.proves("S-user-login", "S-auth-sign-in")
async def test_people_sign_in_and_out_on_the_page() -> None:
    async with open_web(make_hello_model()) as web, open_browser(web) as client:
        await add_user(web, "ann")
        assert 'name="password"' in (await client.get("/login")).text
        answer = await client.post("/login", data=ANNS)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=lax" in cookie and "secure" not in cookie
        assert "Sign out Ann" in (await client.get("/settings")).text
        token = client.cookies[LOGIN_COOKIE]
        chat = await client.post("/api/chat", json={"message": "hi"}, headers={"x-csrf-token": make_csrf_token(token)})
        assert "Hello." in chat.text
        [turn] = await web.turns()
        assert (turn.principal.kind, turn.principal.name) == ("web_user", "Ann")
        out = await client.post("/logout", data={"csrf_token": make_csrf_token(token)})
        assert out.headers["location"] == "/login"
        client.cookies.set(LOGIN_COOKIE, token)
        assert (await client.get("/api/account")).status_code == 401, "the token itself has ended"


async def test_over_tls_the_cookie_stays_there() -> None:
    async with open_web() as web, open_browser(web) as client:
        await add_user(web, "ann")
        assert "Secure" in (await client.post("https://127.0.0.1/login", data=ANNS)).headers["set-cookie"]


async def test_a_key_of_the_configuration_still_signs_in() -> None:
    async with open_web(keys=[ANN]) as web, open_browser(web) as client:
        await add_user(web, "ben")
        assert (await client.post("/login", data={"key": "key-of-ann"})).status_code == 303
        assert (await client.get("/api/agents")).status_code == 200
        assert (await client.get("/api/account")).json()["error"]["code"] == "account_missing"


async def test_the_key_of_a_person_signs_nobody_in_who_could_then_do_more_than_the_key() -> None:
    async with open_web() as web, open_browser(web) as client:
        ann = await add_user(web, "ann")
        text, _ = await web.users.accounts.create_key(ann.principal(ann.role), "laptop", user=ann)
        assert (await client.post("/login", data={"key": text})).status_code == 401
        assert (await client.get("/api/account", headers={"x-api-key": text})).json()["name"] == "Ann"


# --- who cannot misuse it --------------------------------------------------------------------------------------------


async def test_signing_in_makes_a_new_token_whatever_cookie_the_browser_had() -> None:
    async with open_web() as web, open_browser(web) as client:
        await add_user(web, "ann")
        client.cookies.set(LOGIN_COOKIE, "fixed-by-eve")
        await client.post("/login", data=ANNS)
        first = {cookie.value for cookie in client.cookies.jar if cookie.domain == "127.0.0.1"}
        assert first and "fixed-by-eve" not in first
        async with open_browser(web) as eve:
            eve.cookies.set(LOGIN_COOKIE, "fixed-by-eve")
            assert (await eve.get("/api/account")).status_code == 401


async def test_signing_in_again_ends_the_sign_in_that_the_browser_had() -> None:
    async with open_web() as web:
        ann = await add_user(web, "ann")
        async with sign_in_as(web, ann) as browser:
            again = await browser.client.post("/login", data=ANNS)
            assert again.status_code == 303
            async with open_browser(web) as other:
                other.cookies.set(LOGIN_COOKIE, browser.token)
                assert (await other.get("/api/account")).status_code == 401


@pytest.mark.proves("S-auth-sign-in")
async def test_a_wrong_password_and_an_unknown_address_get_the_same_answer() -> None:
    async with open_web() as web, open_browser(web) as client:
        await add_user(web, "ann")
        wrong = await client.post("/login", data={"email": "ann@example.org", "password": "nope"})
        unknown = await client.post("/login", data={"email": "eve@example.org", "password": "nope"})
        assert (wrong.status_code, unknown.status_code) == (401, 401)
        assert wrong.text.replace("ann@example.org", "") == unknown.text.replace("eve@example.org", "")
        assert LOGIN_COOKIE not in client.cookies


async def test_a_password_is_checked_whether_there_is_an_account_or_not() -> None:
    checked: list[str] = []

    class Watched(PasswordHasher):
        def _matches(self, stored: str, password: str) -> bool:
            checked.append(stored or self._nobody)
            return super()._matches(stored, password)

    hasher = Watched(CHEAP)
    stored = await hasher.hash(PASSWORD)
    assert await hasher.check(stored, PASSWORD)
    assert not await hasher.check("", PASSWORD)
    assert not await hasher.check("", "nobody has this password")
    assert [each.split("$")[3] for each in checked] == [stored.split("$")[3]] * 3, "hashes of the same cost"


async def test_a_hash_of_another_cost_is_renewed_at_the_next_sign_in() -> None:
    async with open_web() as web, open_browser(web) as client:
        ann = await add_user(web, "ann")
        async with web.store.work() as work:
            old = await PasswordHasher(HashCost(passes=2, memory_kib=16)).hash(PASSWORD)
            await work.users.update(replace(ann, password_hash=old))
        assert (await client.post("/login", data=ANNS)).status_code == 303
        renewed = (await web.users.accounts.get(ann.id)).password_hash
        assert "m=8,t=1" in renewed
        assert PASSWORD not in renewed


async def test_who_guesses_passwords_from_one_address_has_to_wait() -> None:
    async with open_web() as web, open_browser(web) as client:
        await add_user(web, "ann")
        for number in range(WRONG_KEYS.calls):
            form = {"email": f"guess-{number}@example.org", "password": "nope"}
            assert (await client.post("/login", data=form)).status_code == 401
        assert (await client.post("/login", data=ANNS)).status_code == 429


async def test_who_guesses_the_password_of_one_account_from_everywhere_has_to_wait() -> None:
    async with open_web() as web:
        await add_user(web, "ann")
        for number in range(WRONG_PASSWORDS.calls):
            assert await web.users.accounts.check_sign_in("ann@example.org", f"guess {number}") is None
        async with open_browser(web) as client:
            locked = await client.post("/login", data=ANNS)
            assert (locked.status_code, "Try again in 60 min" in locked.text) == (429, True)
            nobody = [
                await web.users.accounts.check_sign_in("no@example.org", "x") for _ in range(WRONG_PASSWORDS.calls)
            ]
            assert not any(nobody)
            unknown = await client.post("/login", data={"email": "no@example.org", "password": "x"})
            assert unknown.status_code == 429, "the limit does not tell who has an account"


async def test_a_link_of_the_operator_lets_a_new_browser_sign_in_while_strangers_lock_the_account() -> None:
    async with open_web() as web, open_browser(web) as fresh, open_browser(web) as other:
        ann = await add_user(web, "ann")
        for number in range(WRONG_PASSWORDS.calls):
            await web.users.accounts.check_sign_in("ann@example.org", f"guess {number}")
        token = make_browser_token(ann)
        page = (await fresh.get("/login", params={"email": "ann@example.org", "browser": token})).text
        assert f'<input type="hidden" name="browser" value="{token}">' in page
        assert 'value="ann@example.org"' in page
        assert (await fresh.post("/login", data=ANNS)).status_code == 429
        wrong = await fresh.post("/login", data=ANNS | {"password": "nope", "browser": token})
        assert (wrong.status_code, f'value="{token}"' in wrong.text) == (401, True)  # the link is no password
        assert (await other.post("/login", data=ANNS | {"browser": f"{token}0"})).status_code == 429
        assert (await fresh.post("/login", data=ANNS | {"browser": token})).status_code == 303
        await web.users.accounts.reset_password(OPERATOR, ann, "another good password")
        after = {"email": "ann@example.org", "password": "another good password", "browser": token}
        assert (await other.post("/login", data=after)).status_code == 429  # it ends with the password


async def test_a_browser_that_somebody_signed_in_with_before_is_not_locked_out_by_others() -> None:
    async with open_web() as web, open_browser(web) as known, open_browser(web) as other:
        await add_user(web, "ann")
        await add_user(web, "ben")
        cookies = (await known.post("/login", data=ANNS)).headers.get_list("set-cookie")
        [cookie] = [each for each in cookies if each.startswith(BROWSER_COOKIE)]
        assert all(word in cookie for word in ("HttpOnly", "Path=/login", "SameSite=strict"))
        for number in range(WRONG_PASSWORDS.calls):  # from everywhere, and from the same address, too
            await web.users.accounts.check_sign_in("ann@example.org", f"guess {number}")
        for number in range(WRONG_KEYS.calls):
            await other.post("/login", data={"key": f"guess {number}"})
        assert (await other.post("/login", data=ANNS)).status_code == 429
        assert (await known.post("/login", data=ANNS)).status_code == 303
        assert (await known.post("/login", data=ANNS | {"email": "ben@example.org"})).status_code == 429
        # Who has the browser does not guess on without end, either.
        wrong = ANNS | {"password": "nope"}
        tries = [(await known.post("/login", data=wrong)).status_code for _ in range(OWN_WRONG_PASSWORDS.calls + 1)]
        assert tries == [401] * OWN_WRONG_PASSWORDS.calls + [429]


@pytest.mark.parametrize("token", ["", ".", "x.y", "x." + "0" * 64, "\xe9.\xe9"])
async def test_a_token_of_a_browser_that_was_made_up_is_not_known(token: str) -> None:
    async with open_web() as web:
        await add_user(web, "ann")
        for email in ("ann@example.org", "nobody@example.org"):
            assert not await web.users.accounts.is_known_browser(email, token)


async def test_a_browser_is_not_known_any_more_when_the_password_is_another() -> None:
    async with open_web() as web:
        ann = await add_user(web, "ann")
        token = make_browser_token(ann)
        assert await web.users.accounts.is_known_browser(ann.email, token)
        await web.users.accounts.reset_password(OPERATOR, ann, "another good password")
        assert not await web.users.accounts.is_known_browser(ann.email, token)


@pytest.mark.parametrize(
    ("next_page", "location"),
    [
        ("/settings", "/settings"),
        ("/?chat=1", "/?chat=1"),
        ("https://evil.example", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("\\/evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("/\n/evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ],
)
async def test_the_sign_in_leads_to_pages_of_this_server_only(next_page: str, location: str) -> None:
    async with open_web() as web, open_browser(web) as client:
        await add_user(web, "ann")
        answer = await client.post("/login", data=ANNS | {"next": next_page})
        assert (answer.status_code, answer.headers["location"]) == (303, location)


async def test_a_page_that_needs_a_sign_in_is_shown_after_it() -> None:
    async with open_web() as web, open_browser(web) as client:
        await add_user(web, "ann")
        led = await client.get("/settings")
        assert led.headers["location"] == "/login?next=%2Fsettings"
        assert 'value="/settings"' in (await client.get(led.headers["location"])).text


WRITES = [
    ("POST", "/api/chat", {"message": "hi"}),
    ("PATCH", "/api/account", {"name": "Eve"}),
    ("DELETE", "/api/account", {"password": PASSWORD}),
    ("PUT", "/api/account/password", {"old": PASSWORD, "new": "another password"}),
    ("POST", "/api/account/api-keys", {"name": "eve", "password": PASSWORD}),
    ("DELETE", "/api/account/sessions", {}),
    ("POST", "/api/admin/invitations", {"role": "owner"}),
    ("POST", "/api/admin/api-keys", {"name": "eve", "role": "owner"}),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
async def test_a_cookie_alone_changes_nothing(method: str, path: str, body: dict[str, str]) -> None:
    async with open_web(make_hello_model()) as web, sign_in_as(web, await add_user(web, "ann")) as browser:
        for token in ("", "x" * 64, make_csrf_token("of another sign-in")):
            headers = {"x-csrf-token": token}
            answer = await browser.client.request(method, path, json=body, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "csrf_token")
        assert (await browser.client.request(method, path, json=body)).status_code < 300


@pytest.mark.parametrize("path", ["/logout", "/settings/profile", "/settings/api-keys", "/settings/delete"])
async def test_a_form_without_the_token_of_the_page_changes_nothing(path: str) -> None:
    async with open_web() as web, sign_in_as(web, await add_user(web, "ann")) as browser:
        del browser.client.headers["x-csrf-token"]
        fields = {"name": "Eve", "confirm": "ann@example.org", "password": PASSWORD}
        for token in ({}, {"csrf_token": ""}, {"csrf_token": make_csrf_token("another")}):
            answer = await browser.client.post(path, data=fields | token)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "csrf_token")
        assert (await browser.submit(path, **fields)).status_code in (200, 303)


async def test_the_token_of_a_page_does_not_tell_the_sign_in() -> None:
    async with open_web() as web, sign_in_as(web, await add_user(web, "ann")) as browser:
        page = (await browser.client.get("/settings")).text
        assert browser.csrf_token in page
        assert browser.token not in page


# --- how long it holds -----------------------------------------------------------------------------------------------


async def is_known(browser: SignedIn) -> bool:
    return (await browser.client.get("/api/account")).status_code == 200


async def test_a_sign_in_ends_after_a_week_without_use_and_after_thirty_days_with() -> None:
    async with open_web() as web:
        ann = await add_user(web, "ann")
        async with sign_in_as(web, ann) as browser:
            web.clock.advance(SIGN_IN_IDLE.total_seconds() + 1)
            assert not await is_known(browser)
        async with sign_in_as(web, ann) as browser:
            days = SIGN_IN_LIFETIME.days
            for day in range(days + 1):
                assert await is_known(browser) == (day < days), day
                web.clock.advance(24 * 3600)


async def test_what_is_revoked_elsewhere_ends_within_seconds() -> None:
    async with open_web() as web:
        ann = await add_user(web, "ann")
        elsewhere = build_users(web.store, web.clock, UserRegistration())
        async with sign_in_as(web, ann) as browser:
            assert await is_known(browser)
            await elsewhere.credentials.revoke_others(ann, but="")
            web.clock.advance(CACHE_S)
            assert not await is_known(browser)


async def test_sign_ins_and_keys_are_stored_as_digests() -> None:
    async with open_web() as web:
        ann = await add_user(web, "ann")
        token = await web.users.credentials.open(ann, Browser())
        text, _ = await web.users.accounts.create_key(ann.principal(ann.role), "laptop", user=ann)
        link, _ = await web.users.registration.invite(ann.principal(ann.role), role=ann.role)
        async with web.store.work() as work:
            await work.sign_ins.list_for(ann.id)
        stored = await anyio.Path(web.store.path).read_bytes()
        wal = anyio.Path(f"{web.store.path}-wal")
        stored += await wal.read_bytes() if await wal.exists() else b""
        assert b"ann@example.org" in stored
        for secret in (token, text, link, PASSWORD):
            assert secret.encode() not in stored


async def test_a_store_that_does_not_answer_closes_an_open_machine_and_leaves_health_alone() -> None:
    async with open_web() as web, web.client() as client:
        await web.store.aclose()
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/api/agents")).status_code == 401
