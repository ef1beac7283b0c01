"""Which repositories an account can read."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.adapters.github.credentials import Credentials
from denizen.adapters.github.payload import Payload, flag_of, text_of
from denizen.adapters.github.requests import PAGE, Call, Client, items_of
from denizen.adapters.github.settings import AccountSettings
from denizen.ports.hosting import HostedRepository

MAX_PAGES = 20


async def list_repositories(
    client: Client, credentials: Credentials, settings: AccountSettings
) -> Sequence[HostedRepository]:
    """Those in which it may answer, the most recently used first: of all installations of an App, of a user all."""
    path, key = ("/installation/repositories", "repositories") if settings.is_app else ("/user/repos", "")
    found: dict[str, HostedRepository] = {}
    for authorization in await credentials.list_all():
        call = Call("GET", path, "list repositories", params={"per_page": str(PAGE)})
        for _ in range(MAX_PAGES):
            answer = await client.send(call, authorization)
            found |= {text_of(row, "full_name"): _repository(row) for row in items_of(answer.body, key)}
            if not answer.next_url:
                break
            call = Call("GET", answer.next_url, call.doing)
    admitted = [each for name, each in found.items() if name and settings.admits(name)]
    return sorted(admitted, key=lambda each: each.updated_at, reverse=True)


def _repository(row: Payload) -> HostedRepository:
    return HostedRepository(
        text_of(row, "full_name"), text_of(row, "clone_url"), text_of(row, "default_branch"), flag_of(row, "private"),
        text_of(row, "description"), max(text_of(row, "pushed_at"), text_of(row, "updated_at")),
    )  # fmt: skip
