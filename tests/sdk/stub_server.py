"""A small server that speaks the contract of the routes that the SDK uses, and remembers what it heard.

The real routes have tests of their own, with the same client.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from denizen_sdk import DenizenClient
from denizen_sdk.agents import AgentConfig

URL = "http://127.0.0.1:8650"

CONFIG = AgentConfig("denizen", "", "concise", "en", "auto", 1.0, "inline", temperature=0.7, changed=("language",))
FILES = {"ls": "shared\n", "cat gone": "", "cat shared/rules.md": "No shoes.\n"}


@dataclass
class StubServer:
    """Its shell knows three commands and refuses all others. A session id is new unless one of its own is given."""

    heard: list[tuple[str, str, Any]] = field(default_factory=list[tuple[str, str, Any]])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    sessions: int = 0

    def client(self, key: str = "key", **more: Any) -> DenizenClient:
        return DenizenClient(URL, key, transport=httpx2.ASGITransport(self.app), **more)

    @property
    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/api/sandbox/shell", self.shell, methods=["POST"]),
                Route("/api/sandbox/snapshot", self.snapshot, methods=["POST"]),
                Route("/api/stats/usage", self.usage, methods=["POST"]),
                Route("/api/agent-config/public", self.config, methods=["GET"]),
                Route("/api/sources", self.sources, methods=["GET"]),
                Route("/api/sync/{source}", self.sync, methods=["POST"]),
            ]
        )

    async def shell(self, request: Request) -> Response:
        body = await self._hear(request)
        commands: list[str] = body.get("commands") or [body["command"]]
        refused = [each for each in commands if each not in FILES]
        if refused:
            told = {"code": "command_refused", "message": "Not allowed.", "why": f"`{refused[0]}`", "fix": "Use ls."}
            return JSONResponse({"error": {**told, "status": 400, "reference": ""}}, 400)
        self.sessions += 1
        rows = [
            {
                "command": each,
                "stdout": FILES[each],
                "stderr": "gone\n" * (not FILES[each]),
                "exitCode": +(not FILES[each]),
            }
            for each in commands
        ]
        known = {f"sess_{number}" for number in range(1, self.sessions)}
        session = body["sessionId"] if body.get("sessionId") in known else f"sess_{self.sessions}"
        if "commands" in body:
            return JSONResponse({"sessionId": session, "results": rows})
        return JSONResponse({"sessionId": session, **{k: v for k, v in rows[0].items() if k != "command"}})

    async def snapshot(self, request: Request) -> Response:
        await self._hear(request)
        return JSONResponse({"status": "started"}, 202)

    async def usage(self, request: Request) -> Response:
        await self._hear(request)
        return JSONResponse({"id": "use_1", "recorded": True})

    async def config(self, request: Request) -> Response:
        await self._hear(request)
        return JSONResponse(asdict(CONFIG))

    async def sources(self, request: Request) -> Response:
        await self._hear(request)
        row = {"id": "docs", "label": "Docs", "folder": "docs/docs", "files": 2, "documents": 1, "synced_at": None}
        return JSONResponse({"total": 1, "git": {"count": 1, "sources": [row]}, "folder": {"count": 0, "sources": []}})

    async def sync(self, request: Request) -> Response:
        await self._hear(request)
        source = request.path_params["source"]
        return JSONResponse({"status": "started", "run": "sync_1", "sources": [source]}, 202)

    async def _hear(self, request: Request) -> Any:
        raw = await request.body()
        body: Any = await request.json() if raw else None
        self.heard.append((request.method, request.url.path, body))
        self.headers = dict(request.headers)
        return body
