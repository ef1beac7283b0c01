"""What discord.py raises, as our errors."""

from __future__ import annotations

import aiohttp
import discord
import pytest

from denizen.adapters.discord.client.errors import translate_error, translate_errors
from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention, NotAllowed, NotFound, Unavailable


class Response:
    """What discord.py reads of an answer."""

    def __init__(self, status: int, retry_after: str = "") -> None:
        self.status = status
        self.reason = "because"
        self.headers = {"Retry-After": retry_after}


def http(status: int, code: int, text: str = "They said so") -> discord.HTTPException:
    kinds = {403: discord.Forbidden, 404: discord.NotFound}
    kind = kinds.get(status, discord.DiscordServerError if status >= 500 else discord.HTTPException)
    return kind(Response(status), {"code": code, "message": text})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("error", "family", "code"),
    [
        (http(403, 50013), NotAllowed, "discord_forbidden"),
        (http(403, 50001), NotAllowed, "discord_forbidden"),
        (http(403, 50007), NotAllowed, "discord_forbidden"),
        (http(400, 50083), NotAllowed, "discord_forbidden"),
        (http(400, 160002), NotAllowed, "discord_forbidden"),
        (http(404, 10003), NotFound, "discord_gone"),
        (http(404, 10008), NotFound, "discord_gone"),
        (http(404, 10062), NotFound, "discord_gone"),
        (http(401, 50027), NotFound, "discord_gone"),
        (http(400, 50035), InvalidInput, "discord_rejected"),
        (http(400, 50006), InvalidInput, "discord_rejected"),
        (http(413, 40005), InvalidInput, "discord_too_large"),
        (http(401, 0), NeedsAttention, "discord_token_refused"),
        (http(503, 0), Unavailable, "discord_server_error"),
        (http(429, 0), Unavailable, "discord_rate_limited"),
        (discord.RateLimited(90.0), Unavailable, "discord_rate_limited"),
        (discord.GatewayNotFound(), Unavailable, "discord_unreachable"),
        (discord.ClientException("odd"), Unavailable, "discord_client"),
        (aiohttp.ClientConnectionError("https://discord.com/webhooks/1/secret"), Unavailable, "discord_unreachable"),
        (TimeoutError(), Unavailable, "discord_unreachable"),
        (OSError(111, "refused"), Unavailable, "discord_unreachable"),
    ],
)
def test_each_error_says_who_acts_next(error: Exception, family: type[DenizenError], code: str) -> None:
    with pytest.raises(family) as caught, translate_errors("post there"):
        raise error
    assert caught.value.code == code
    assert caught.value.why
    assert "secret" not in caught.value.explain()
    assert caught.value.__cause__ is None


def test_a_rate_limit_says_when() -> None:
    answer = discord.HTTPException(Response(429, "7.5"), {"message": "slow down"})  # pyright: ignore[reportArgumentType]
    assert getattr(translate_error(answer, "post"), "retry_after_s", None) == 7.5
    assert getattr(translate_error(discord.RateLimited(90.0), "post"), "retry_after_s", None) == 90.0
    assert getattr(translate_error(http(429, 0), "post"), "retry_after_s", 1.0) is None


def test_missing_permissions_are_named() -> None:
    error = translate_error(http(403, 50013), "post there", missing=lambda: ("Send Messages", "Embed Links"))
    assert error.message == "The account may not post there."
    assert "Missing: Send Messages, Embed Links." in error.why
    assert error.fix.endswith("Send Messages, Embed Links.")


def test_what_comes_from_in_between_is_not_shown() -> None:
    page = discord.HTTPException(Response(400), "<html>a page of a proxy</html>")  # pyright: ignore[reportArgumentType]
    assert translate_error(page, "post").why == "HTTP 400"


def test_discords_own_words_are_kept_short() -> None:
    assert len(translate_error(http(400, 50035, "word " * 500), "post").why) < 320


def test_an_error_of_ours_passes() -> None:
    mine = NotFound("not here")
    with pytest.raises(NotFound) as caught, translate_errors("post"):
        raise mine
    assert caught.value is mine
