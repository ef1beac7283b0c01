"""Signatures of webhooks."""

import hmac

import pytest

from denizen.adapters.github.events import is_signed, sign

# The example of GitHub's own documentation on validating webhook deliveries.
SECRET, BODY = "It's a Secret to Everybody", b"Hello, World!"
SIGNATURE = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"


@pytest.mark.proves("S33")
def test_the_documented_example_holds() -> None:
    assert sign(SECRET, BODY) == SIGNATURE
    assert is_signed(SECRET, BODY, SIGNATURE)


@pytest.mark.proves("S33")
def test_signatures_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert not is_signed(SECRET, BODY, SIGNATURE), "nothing else decides"
    assert compared == [(SIGNATURE.encode(), SIGNATURE.encode())]


@pytest.mark.parametrize(
    ("secret", "body", "signature"),
    [
        ("another", BODY, SIGNATURE),
        (SECRET, BODY + b" ", SIGNATURE),
        (SECRET, BODY, SIGNATURE.replace("7", "8")),
        (SECRET, BODY, SIGNATURE.removeprefix("sha256=")),
        (SECRET, BODY, ""),
        (SECRET, BODY, "sha256=ü"),
        ("", BODY, sign("", BODY)),
    ],
)
def test_a_wrong_secret_body_or_signature_does_not_count(secret: str, body: bytes, signature: str) -> None:
    assert not is_signed(secret, body, signature)
