"""Webhooks of each scheme: which are genuine, and which events they tell of."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta

import pytest

from denizen.adapters.webhooks import REPLAY_WINDOW, SchemeName, find_scheme
from denizen.domain.cloud_event import MAX_NESTING
from denizen.domain.errors import InvalidInput
from denizen.ports.webhooks import WebhookRoute
from tests.clock import NOON
from tests.webhook_signature import sign_standard

GITHUB = WebhookRoute(name="hub", scheme=find_scheme(SchemeName.GITHUB), secret="It's a Secret to Everybody")
GITLAB = WebhookRoute(name="lab", scheme=find_scheme(SchemeName.GITLAB), secret="a-token-of-gitlab")
SLACK = WebhookRoute(name="slack", scheme=find_scheme(SchemeName.SLACK), secret="8f742231b10e8888abcd99yyyzzz85a5")
STRIPE = WebhookRoute(name="shop", scheme=find_scheme(SchemeName.STRIPE), secret="whsec_of_the_shop")
STANDARD = WebhookRoute(
    name="site", scheme=find_scheme(SchemeName.STANDARD), secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)
BEARER = WebhookRoute(name="alerts", scheme=find_scheme(SchemeName.BEARER), secret="a-secret-in-a-header")
SLACK_SENT = 1531420618
SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar"
    b"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack."
    b"com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc8"
    b"87a14d10d2c447fce8b6703c"
)
"""The example of Slack's documentation."""
SLACK_SIGNATURE = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"


def is_right(route: WebhookRoute, body: bytes, *, now: datetime = NOON, **headers: str) -> bool:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return route.scheme.is_genuine(route.secret, named, body, now=now)


def sign_stripe(sent: datetime, body: bytes, secret: str = STRIPE.secret) -> str:
    at = int(sent.timestamp())
    return f"t={at},v1={hmac.digest(secret.encode(), f'{at}.'.encode() + body, 'sha256').hex()}"


def test_the_example_of_githubs_documentation_is_genuine_and_a_changed_one_is_not() -> None:
    signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert is_right(GITHUB, b"Hello, World!", x_hub_signature_256=signature)
    assert not is_right(GITHUB, b"Hello, World?", x_hub_signature_256=signature)
    assert not is_right(GITHUB, b"Hello, World!", x_hub_signature_256=signature[7:])
    assert not is_right(GITHUB, b"Hello, World!")


def test_the_example_of_slacks_documentation_is_genuine_for_five_minutes() -> None:
    sent = datetime.fromtimestamp(SLACK_SENT, UTC)

    def check(now: datetime, body: bytes = SLACK_BODY, timestamp: str = str(SLACK_SENT)) -> bool:
        headers = {"x_slack_signature": SLACK_SIGNATURE, "x_slack_request_timestamp": timestamp}
        return is_right(SLACK, body, now=now, **headers)

    assert check(sent) and check(sent + REPLAY_WINDOW) and check(sent - REPLAY_WINDOW)
    assert not check(sent + REPLAY_WINDOW + timedelta(seconds=1))
    assert not check(sent - REPLAY_WINDOW - timedelta(seconds=1))
    assert not check(sent, SLACK_BODY + b"&")
    assert not check(sent, timestamp=f"{SLACK_SENT}0" * 9)


def test_one_of_stripes_signatures_has_to_fit_and_its_time_is_signed_too() -> None:
    body = b'{"type": "invoice.paid"}'
    signature = sign_stripe(NOON, body)
    old = sign_stripe(NOON, body, "the secret before")
    assert is_right(STRIPE, body, stripe_signature=signature)
    assert is_right(STRIPE, body, stripe_signature=f"{old},v0=00,{signature.partition(',')[2]}")
    assert not is_right(STRIPE, body, stripe_signature=old)
    assert not is_right(STRIPE, body, stripe_signature=signature, now=NOON + REPLAY_WINDOW + timedelta(seconds=1))
    later = signature.replace(f"t={int(NOON.timestamp())}", f"t={int(NOON.timestamp()) + 60}")
    assert not is_right(STRIPE, body, stripe_signature=later)
    assert not is_right(STRIPE, body, stripe_signature=f"t={int(NOON.timestamp())}")


def test_the_example_of_standard_webhooks_is_genuine_for_five_minutes() -> None:
    sent = datetime.fromtimestamp(1614265330, UTC)
    signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

    def check(*, now: datetime = sent, body: bytes = b'{"test": 2432232314}', **changed: str) -> bool:
        name = "msg_p5jXN8AQM9LWM0D4loKWxJek"
        headers = {"webhook_id": name, "webhook_timestamp": "1614265330", "webhook_signature": signature} | changed
        return is_right(STANDARD, body, now=now, **headers)

    assert check() and check(now=sent + REPLAY_WINDOW) and check(now=sent - REPLAY_WINDOW)
    assert check(webhook_signature=f"v1,AAAA v1a,xxxx {signature}")
    assert not check(now=sent + REPLAY_WINDOW + timedelta(seconds=1))
    assert not check(body=b'{"test": 2432232315}')
    assert not check(webhook_id="msg_other") and not check(webhook_timestamp="1614265331")
    assert not check(webhook_signature="") and not check(webhook_signature="v1,")


@pytest.mark.parametrize("secret", ["a secret as it stands", "whsec_not base64!", "whsec_"])
def test_a_secret_that_is_no_base64_is_the_key_itself(secret: str) -> None:
    route = WebhookRoute(name="site", scheme=find_scheme(SchemeName.STANDARD), secret=secret)
    headers = sign_standard(secret, b"{}", now=NOON)
    assert route.scheme.is_genuine(secret, headers, b"{}", now=NOON)
    assert not route.scheme.is_genuine(secret, sign_standard(secret, b"{}", now=NOON, key=""), b"{}", now=NOON)


@pytest.mark.proves("TW4")
def test_the_secret_comes_in_a_header_of_its_own_and_never_in_that_of_api_keys() -> None:
    assert is_right(BEARER, b"", x_webhook_token=BEARER.secret)
    assert is_right(BEARER, b"", x_webhook_token=f"Bearer {BEARER.secret}")
    assert is_right(GITLAB, b"{}", x_gitlab_token=GITLAB.secret)
    assert not is_right(BEARER, b"", authorization=f"Bearer {BEARER.secret}")
    assert not is_right(BEARER, b"", x_api_key=BEARER.secret)
    assert not is_right(BEARER, b"", x_gitlab_token=BEARER.secret)
    assert not is_right(GITLAB, b"", x_gitlab_token=f"{GITLAB.secret}x")


@pytest.mark.parametrize("name", SchemeName)
def test_an_empty_secret_fits_nobody(name: SchemeName) -> None:
    scheme = find_scheme(name)
    at = str(int(NOON.timestamp()))
    signature = {
        "x-hub-signature-256": f"sha256={hmac.new(b'', b'', hashlib.sha256).hexdigest()}",
        "x-slack-signature": f"v0={hmac.new(b'', f'v0:{at}:'.encode(), hashlib.sha256).hexdigest()}",
        "x-slack-request-timestamp": at,
        "stripe-signature": sign_stripe(NOON, b"", ""),
        **sign_standard("", b"", now=NOON),
        "x-gitlab-token": "",
        "x-webhook-token": "",
    }
    assert not scheme.is_genuine("", signature, b"", now=NOON)
    assert not scheme.is_genuine("", {}, b"", now=NOON)


def read(route: WebhookRoute, payload: object, **headers: str) -> tuple[str, str, str]:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    told = route.scheme.read(named, body)
    return told.kind, told.subject, told.delivery


@pytest.mark.parametrize("name", ["push", "pull_request", "issues", "release", "workflow_run"])
def test_events_of_github_are_told_apart_by_their_header(name: str) -> None:
    payload = {"repository": {"full_name": "club/site"}}
    told = read(GITHUB, payload, x_github_event=name, x_github_delivery="72d3162e")
    assert told[:2] == (f"github.{name}", "club/site")


def test_a_body_of_github_is_one_delivery_whatever_its_headers_say_which_nobody_signed() -> None:
    payload = {"repository": {"full_name": "club/site"}}
    deliveries = {
        read(GITHUB, payload, x_github_event=event, x_github_delivery=name)[2]
        for event in ("push", "issues")
        for name in ("72d3162e", "another", "")
    }
    assert len(deliveries) == 1
    assert read(GITHUB, payload | {"ref": "main"}, x_github_event="push")[2] not in deliveries


@pytest.mark.parametrize(
    ("kind", "header", "type_"),
    [
        ("push", "Push Hook", "gitlab.push"),
        ("merge_request", "Merge Request Hook", "gitlab.merge_request"),
        ("pipeline", "Pipeline Hook", "gitlab.pipeline"),
        ("issue", "Issue Hook", "gitlab.issue"),
        (None, "Merge Request Hook", "gitlab.merge_request"),
    ],
)
def test_events_of_gitlab_are_told_apart_by_their_kind(kind: str | None, header: str, type_: str) -> None:
    payload = {"object_kind": kind, "project": {"path_with_namespace": "club/site"}}
    told = read(GITLAB, payload, x_gitlab_event=header, idempotency_key="f5e5f430")
    assert told == (type_, "club/site", "f5e5f430")


def test_other_webhooks_tell_their_subject_and_their_delivery() -> None:
    assert read(BEARER, {"a": 1}, x_webhook_id="one") == ("", "", "one")
    assert read(BEARER, {"id": "no delivery"}) == ("", "", "")
    assert read(STRIPE, {"id": "evt_1", "type": "invoice.paid"}) == ("", "invoice.paid", "evt_1")
    assert read(SLACK, {"event_id": "Ev1", "event": {"type": "app_mention"}}) == ("", "app_mention", "Ev1")


def test_a_body_may_be_empty_or_a_list_and_has_to_be_json_that_can_be_kept() -> None:
    assert BEARER.scheme.read({}, b" ").data == {}
    assert BEARER.scheme.read({}, b"[1]").data == {"items": [1]}
    for body in (b"{", b"\xff", b'"\\ud800"', b"[" * 100_000, b"NaN"):
        with pytest.raises(InvalidInput):
            BEARER.scheme.read({}, body)


def nest(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


@pytest.mark.parametrize("levels", [MAX_NESTING + 1, 480, 100_000])
def test_a_body_that_is_nested_too_deeply_is_refused_and_told_so(levels: int) -> None:
    assert BEARER.scheme.read({}, nest(MAX_NESTING)).data
    with pytest.raises(InvalidInput, match="nested too deeply") as refused:
        BEARER.scheme.read({}, nest(levels))
    assert (refused.value.code, "more than 64 " in (refused.value.why or "")) == ("json_nesting", True)
