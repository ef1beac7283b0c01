"""One request to `/sim`: who asks, about what, with which body; and the error texts for people.

`?as=` names the person, by id or name; the default is the owner of the first guild.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

from aiohttp import web

from denizen.testing.discord.page.view import PersonView
from denizen.testing.discord.rest.call import Form
from denizen.testing.discord.state.access import require_permission
from denizen.testing.discord.state.channels import SimChannel
from denizen.testing.discord.state.errors import RefusedError, bad, bad_field, unknown
from denizen.testing.discord.state.messages import SimAttachment, SimMessage
from denizen.testing.discord.state.people import SimUser
from denizen.testing.discord.world.world import SimWorld

_WORDS: Mapping[int, str] = MappingProxyType(
    {
        50001: "You cannot see this channel.",
        50006: "A message needs a text or a file.",
        50007: "This person takes no direct messages.",
        50013: "You have no right to do this here.",
        50083: "This thread is archived.",
        40005: "The file is too large.",
    }
)


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request of one person. The lookups raise Discord's errors."""

    world: SimWorld
    person: SimUser
    place: Mapping[str, str]
    query: Mapping[str, str]
    form: Form

    @property
    def view(self) -> PersonView:
        return PersonView(self.world.store, self.person)

    def channel(self) -> SimChannel:
        """Returns a channel that the person sees, by id, or by the name of a guild's channel or thread."""
        named = self.place["channel"]
        for channel in self.world.channels:
            if named in (str(channel.id), channel.name) and not (named.isdigit() and named != str(channel.id)):
                require_permission(self.world.store, self.person, channel)
                return channel
        raise unknown("Channel")

    def message(self) -> SimMessage:
        """Returns a message of the channel, or an answer that only this person sees."""
        channel, number = self.channel(), int(self.place["message"])
        if found := channel.find(number):
            return found
        for interaction in self.world.store.interactions.by_token.values():
            for answer in interaction.response.messages:
                if answer.id == number and answer.channel_id == channel.id and self.view.sees(answer):
                    return answer
        raise unknown("Message")

    def written(self, text: str) -> str:
        """Returns what the person wrote in the channel, with the mentions that the names in it stand for."""
        return self.view.mark_mentions(text, self.channel())

    def user(self, name: str) -> SimUser:
        """Returns the user whose id is in this field of the body."""
        return self.world.store.get_user(self.form.snowflake(name) or 0)

    def files(self) -> list[SimAttachment]:
        return [read_file(each, f"files.{index}") for index, each in enumerate(self.form.objects("files", 10))]


Handler = Callable[[PageRequest], object | Awaitable[object]]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """One route. `path` follows `/sim`. The handler returns the body of the answer; None is an empty one."""

    method: str
    path: str
    handler: Handler


def read_file(body: object, place: str) -> SimAttachment:
    """Reads `{"name", "data", "type"?}`, with the data in base64."""
    form = Form(body, place)
    name, data, kind = form.text("name", 200, required=True), form.text("data"), form.text("type")
    form.check()
    try:
        content = base64.b64decode(data or "", validate=True)
    except binascii.Error:
        raise bad_field(f"{place}.data", "BASE64", "This is not base64.") from None
    return SimAttachment(name or "file", content, kind or None)


def find_person(world: SimWorld, named: str | None) -> SimUser:
    """Finds a person by id or name. Raises 10013. Nobody can play a bot."""
    people = [each for each in world.store.users.values() if not each.bot]
    if not named:
        return world.guilds[0].owner if world.guilds else people[0]
    for user in people:
        if named in (str(user.id), user.name, user.display_name):
            return user
    raise unknown("User")


async def read_body(request: web.Request) -> Form:
    """Reads a JSON body. Other sites' pages cannot send JSON without asking first, so nothing else is accepted."""
    if not request.can_read_body:
        return Form({})
    if request.content_type != "application/json":
        raise bad(50109, "The body must be JSON, and say so (Content-Type: application/json).")
    try:
        return Form(json.loads(await request.text()))
    except ValueError:
        raise bad(50109, "The body is not JSON.") from None


def tell(refusal: RefusedError) -> dict[str, Any]:
    """Returns a refusal as the page shows it."""
    details = "; ".join(_faults(refusal.errors or {}))
    message = _WORDS.get(refusal.number) or details or refusal.text
    return {"error": {"message": message, "code": refusal.code, "why": f"Discord: {refusal.text} ({refusal.number})"}}


def _faults(errors: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for name, inner in errors.items():
        if name == "_errors":
            for each in cast("list[dict[str, Any]]", inner):
                yield f"{path}: {each['message']}" if path else str(each["message"])
        else:
            yield from _faults(inner, f"{path}.{name}" if path else name)
