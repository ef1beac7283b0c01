"""The settings of a person, by forms alone: what a browser without scripts sees and sends."""

import html
import re

import pytest

from denizen.domain.conversation import own_place
from denizen.domain.ids import AgentName
from denizen.domain.memory import Memory, MemoryOrigin
from tests.contracts.store.records import NOON
from tests.web.people import PASSWORD, SignedIn, add_user, sign_in
from tests.web_fixture import ANN, make_hello_model, open_web

pytestmark = pytest.mark.anyio

NEW = "another good password"


async def read_page(browser: SignedIn) -> str:
    answer = await browser.client.get("/settings")
    assert answer.status_code == 200
    return html.unescape(answer.text)


async def read_ids(browser: SignedIn, path: str) -> list[str]:
    """The ids in the forms of the page that go there."""
    forms = re.findall(rf'action="{path}".*?</form>', await read_page(browser), re.DOTALL)
    return [found[1] for form in forms if (found := re.search(r'name="id" value="([^"]+)"', form))]


@pytest.mark.proves("S-user-settings")
async def test_a_user_changes_profile_and_password_and_ends_other_sign_ins() -> None:
    async with open_web() as web:
        ann = await add_user(web, "ann")
        async with sign_in(web, ann) as here, sign_in(web, ann, "Phone") as there:
            forms = set(re.findall(r'action="/settings/([^"]+)"', await read_page(here)))
            assert forms >= {"profile", "password", "sessions/revoke", "delete"}
            saved = await here.submit("/settings/profile", name="Ann <b>", email=ann.email, password="")
            assert (saved.status_code, saved.headers["location"]) == (303, "/settings")
            assert 'value="Ann <b>"' in await read_page(here)
            refused = await here.submit("/settings/profile", name="Ann", email="new@example.org", password="no")
            assert (refused.status_code, "not your password" in refused.text) == (403, True)
            await here.submit("/settings/profile", name="Ann", email="new@example.org", password=PASSWORD)
            assert 'value="new@example.org"' in await read_page(here)

            assert "Phone" in await read_page(here)
            [other] = await read_ids(here, "/settings/sessions/revoke")
            await here.submit("/settings/sessions/revoke", id=other)
            assert (await there.client.get("/api/account")).status_code == 401
            async with sign_in(web, ann, "Tablet") as third:
                await here.submit("/settings/sessions/revoke")
                assert (await third.client.get("/api/account")).status_code == 401

            weak = await here.submit("/settings/password", old=PASSWORD, new="short")
            assert (weak.status_code, "10 to 200 characters" in weak.text) == (400, True)
            await here.submit("/settings/password", old=PASSWORD, new=NEW)
            assert (await here.client.get("/settings")).status_code == 200
        assert await web.users.accounts.check_sign_in("new@example.org", PASSWORD) is None
        assert await web.users.accounts.check_sign_in("new@example.org", NEW) is not None


@pytest.mark.proves("S-user-api-keys")
async def test_a_user_makes_a_key_that_is_shown_once_and_revokes_it() -> None:
    async with open_web() as web, sign_in(web, await add_user(web, "ann")) as browser:
        refused = await browser.submit("/settings/api-keys", name="laptop", password="guessed")
        assert (refused.status_code, "not your password" in refused.text) == (403, True)
        made = await browser.submit("/settings/api-keys", name="laptop", password=PASSWORD)
        [text] = re.findall(r"dz_[\w-]+", made.text)
        page = await read_page(browser)
        assert ("laptop" in page, text in page) == (True, False)
        async with web.client(**{"x-api-key": text}) as program:
            assert (await program.get("/api/account")).status_code == 200
            [key] = await read_ids(browser, "/settings/api-keys/revoke")
            await browser.submit("/settings/api-keys/revoke", id=key)
            assert (await program.get("/api/account")).status_code == 401
        unnamed = await browser.submit("/settings/api-keys", name=" ", password=PASSWORD)
        assert (unnamed.status_code, 'role="alert"' in unnamed.text) == (400, True)


@pytest.mark.proves("S-user-settings")
async def test_a_user_deletes_the_account_with_e_mail_and_password_and_all_that_was_said_goes() -> None:
    async with open_web(make_hello_model()) as web:
        await add_user(web, "owner")
        ann = await add_user(web, "ann")
        async with sign_in(web, ann) as browser:
            await browser.client.post("/api/chat", json={"message": "my secret wish", "session": "s"})
            told = MemoryOrigin("web", ann.key, private=True)
            asked = {"model": "denizen", "messages": [{"role": "user", "content": "outside of chats"}]}
            await browser.client.post("/v1/chat/completions", json=asked)
            assert len(web.durable.log.runs) >= 2
            memory = Memory(
                "mem_1", AgentName("denizen"), ann.key, "likes secrets", told, told_by=ann.key, created_at=NOON
            )
            async with web.store.work() as work:
                await work.memories.add(memory)
            chat = (await browser.client.get("/api/chats")).json()[0]["id"]
            csv = {"content-type": "text/csv"}
            uploaded = await browser.client.put(f"/api/upload/{chat}?name=a.csv", content=b"a,b\n1,2\n", headers=csv)
            path = uploaded.json()["path"]
            exported = (await browser.client.get("/api/account/export")).json()["tables"]
            assert "my secret wish" in str(exported["messages"])
            assert "likes secrets" in str(exported["memories"])
            assert exported["uploads"] == [{"path": path}]
            assert (await browser.client.get(f"/api/upload/{path}")).status_code == 200
            assert [row["email"] for row in exported["users"]] == ["ann@example.org"]
            for fields in (
                {"confirm": "x@example.org", "password": PASSWORD},
                {"confirm": ann.email, "password": "no"},
            ):
                assert (await browser.submit("/settings/delete", **fields)).status_code in (400, 403)
            gone = await browser.submit("/settings/delete", confirm=ann.email, password=PASSWORD)
            assert (gone.status_code, gone.headers["location"]) == (303, "/login")
            assert (await browser.client.get("/api/account")).status_code == 401
        assert await web.users.accounts.check_sign_in(ann.email, PASSWORD) is None
        assert web.durable.log.runs == {}, "the durable log has no answers of theirs, either"
        assert [each for each in web.uploads.rglob("*") if each.is_file()] == []
        async with web.store.work(write=False) as work:
            assert (
                await work.sessions.list_sessions(own_place("web", ann.key, "s").conversation_id, AgentName("denizen"))
                == []
            )
            everything = await work.personal_data.export(ann.id)
        assert {name: rows for name, rows in everything.items() if rows} == {}


async def test_a_key_of_the_configuration_has_nothing_to_set() -> None:
    async with open_web(keys=[ANN]) as web, web.client() as client:
        await client.post("/login", data={"key": "key-of-ann"})
        page = (await client.get("/settings")).text
        assert "You have no account here" in page
        assert "/sign-up" not in page


async def test_what_people_write_is_shown_as_text() -> None:
    async with open_web() as web:
        ann = await add_user(web, "ann")
        evil = "<img src=x onerror=alert(1)>"
        async with sign_in(web, ann, agent=evil) as browser:
            await browser.submit("/settings/profile", name=evil, email=ann.email)
            await browser.submit("/settings/api-keys", name=evil, password=PASSWORD)
            page = (await browser.client.get("/settings")).text
            assert page.count("&lt;img src=x onerror=alert(1)&gt;") >= 3
            assert "<img src=x" not in page
