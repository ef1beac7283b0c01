"""Routes of users, the application itself and the address of the gateway."""

from __future__ import annotations

from denizen.testing.discord.payloads.channels import channel_payload
from denizen.testing.discord.payloads.guilds import own_guild_payload
from denizen.testing.discord.payloads.people import application_payload, member_payload, own_user_payload, user_payload
from denizen.testing.discord.rest.call import Call, Route
from denizen.testing.discord.state.errors import forbidden


def gateway(call: Call) -> object:
    return {"url": call.gateway_url}


def gateway_bot(call: Call) -> object:
    """One shard is suggested for each 1000 guilds, at least one; `shards` of the realm says otherwise."""
    call.application  # noqa: B018 - raises without a token
    limit = {"total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1}
    return {"url": call.gateway_url, "shards": call.realm.rules.suggested_shards, "session_start_limit": limit}


def me(call: Call) -> object:
    return own_user_payload(call.bot)


def edit_me(call: Call) -> object:
    form = call.form
    name = form.text("username", 32)
    form.check()
    call.bot.name = name or call.bot.name
    return own_user_payload(call.bot)


def user(call: Call) -> object:
    return user_payload(call.realm.get_user(call.id("user_id")))


def open_dm(call: Call) -> object:
    form = call.form
    recipient = form.snowflake("recipient_id", required=True)
    form.check()
    other = call.realm.get_user(recipient or 0)
    if other.bot:
        raise forbidden(50007, "Cannot send messages to this user")
    return channel_payload(call.acts.channels.open_dm(call.bot, other), call.bot)


def my_guilds(call: Call) -> object:
    limit, after = call.number("limit", 200, 1, 200), call.snowflake("after") or 0
    own = [each for each in call.realm.guilds.values() if call.bot.id in each.members and each.id > after]
    own.sort(key=lambda each: each.id)
    return [own_guild_payload(call.realm, each, call.bot) for each in own[:limit]]


def my_member(call: Call) -> object:
    return member_payload(call.guild().members[call.bot.id])


def leave_guild(call: Call) -> object:
    call.acts.guilds.leave(call.guild(), call.bot)
    return None


def application(call: Call) -> object:
    return application_payload(call.realm, call.application)


def edit_application(call: Call) -> object:
    """The description comes as text, or by language with a `default`."""
    form = call.form
    by_language = isinstance(form.fields.get("description"), dict)
    inner = form.inner("description") if by_language else None
    description = inner.text("default", 400) if inner else form.text("description", 400)
    form.check()
    if description is not None:
        call.application.description = description
    return application_payload(call.realm, call.application)


ROUTES = (
    Route("GET", "/gateway", gateway, open=True),
    Route("GET", "/gateway/bot", gateway_bot),
    Route("GET", "/users/@me", me),
    Route("PATCH", "/users/@me", edit_me),
    Route("POST", "/users/@me/channels", open_dm),
    Route("GET", "/users/@me/guilds", my_guilds),
    Route("GET", "/users/@me/guilds/{guild_id}/member", my_member),
    Route("DELETE", "/users/@me/guilds/{guild_id}", leave_guild),
    Route("GET", "/users/{user_id}", user),
    Route("GET", "/applications/@me", application),
    Route("PATCH", "/applications/@me", edit_application),
    Route("GET", "/oauth2/applications/@me", application),
)
