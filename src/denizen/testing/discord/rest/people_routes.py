"""Routes of users, the application itself and the address of the gateway."""

from __future__ import annotations

from denizen.testing.discord.payloads.channels import channel_payload
from denizen.testing.discord.payloads.guilds import own_guild_payload
from denizen.testing.discord.payloads.people import application_payload, member_payload, own_user_payload, user_payload
from denizen.testing.discord.rest.call import RestCall, RestRoute
from denizen.testing.discord.state.errors import forbidden


def gateway(call: RestCall) -> object:
    return {"url": call.gateway_url}


def gateway_bot(call: RestCall) -> object:
    """Suggests one shard for each 1000 guilds, or as many as `store.rules` says."""
    call.application  # noqa: B018 - raises without a token
    limit = {"total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1}
    return {"url": call.gateway_url, "shards": call.store.rules.suggested_shards, "session_start_limit": limit}


def me(call: RestCall) -> object:
    return own_user_payload(call.bot)


def edit_me(call: RestCall) -> object:
    form = call.form
    name = form.text("username", 32)
    form.check()
    call.bot.name = name or call.bot.name
    return own_user_payload(call.bot)


def user(call: RestCall) -> object:
    return user_payload(call.store.get_user(call.id("user_id")))


def open_dm(call: RestCall) -> object:
    form = call.form
    recipient = form.snowflake("recipient_id", required=True)
    form.check()
    other = call.store.get_user(recipient or 0)
    if other.bot:
        raise forbidden(50007, "Cannot send messages to this user")
    return channel_payload(call.acts.channels.open_dm(call.bot, other), call.bot)


def my_guilds(call: RestCall) -> object:
    limit, after = call.number("limit", 200, 1, 200), call.snowflake("after") or 0
    own = [each for each in call.store.guilds.values() if call.bot.id in each.members and each.id > after]
    own.sort(key=lambda each: each.id)
    return [own_guild_payload(call.store, each, call.bot) for each in own[:limit]]


def my_member(call: RestCall) -> object:
    return member_payload(call.guild().members[call.bot.id])


def leave_guild(call: RestCall) -> object:
    call.acts.guilds.leave(call.guild(), call.bot)
    return None


def application(call: RestCall) -> object:
    return application_payload(call.store, call.application)


def edit_application(call: RestCall) -> object:
    """Edits the description, which comes as text, or by language with a `default`."""
    form = call.form
    by_language = isinstance(form.fields.get("description"), dict)
    inner = form.inner("description") if by_language else None
    description = inner.text("default", 400) if inner else form.text("description", 400)
    form.check()
    if description is not None:
        call.application.description = description
    return application_payload(call.store, call.application)


ROUTES = (
    RestRoute("GET", "/gateway", gateway, open=True),
    RestRoute("GET", "/gateway/bot", gateway_bot),
    RestRoute("GET", "/users/@me", me),
    RestRoute("PATCH", "/users/@me", edit_me),
    RestRoute("POST", "/users/@me/channels", open_dm),
    RestRoute("GET", "/users/@me/guilds", my_guilds),
    RestRoute("GET", "/users/@me/guilds/{guild_id}/member", my_member),
    RestRoute("DELETE", "/users/@me/guilds/{guild_id}", leave_guild),
    RestRoute("GET", "/users/{user_id}", user),
    RestRoute("GET", "/applications/@me", application),
    RestRoute("PATCH", "/applications/@me", edit_application),
    RestRoute("GET", "/oauth2/applications/@me", application),
)
