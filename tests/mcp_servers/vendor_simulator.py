"""Local servers that speak the wire forms of PixelLab, GreyNoise and an image service, as their documents give them."""

import base64
import io
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import uvicorn
from PIL import Image
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from denizen_mcp.pixellab import DIRECTIONS

KEY = "px-secret-key-0123456789"


@dataclass
class Vendor:
    """What was asked, newest last, and how it answers: `failures` are (status, body) that come first, `polls` how
    often a job is still under way when it is asked after.
    """

    url: str = ""
    asked: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])
    failures: list[tuple[int, Any]] = field(default_factory=list[tuple[int, Any]])
    polls: int = 2
    job_error: str = ""
    as_job: bool = False
    jobs: dict[str, tuple[int, Mapping[str, Any]]] = field(default_factory=dict[str, tuple[int, Mapping[str, Any]]])

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def body_of(self, path: str) -> Mapping[str, Any]:
        return next(body for asked, body in reversed(self.asked) if asked == path)


def picture(width: int, height: int, colour: tuple[int, int, int, int] = (200, 30, 30, 255)) -> bytes:
    out = io.BytesIO()
    Image.new("RGBA", (width, height), colour).save(out, "PNG")
    return out.getvalue()


def encode_picture(data: bytes) -> dict[str, str]:
    return {"type": "base64", "base64": base64.b64encode(data).decode(), "format": "png"}


def build_app(vendor: Vendor) -> Starlette:
    """All three services under one address."""

    async def pixellab(request: Request) -> Response:
        body: Mapping[str, Any] = await request.json() if request.method == "POST" else {}
        path = request.path_params["path"]
        vendor.asked.append((path, body))
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return JSONResponse({"detail": "Invalid token"}, 401)
        if vendor.failures:
            status, reply = vendor.failures.pop(0)
            return JSONResponse(reply, status)
        return _pixellab(vendor, path, body)

    async def cdn(request: Request) -> Response:
        vendor.asked.append((f"cdn/{request.path_params['name']}", dict(request.headers)))
        return Response(picture(32, 32), media_type="image/png")

    async def greynoise(request: Request) -> Response:
        vendor.asked.append((request.url.path, dict(request.headers)))
        if vendor.failures:
            status, reply = vendor.failures.pop(0)
            return JSONResponse(reply, status)
        return _greynoise(request)

    async def images(request: Request) -> Response:
        body = await request.json()
        vendor.asked.append((request.url.path, body))
        if vendor.failures:
            status, reply = vendor.failures.pop(0)
            return JSONResponse(reply, status)
        made = base64.b64encode(picture(8, 8)).decode()
        row = {"b64_json": made} if body["response_format"] == "b64_json" else {"url": "https://images.example/1.png"}
        return JSONResponse({"data": [row | {"revised_prompt": "A small red square."}] * body["n"]})

    return Starlette(
        routes=[
            Route("/v2/{path:path}", pixellab, methods=["GET", "POST"]),
            Route("/cdn/{name}", cdn),
            Route("/v3/{kind}/{ip}", greynoise),
            Route("/images/generations", images, methods=["POST"]),
        ]
    )


def _pixellab(vendor: Vendor, path: str, body: Mapping[str, Any]) -> Response:
    match path.split("/"):
        case ["create-character-with-4-directions"]:
            vendor.jobs["job-1"] = (vendor.polls, {"ok": True})
            return JSONResponse({"background_job_id": "job-1", "character_id": "char-1"}, 202)
        case ["background-jobs", job]:
            left, result = vendor.jobs[job]
            vendor.jobs[job] = (left - 1, result)
            if left > 0:
                return JSONResponse({"id": job, "status": "processing"})
            if vendor.job_error:
                return JSONResponse({"id": job, "status": "failed", "error": vendor.job_error})
            return JSONResponse({"id": job, "status": "completed", "last_response": result})
        case ["characters", "char-1"]:
            views = {direction: f"{vendor.url}/cdn/{direction}.png" for direction in DIRECTIONS}
            views: dict[str, str | None] = {
                **views,
                "north-east": None,
                "north-west": "http://127.0.0.1:80@elsewhere.example/x.png",
            }
            return JSONResponse({"id": "char-1", "prompt": "a knight", "rotation_urls": views})
        case ["characters", _]:
            return JSONResponse({"detail": "Character not found"}, 404)
        case ["create-image-pixflux"]:
            size = body["image_size"]
            return _image(vendor, {"image": encode_picture(picture(size["width"], size["height"]))})
        case ["rotate"]:
            size = body["image_size"]
            shade = (body["direction_change"] % 256, 0, 0, 255)
            return _image(vendor, {"image": encode_picture(picture(size["width"], size["height"], shade))})
        case ["animate-with-text"]:
            frames = [encode_picture(picture(64, 64, (shade * 60, 0, 0, 255))) for shade in range(body["n_frames"])]
            return _image(vendor, {"images": frames})
        case _:
            return JSONResponse({"detail": "Not Found"}, 404)


def _image(vendor: Vendor, result: Mapping[str, Any]) -> Response:
    if not vendor.as_job:
        return JSONResponse({**result, "usage": {"type": "usd", "usd": 0.008}})
    job = f"job-{len(vendor.jobs) + 1}"
    vendor.jobs[job] = (vendor.polls, result)
    return JSONResponse({"background_job_id": job, "status": "processing"}, 202)


def _greynoise(request: Request) -> Response:
    ip, kind = request.path_params["ip"], request.path_params["kind"]
    if kind == "ip":
        if request.headers.get("key") != KEY:
            return JSONResponse({"message": "unauthorized"}, 401)
        scanner = {
            "found": True,
            "classification": "malicious",
            "first_seen": "2024-01-01",
            "last_seen": "2026-11-01",
            "tags": [{"name": "SMBv1 Crawler", "intention": "malicious"}],
            "metadata": {"asn": "AS64500", "country": "Nowhere"},
        }
        return JSONResponse(
            {"ip": ip, "internet_scanner_intelligence": scanner, "business_service_intelligence": {"found": False}}
        )
    if ip == "8.8.8.8":
        return JSONResponse(
            {
                "ip": ip,
                "noise": False,
                "riot": True,
                "classification": "benign",
                "name": "Google Public DNS",
                "link": "https://viz.greynoise.io/riot/8.8.8.8",
                "last_seen": "2026-11-20",
                "message": "Success",
            }
        )
    missing = {"ip": ip, "noise": False, "riot": False, "message": "IP not observed scanning the internet."}
    return JSONResponse(missing, 404)


@asynccontextmanager
async def open_vendor() -> AsyncGenerator[Vendor]:
    """The server at a free port of loopback."""
    vendor = Vendor()
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        vendor.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(build_app(vendor), lifespan="off", log_config=None))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            try:
                yield vendor
            finally:
                server.should_exit = True
