"""The models of a home folder on their pages: what they show, and that changes hold, with comments kept."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from denizen.domain.audit import AuditKind
from denizen.ports.store import AuditSearch
from denizen.testing.model_server import AnswerTokens, FailedAnswer, ModelAnswer, model_server
from tests.app.component_web_fixture import open_components, read_words
from tests.app.home_folder import LAB, Home

pytestmark = pytest.mark.anyio

KEY = "sk-abcdefghijklmnopqrst"
TEXT = f"# Ours, since spring.\n{LAB}"


def at(url: str) -> str:
    """The configuration with a provider at this address, whose key is in `secrets.env`."""
    return TEXT.replace('base_url: "http://127.0.0.1:9/v1"', f'base_url: "{url}/v1", api_key: "${{LAB_KEY}}"')


async def test_the_page_shows_providers_names_and_prices_and_of_a_key_only_that_it_is_set_and_where(home: Home) -> None:
    home.add_file("secrets.env", f"LAB_KEY={KEY}\n", 0o600)
    text = at("http://127.0.0.1:9") + "  overrides:\n    lab/one: {price: {input: 2, output: 8}}\n"
    text = text.replace("balanced: lab/one", "balanced: {model: lab/one, fallbacks: [lab/two]}")
    async with open_components(home, text) as server:
        page = await server.ada.read("/admin/models")
        words = read_words(page)
        assert "set sk-a...qrst LAB_KEY in secrets.env" in words
        assert KEY not in page + await server.ada.read("/admin/models/providers/lab")
        assert "balanced lab/one lab/two" in words
        assert "fast follows from the others lab/one lab/two" in words
        assert "$2 in, $8 out yours" in words
        assert "lab/two none 32,768 not known: it counts as free" in words
        assert "Add a provider" not in words  # who may not change anything is offered nothing
        (member,) = {
            (await server.web.client().get(path, headers={"x-api-key": "key-of-ann"})).status_code
            for path in ("/admin/models", "/admin/models/providers/lab")
        }
        assert member == 403


async def test_a_test_asks_the_model_really_and_shows_time_tokens_and_cost_or_why_not_and_the_remedy(
    home: Home,
) -> None:
    home.add_file("secrets.env", f"LAB_KEY={KEY}\n", 0o600)
    async with model_server() as provider:
        text = at(provider.url) + "  overrides: {lab/one: {price: {input: 100, output: 1000}}}\n"
        async with open_components(home, text) as server:
            provider.script(ModelAnswer(text="OK.", tokens=AnswerTokens(200, 10)), FailedAnswer(401))
            done = read_words((await server.ada.send("/admin/models/test", model="balanced")).text)
            assert "lab/one answers. It took" in done
            assert "200 tokens in and 10 out, and cost $0.03" in done
            failed = await server.ada.send("/admin/models/test", model="lab/one")
            assert failed.status_code >= 400
            assert "key" in read_words(failed.text).lower()
            assert KEY not in failed.text
            unknown = await server.ada.send("/admin/models/test", model="<i>nobody</i>")
            assert (unknown.status_code, "<i>nobody" in unknown.text) == (404, False)
            assert "&lt;i&gt;nobody" in unknown.text
            assert [each.body["model"] for each in provider.requests] == ["one", "one"]


async def test_a_test_counts_in_the_usage_and_budgets_of_whoever_asks_and_is_in_the_audit_log(home: Home) -> None:
    home.add_file("secrets.env", f"LAB_KEY={KEY}\n", 0o600)
    async with model_server() as provider:
        text = at(provider.url) + "  overrides: {lab/one: {price: {input: 1000, output: 1000}}}\n"
        text += 'budgets: {users: {"api_key:ada": {per_day_usd: 0.2}}}\n'
        async with open_components(home, text) as server:
            page = await server.ada.read("/admin/models")
            assert '<input type="hidden" name="model" value="lab/one">' in page
            provider.script(ModelAnswer(text="OK.", tokens=AnswerTokens(180, 10)), *[FailedAnswer(401)])
            assert "and cost $0.19" in read_words((await server.ada.send("/admin/models/test", model="lab/one")).text)
            refused = await server.ada.send("/admin/models/test", model="lab/one")
            told = read_words(refused.text)
            assert (refused.status_code, "Your budget for today is used up." in told) == (429, True)
            assert "Raise the limit under budgets, or wait." in told
            assert len(provider.requests) == 1  # nothing was sent
            assert (await server.olga.send("/admin/models/test", model="lab/one")).status_code >= 400
            store, since = server.denizen.services.store, server.denizen.services.clock.now() - timedelta(days=1)
            async with store.work(write=False) as work:
                entries = await work.audit.search(AuditSearch(kind=AuditKind.MODEL))
                rows = await work.ledger.list_usage(since=since, principal="api_key:ada")
            told_of = [(each.event.actor, each.event.subject, each.event.details["outcome"]) for each in entries]
            assert told_of == [
                ("api_key:olga", "lab/one", "model_key_refused"),
                ("api_key:ada", "lab/one", "budget_exhausted"),
                ("api_key:ada", "lab/one", "answered"),
            ]
            assert entries[-1].event.details["cost_usd"] == "0.19"
            assert [(row.model, row.usage.cost_usd) for row in rows] == [("lab/one", Decimal("0.19"))]


async def test_an_admin_tests_what_the_pages_offer_and_an_owner_any_model(home: Home) -> None:
    home.add_file("secrets.env", f"LAB_KEY={KEY}\n", 0o600)
    async with model_server() as provider, open_components(home, at(provider.url)) as server:
        provider.models = ("served",)
        provider.script(*[ModelAnswer(text="OK.")] * 4)
        for name in ("balanced", "lab/served"):
            assert (await server.ada.send("/admin/models/test", model=name)).status_code == 200
        for name in ("lab/dearest", "builtin/other", "nobody/served"):
            refused = await server.ada.send("/admin/models/test", model=name)
            assert (refused.status_code, "Only owners test models" in refused.text) == (404, True)
        assert (await server.olga.send("/admin/models/test", model="lab/dearest")).status_code == 200
        assert [each.body["model"] for each in provider.requests] == ["one", "served", "dearest"]


async def test_a_person_tests_ten_models_in_ten_minutes_at_most_and_others_are_not_held_up(home: Home) -> None:
    home.add_file("secrets.env", f"LAB_KEY={KEY}\n", 0o600)
    async with model_server() as provider, open_components(home, at(provider.url)) as server:
        provider.script(*[ModelAnswer(text="OK.")] * 21)
        for person in (server.ada, server.olga):
            sent = [await person.send("/admin/models/test", model="balanced") for _ in range(10)]
            assert {each.status_code for each in sent} == {200}
            refused = await person.send("/admin/models/test", model="balanced")
            told = read_words(refused.text)
            assert (refused.status_code, "You have tested models 10 times within 10 minutes." in told) == (429, True)
            assert "Try again in 10 min." in told
        assert len(provider.requests) == 20
        server.web.clock.advance(601)
        assert (await server.ada.send("/admin/models/test", model="balanced")).status_code == 200


async def test_the_models_that_a_provider_serves_are_listed_live_each_with_a_test(home: Home) -> None:
    home.add_file("secrets.env", f"LAB_KEY={KEY}\n", 0o600)
    async with model_server() as provider, open_components(home, at(provider.url)) as server:
        assert "lab/scripted" not in await server.ada.read("/admin/models/providers/lab")  # it waits for nobody
        page = await server.ada.read("/admin/models/providers/lab?list=yes")
        assert 'name="model" value="lab/scripted"' in page
    async with open_components(home, at("http://127.0.0.1:9")) as server:
        page = read_words(await server.ada.read("/admin/models/providers/lab?list=yes"))
        assert "cannot be reached" in page and "Correct the address." in page


async def test_a_provider_is_added_with_its_key_changed_and_removed_and_comments_stay(home: Home) -> None:
    async with open_components(home, TEXT) as server:
        added = await server.olga.send(
            "/admin/models/add-provider",
            name="den",
            kind="openai-compatible",
            base_url="http://127.0.0.1:8/v1",
            key=KEY,
        )
        assert (added.status_code, added.headers["location"]) == (303, "/admin/models/providers/den?done=provider")
        secrets = home.path / "secrets.env"
        assert (secrets.read_text(), secrets.stat().st_mode & 0o777) == (f"DEN_API_KEY={KEY}\n", 0o600)
        assert ("# Ours, since spring." in server.text, KEY in server.text) == (True, False)
        assert server.denizen.settings.models.providers["den"].base_url == "http://127.0.0.1:8/v1"
        changed = await server.olga.send(
            "/admin/models/providers/den",
            kind="openai-compatible",
            base_url="http://127.0.0.1:7/v1",
            key_name="DEN_API_KEY",
        )
        assert changed.status_code == 303
        assert server.denizen.settings.models.providers["den"].base_url == "http://127.0.0.1:7/v1"
        assert server.denizen.settings.secrets.find("DEN_API_KEY") == KEY
        again = await server.olga.send("/admin/models/add-provider", name="den", kind="ollama")
        assert (again.status_code, "There is a provider &#39;den&#39; already." in again.text) == (400, True)
        assert (await server.olga.send("/admin/models/providers/den", remove="yes")).status_code == 303
        assert "den" not in server.denizen.settings.models.providers
        used = await server.olga.send("/admin/models/providers/lab", remove="yes")
        assert used.status_code == 400  # an alias leads there
        assert "lab" in server.denizen.settings.models.providers
        async with server.denizen.services.store.work(write=False) as work:
            entries = await work.audit.search(AuditSearch(kind=AuditKind.SETTINGS))
        assert {each.event.subject for each in entries} == {"denizen.yaml", "secrets.env"}
        assert KEY not in str(entries)


async def test_a_provider_that_cannot_be_used_is_refused_with_what_was_typed_and_its_key_is_not_kept(
    home: Home,
) -> None:
    async with open_components(home, TEXT) as server:
        before = server.text
        refused = await server.olga.send(
            "/admin/models/add-provider", name="den", kind="openai-compatible", model="<b>x</b>", key=KEY
        )
        assert (refused.status_code, "needs base_url" in refused.text) == (400, True)
        assert ("&lt;b&gt;x" in refused.text, KEY in refused.text) == (True, False)
        assert (server.text, (home.path / "secrets.env").exists()) == (before, False)


async def test_a_second_provider_of_a_kind_does_not_take_the_key_of_the_first(home: Home) -> None:
    home.add_file("secrets.env", f"OPENAI_API_KEY={KEY}\n", 0o600)
    text = TEXT.replace("providers: {", 'providers: {openai: {kind: openai, api_key: "${OPENAI_API_KEY}"}, ')
    async with open_components(home, text) as server:
        other = KEY.replace("sk-", "sk-other")
        await server.olga.send("/admin/models/add-provider", name="second", kind="openai", key=other)
        assert server.denizen.settings.secrets.find("OPENAI_API_KEY") == KEY
        assert server.denizen.settings.secrets.find("SECOND_API_KEY") == other


async def test_a_key_that_the_environment_sets_to_something_else_is_refused_instead_of_being_ignored(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_components(home, TEXT) as server:
        monkeypatch.setenv("DEN_API_KEY", "sk-of-the-environment")
        url = "http://127.0.0.1:8/v1"
        refused = await server.olga.send(
            "/admin/models/add-provider", name="den", kind="openai-compatible", base_url=url, key=KEY
        )
        assert (refused.status_code, "DEN_API_KEY is set in the environment" in refused.text) == (409, True)
        assert (server.text, (home.path / "secrets.env").exists()) == (TEXT, False)


async def test_names_fallbacks_the_default_and_prices_are_changed_and_count(home: Home) -> None:
    async with open_components(home, TEXT) as server:
        olga = server.olga
        await olga.send("/admin/models/aliases", name="clever", model="lab/big", fallbacks="lab/two\r\nlab/three")
        (chain,) = [each for each in server.denizen.queries.list_models() if "clever" in each.aliases]
        assert (chain.name, chain.fallbacks) == ("lab/big", ("lab/two", "lab/three"))
        form = await olga.read("/admin/models?edit=clever")
        assert "lab/two\nlab/three</textarea>" in form
        wrong = await olga.send("/admin/models/aliases", name="clever", model="nowhere/big", fallbacks="lab/two")
        assert (wrong.status_code, "nowhere/big" in wrong.text) == (400, True)
        await olga.send("/admin/models/default", model="clever")
        assert server.denizen.runtime.current.agent("denizen").model == "clever"
        in_use = await olga.send("/admin/models/aliases", name="clever", remove="yes")
        assert in_use.status_code == 400
        await olga.send("/admin/models/default", model="balanced")
        await olga.send("/admin/models/aliases", name="clever", remove="yes")
        assert "clever" not in server.text
        await olga.send("/admin/models/prices", model="lab/one", input="2.50", output="10", cached="")
        model = server.denizen.runtime.current.models.get("lab/one")
        assert await model.estimate_cost_usd(1_000_000, 100_000) == Decimal("3.5")
        for price in ("-1", "much", "NaN", ""):
            assert (
                await olga.send("/admin/models/prices", model="lab/one", input=price, output="1")
            ).status_code == 400
        await olga.send("/admin/models/prices", model="lab/one", remove="yes")
        assert "price" not in server.text
        assert server.text.startswith("# Ours, since spring.")


async def test_an_admin_changes_nothing(home: Home) -> None:
    async with open_components(home, TEXT) as server:
        paths = ("default", "aliases", "prices", "add-provider", "providers/lab")
        for path in paths:
            assert (await server.ada.send(f"/admin/models/{path}", model="lab/two", name="x")).status_code == 403
        assert server.text == TEXT
