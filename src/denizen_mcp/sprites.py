"""PixelLab's API, version 2: pictures at once, everything else by jobs that are asked after (inventory 5.4)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import httpx2

from denizen.skill import ToolError
from denizen_mcp.frames import get_size, resize_square
from denizen_mcp.progress import report_progress
from denizen_mcp.remote import SleepFor, VendorClient

POLL_S = 5.0
POLLS = 60
ROTATIONS_AT_ONCE = 4
MAX_PICTURE_BYTES = 8_000_000
ANIMATED_SIDE = 64
"""The only size that is animated."""
FRAMES = 4

DIRECTIONS = ("south", "east", "north", "west")
"""The views of a character, in the order in which one is taken for it."""

PIXELLAB_ERRORS = {
    400: "does not take this request.",
    401: "does not know the key. Check PIXELLAB_API_KEY.",
    402: "says that the credit is used up.",
    403: "does not allow this with the key. Check PIXELLAB_API_KEY and the plan.",
    404: "does not know this sprite. Check its id.",
    422: "does not take these values.",
    429: "has been asked too often, or too many jobs run at once. Try again in a moment.",
}


@dataclass(frozen=True, slots=True)
class Sprite:
    """A sprite that was made: what it shows, and the addresses of its views by direction."""

    id: str
    prompt: str
    views: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def front(self) -> tuple[str, str]:
        """The direction and the address of the view that stands for the character."""
        for direction in (*DIRECTIONS, *self.views):
            if direction in self.views:
                return direction, self.views[direction]
        raise ToolError("PixelLab has no picture of this sprite.")


class PixelLab:
    """Requests that a tool needs. Every method raises ToolError, with a text for people."""

    def __init__(self, remote: VendorClient, *, poll_s: float = POLL_S, pause: SleepFor = anyio.sleep) -> None:
        self._remote = remote
        self._poll_s = poll_s
        self._pause = pause

    async def make_character(self, description: str, side: int, *, isometric: bool, seed: int | None) -> Sprite:
        wanted = _given(description=description, image_size=_square(side), isometric=isometric or None, seed=seed)
        begun = (await self._remote.post("create-character-with-4-directions", wanted)).body
        character_id = _text(begun, "character_id")
        if not character_id:
            raise ToolError("PixelLab did not say which sprite it makes.")
        await self._result(begun)
        return await self.find_character(character_id)

    async def find_character(self, sprite_id: str) -> Sprite:
        if not sprite_id.replace("-", "").replace("_", "").isalnum():
            raise ToolError(f"`{sprite_id[:60]}` is no id of a sprite.")
        body = (await self._remote.get(f"characters/{sprite_id}")).body
        urls = body.get("rotation_urls")
        views = cast("dict[str, Any]", urls) if isinstance(urls, dict) else {}
        kept = {direction: url for direction, url in views.items() if isinstance(url, str) and _is_web(url)}
        return Sprite(sprite_id, _text(body, "prompt"), kept)

    async def make_image(self, wanted: Mapping[str, object]) -> bytes:
        begun = (await self._remote.post("create-image-pixflux", wanted)).body
        return _read_picture(await self._result(begun))

    async def rotate(self, picture: bytes, angles: Sequence[float]) -> list[bytes]:
        """The picture turned by each angle, in degrees, in the given order."""
        turned: dict[int, bytes] = {}
        limiter = anyio.CapacityLimiter(ROTATIONS_AT_ONCE)

        async def turn(place: int, angle: float) -> None:
            async with limiter:
                begun = (await self._remote.post("rotate", _rotation(picture, angle))).body
                turned[place] = _read_picture(await self._result(begun))
                await report_progress(f"{len(turned)} of {len(angles)} views are ready.")

        try:
            async with anyio.create_task_group() as tasks:
                for place, angle in enumerate(angles):
                    tasks.start_soon(turn, place, angle)
        except ExceptionGroup as group:
            raise _first(group) from group
        return [turned[place] for place in sorted(turned)]

    async def animate(self, picture: bytes, *, description: str, action: str, direction: str) -> list[bytes]:
        wanted = {
            "reference_image": _packed(resize_square(picture, ANIMATED_SIDE)), "image_size": _square(ANIMATED_SIDE),
            "description": description or "pixel art character", "action": action, "view": "side",
            "direction": direction, "n_frames": FRAMES,
        }  # fmt: skip
        result = await self._result((await self._remote.post("animate-with-text", wanted)).body)
        frames = result.get("images")
        rows = cast("list[object]", frames) if isinstance(frames, list) else []
        pictures = [_unpacked(cast("dict[str, Any]", row)) for row in rows if isinstance(row, dict)]
        if not pictures:
            raise ToolError("PixelLab gave no frames.")
        return pictures

    async def download(self, url: str) -> bytes:
        """A picture from the address that PixelLab gave; the key is not sent there."""
        try:
            async with (
                httpx2.AsyncClient(timeout=60.0, follow_redirects=True) as client,
                client.stream("GET", url) as response,
            ):
                data = b""
                async for chunk in response.aiter_bytes():
                    data += chunk
                    if len(data) > MAX_PICTURE_BYTES:
                        raise ToolError("The picture of this sprite is too large.")
        except httpx2.HTTPError as error:
            raise ToolError("The picture of this sprite cannot be loaded. Try again later.") from error
        if not response.is_success:
            raise ToolError(f"The picture of this sprite cannot be loaded (HTTP status {response.status_code}).")
        return data

    async def _result(self, begun: Mapping[str, Any]) -> Mapping[str, Any]:
        """What came of it: at once, or of the job that was begun."""
        job = _text(begun, "background_job_id")
        if not job:
            return begun
        for asked in range(1, POLLS + 1):
            state = (await self._remote.get(f"background-jobs/{job}")).body
            status = _text(state, "status")
            if status == "completed":
                result = state.get("last_response") or state.get("result")
                return cast("dict[str, Any]", result) if isinstance(result, dict) else {}
            if status == "failed":
                why = _text(state, "error") or _text(state, "detail") or "it does not say why"
                raise ToolError(f"PixelLab could not make it: {why[:300]}.")
            await report_progress(f"PixelLab is at work ({asked * self._poll_s:.0f} s).")
            await self._pause(self._poll_s)
        raise ToolError(f"PixelLab was not ready within {POLLS * self._poll_s / 60:.0f} min. Try again later.")


def _rotation(picture: bytes, angle: float) -> dict[str, object]:
    width, height = get_size(picture)
    return {
        "image_size": {"width": width, "height": height},
        "from_image": _packed(picture),
        "direction_change": round((angle + 180) % 360 - 180),
    }


def _given(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _square(side: int) -> dict[str, int]:
    return {"width": side, "height": side}


def _packed(picture: bytes) -> dict[str, str]:
    return {"type": "base64", "base64": base64.b64encode(picture).decode(), "format": "png"}


def _unpacked(row: Mapping[str, Any]) -> bytes:
    text = _text(row, "base64").rpartition(",")[2]  # some answers have `data:image/png;base64,` in front
    try:
        picture = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        picture = b""
    if not picture:
        raise ToolError("PixelLab gave no picture.")
    return picture


def _read_picture(result: Mapping[str, Any]) -> bytes:
    row = result.get("image")
    if not isinstance(row, dict):
        raise ToolError("PixelLab gave no picture.")
    return _unpacked(cast("dict[str, Any]", row))


def _text(body: Mapping[str, Any], key: str) -> str:
    value = body.get(key)
    return value if isinstance(value, str) else ""


def _is_web(url: str) -> bool:
    return url.startswith(("https://", "http://127.0.0.1:"))


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """The first thing that went wrong; the rest was cancelled or is no news."""
    error = group.exceptions[0]
    return _first(cast("ExceptionGroup[Exception]", error)) if isinstance(error, ExceptionGroup) else error
