"""What the doctor says about an account on GitHub."""

from __future__ import annotations

from typing import Any

import pytest

from denizen.adapters.github.check import check_account
from denizen.domain.diagnosis import Diagnosis, Severity
from tests.adapters.github.github_fixture import GitHubFixture

pytestmark = pytest.mark.anyio

HOOK = "https://agents.example.org/api/webhooks/github"


async def check(sim: GitHubFixture, *, has_hook: bool = True, **more: Any) -> tuple[list[str], list[Diagnosis]]:
    """What is right, and what is not."""
    sim.app.hook.url = (sim.app.hook.url or HOOK) if has_hook else ""
    findings = await check_account(sim.settings(**more), sim.clock)
    wrong = [each for each in findings if each.severity is not Severity.OK]
    assert all(each.fix for each in wrong)
    return [each.what for each in findings if each.severity is Severity.OK], wrong


async def test_an_account_that_lacks_nothing_is_described(sim: GitHubFixture) -> None:
    right, wrong = await check(sim, reply_to_new_issues=True)
    assert wrong == []
    assert right == [
        "The credentials belong to the App Denizen (denizen[bot]).",
        "The webhook secret is set.",
        "The App has all permissions and events.",
        f"The App's webhook goes to {HOOK}.",
        "It answers in harbour/boats. New issues are answered, too.",
    ]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"webhook_secret": ""}, "There is no webhook secret"),
        ({"webhook_secret": "short"}, "can be guessed"),
        ({"repositories": ("sea/*",)}, "can read no repository"),
        ({"private_key": ""}, "private key of the GitHub App cannot be used"),
        ({"app_id": "", "token": "ghp_wrong"}, "GitHub refused the credentials"),
        ({"api_url": "http://127.0.0.1:9"}, "could not be reached"),
    ],
)
async def test_what_is_lacking_is_named_with_what_to_do(
    settings: dict[str, Any], says: str, sim: GitHubFixture
) -> None:
    _, wrong = await check(sim, **settings)
    assert says in wrong[0].what


async def test_permissions_events_and_the_webhook_of_the_app_are_looked_at(sim: GitHubFixture) -> None:
    sim.app.permissions = {"issues": "read", "pull_requests": "write", "discussions": "read"}
    sim.app.events = ("issues", "pull_request", "pull_request_review", "pull_request_review_comment")
    sim.app.hook.url = "https://agents.example.org/wrong"
    _, wrong = await check(sim)
    assert [each.what for each in wrong] == [
        "The App may not write in: Issues.",
        "The App is not subscribed to: issue_comment.",
        "Discussions are not answered: the App may not write there, or hears not.",
        "The App's webhook goes to 'https://agents.example.org/wrong'.",
    ]
    assert (await check(sim, has_hook=False))[1][
        -1
    ].what == "The App has no webhook, so only regular scans find new messages."
    sim.app.hook.url, sim.app.hook.content_type = HOOK, "form"
    assert "sends forms" in (await check(sim))[1][-1].what
    sim.app.hook.content_type, sim.app.hook.secret = "json", ""
    assert "no secret on GitHub" in (await check(sim))[1][-1].what


async def test_a_users_token_is_described_by_its_user(sim: GitHubFixture) -> None:
    right, wrong = await check(sim, app_id="", private_key="", token=sim.ana.token)
    assert wrong == []
    assert right == [
        "The credentials belong to the user ana (ana).",
        "The webhook secret is set.",
        "It answers in harbour/boats.",
    ]
