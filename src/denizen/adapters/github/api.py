"""Requests in the name of an account: with the right token, page by page, and in GraphQL where REST has nothing."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from denizen.adapters.github.credentials import Credentials
from denizen.adapters.github.faults import words_of
from denizen.adapters.github.payload import Payload, part_of
from denizen.adapters.github.requests import PAGE, Answer, Call, Client, items_of
from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention, NotAllowed, NotFound, Unavailable

MAX_PAGES = 10
_PAGE_NUMBER = re.compile(r"[?&]page=(?P<number>\d+)")
_ENTERPRISE = "/api/v3"


@dataclass(frozen=True, slots=True)
class Api:
    """Errors are those of `faults`. `repository` is `owner/name` everywhere."""

    client: Client
    credentials: Credentials

    async def send(self, call: Call, repository: str) -> Answer:
        """A token that was revoked before its time is replaced once."""
        authorization = await self.credentials.for_repository(repository)
        try:
            return await self.client.send(call, authorization)
        except NeedsAttention:
            if not self.credentials.forget(authorization):
                raise
        return await self.client.send(call, await self.credentials.for_repository(repository))

    async def forward(self, call: Call, repository: str) -> AsyncGenerator[dict[str, Any]]:
        """The items of a list from its first page on, at most `MAX_PAGES` pages."""
        call = replace(call, params={"per_page": str(PAGE), **(call.params or {})})
        for _ in range(MAX_PAGES):
            answer = await self.send(call, repository)
            for item in items_of(answer.body):
                yield item
            if not answer.next_url:
                return
            call = Call("GET", answer.next_url, call.doing)

    async def list_all(self, call: Call, repository: str) -> list[dict[str, Any]]:
        """The same, at once."""
        async with aclosing(self.forward(call, repository)) as items:
            return [item async for item in items]

    async def list_last(self, call: Call, repository: str, limit: int) -> list[dict[str, Any]]:
        """At most `limit` items from the end of a list that grows there, in its order."""
        params = {"per_page": str(PAGE), **(call.params or {})}
        first = await self.send(replace(call, params=params), repository)
        number = _PAGE_NUMBER.search(first.last_url)
        if number is None:
            return items_of(first.body)[-limit:]
        found: list[dict[str, Any]] = []
        last = int(number["number"])
        for page in range(last, max(last - MAX_PAGES, 0), -1):
            answer = await self.send(replace(call, params={**params, "page": str(page)}), repository)
            found = items_of(answer.body) + found
            if len(found) >= limit:
                break
        return found[-limit:]

    async def query(self, text: str, variables: Mapping[str, Any], repository: str, doing: str) -> Payload:
        """The data of a GraphQL request, which is a writing one to `requests`, since it may be."""
        call = Call("POST", self._graphql_url, doing, json={"query": text, "variables": dict(variables)})
        body = (await self.send(call, repository)).body
        errors = items_of(body, "errors")
        if errors:
            raise _graphql_fault(errors[0], words_of(body), doing)
        return part_of(body or {}, "data")

    @property
    def _graphql_url(self) -> str:
        base = self.client.api_url
        return base.removesuffix(_ENTERPRISE) + "/api/graphql" if base.endswith(_ENTERPRISE) else f"{base}/graphql"


def _graphql_fault(error: Mapping[str, Any], said: str, doing: str) -> DenizenError:
    match error.get("type"):
        case "NOT_FOUND":
            return NotFound(f"What the account wanted to {doing} is not on GitHub.", code="github_gone", why=said)
        case "FORBIDDEN" | "INSUFFICIENT_SCOPES":
            return NotAllowed(f"The account may not {doing}.", code="github_forbidden", why=said)
        case "RATE_LIMITED":
            text = f"GitHub does not let the account {doing} so often."
            return Unavailable(text, code="github_rate_limited", why=said, retry_after_s=60.0)
        case _:
            return InvalidInput(f"GitHub would not let the account {doing}.", code="github_rejected", why=said)
