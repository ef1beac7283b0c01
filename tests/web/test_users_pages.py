"""The pages of people and keys, by forms alone: what a browser without scripts sees and sends."""

import html
import re

import pytest

from denizen.domain.principal import RoleName
from tests.web.people import SignedIn, add_user, sign_in
from tests.web_fixture import ANN, open_web

pytestmark = pytest.mark.anyio


async def read_page(browser: SignedIn, path: str) -> str:
    answer = await browser.client.get(path)
    assert answer.status_code == 200
    return html.unescape(answer.text)


@pytest.mark.proves("S-admin-users")
async def test_an_admin_lists_people_changes_roles_and_deletes_them() -> None:
    async with open_web() as web:
        owner, ada = await add_user(web, "olga"), await add_user(web, "ada", RoleName.ADMIN)
        ann, ben = await add_user(web, "ann"), await add_user(web, "ben")
        await web.users.accounts.change_profile(ben, name="Ben <i>")
        async with sign_in(web, ada) as browser:
            listed = await browser.client.get("/admin/users")
            assert "Ben <i>" in html.unescape(listed.text)
            assert "Ben <i>" not in listed.text  # a name is text
            assert "ann@" not in await read_page(browser, "/admin/users?q=ben")
            changed = await browser.submit("/admin/users/role", id=ann.id, role="admin")
            assert changed.headers["location"].startswith("/admin/users?done=")
            assert (await web.users.accounts.get(ann.id)).role is RoleName.ADMIN
            refused = await browser.submit("/admin/users/role", id=ada.id, role="member")
            assert (refused.status_code, 'role="alert"' in refused.text) == (403, True)
            assert (await browser.submit("/admin/users/delete", id=ada.id)).status_code == 403
            await browser.submit("/admin/users/delete", id=ben.id)
            assert [each.id for each in await web.users.accounts.list_users()] == [owner.id, ada.id, ann.id]


async def test_an_invitation_is_shown_once_and_withdrawn() -> None:
    async with open_web() as web:
        ada = await add_user(web, "ada", RoleName.ADMIN)
        async with sign_in(web, ada) as browser:
            made = await browser.submit("/admin/users/invite", role="member", email="new@example.org")
            found = re.search(r"http://\S+/sign-up\?invite=[\w-]+", html.unescape(made.text))
            assert found is not None
            async with web.client() as stranger:
                assert (await stranger.get(found[0])).status_code == 200
            page = await read_page(browser, "/admin/users")
            assert "new@example.org" in page and found[0] not in page
            [invitation] = await web.users.registration.list_invitations()
            await browser.submit("/admin/users/withdraw", id=invitation.id)
            assert await web.users.registration.list_invitations() == []


@pytest.mark.proves("S-admin-api-keys")
async def test_an_admin_creates_lists_and_revokes_keys() -> None:
    async with open_web(keys=[ANN]) as web:
        ada = await add_user(web, "ada", RoleName.ADMIN)
        async with sign_in(web, ada) as browser:
            made = await browser.submit("/admin/keys", name="backup", role="member")
            key = re.search(r"<code>(dz_[\w-]+)</code>", made.text)
            assert key is not None
            page = await read_page(browser, "/admin/keys")
            assert "backup" in page and key[1] not in page and 'action="/admin/keys"' in page
            [form] = re.findall(r'action="/admin/keys/revoke".*?</form>', page, re.DOTALL)
            shown = re.search(r'name="id" value="([^"]+)"', form)
            assert shown is not None
            assert "server.api_keys" in page  # of Ann's, which stands in the configuration
            async with web.client(**{"x-api-key": key[1]}) as program:
                assert (await program.get("/api/agents")).status_code == 200
                await browser.submit("/admin/keys/revoke", id=shown[1])
                assert (await program.get("/api/agents")).status_code == 401
            assert "keys/revoke" not in await read_page(browser, "/admin/keys")
            assert (await browser.submit("/admin/keys", name="", role="member")).status_code == 400


async def test_members_see_and_change_nothing_of_it() -> None:
    async with open_web() as web:
        await add_user(web, "olga")
        ann = await add_user(web, "ann")
        async with sign_in(web, ann) as browser:
            for path in ("/admin/users", "/admin/keys"):
                assert (await browser.client.get(path)).status_code == 403
            for path in ("/admin/users/role", "/admin/users/delete", "/admin/users/invite", "/admin/keys"):
                assert (await browser.submit(path, id=ann.id, role="owner", name="x")).status_code == 403
        assert (await web.users.accounts.get(ann.id)).role is RoleName.MEMBER
