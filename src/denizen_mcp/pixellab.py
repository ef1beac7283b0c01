"""Pixel art by PixelLab as an MCP server: sprites with four views, single pictures, rotations and animations.

PIXELLAB_API_KEY holds the key; PIXELLAB_BASE_URL points at another server that speaks the same API, version 2. Every
request but a lookup starts a job, and the client polls until it is done. Pillow is loaded on first use.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import anyio
import httpx2

from denizen.skill import JsonObject, Param, Skill, Tier, ToolContext, ToolError, ToolOutput
from denizen_mcp.server import EnvVariable, report_progress, run
from denizen_mcp.vendor_client import SleepFor, VendorClient, VendorService

if TYPE_CHECKING:
    from PIL.Image import Image as Picture


_TRANSPARENT = (0, 0, 0, 0)


def resize_square(picture: bytes, side: int) -> bytes:
    """Returns a PNG with both sides of that many pixels; hard edges stay hard. Raises ToolError for what is no
    picture.
    """
    from PIL import Image

    with _opened(picture) as image:
        return _png(image.convert("RGBA").resize((side, side), Image.Resampling.NEAREST))


def get_size(picture: bytes) -> tuple[int, int]:
    """Returns width and height in pixels. Raises ToolError for what is no picture."""
    with _opened(picture) as image:
        return image.size


def build_sheet(pictures: Sequence[bytes]) -> bytes:
    """Returns a PNG with the pictures in one row. Raises ToolError for what is no picture."""
    from PIL import Image

    images = [_opened(picture).convert("RGBA") for picture in pictures]
    whole = Image.new("RGBA", (sum(i.width for i in images), max(i.height for i in images)), _TRANSPARENT)
    left = 0
    for image in images:
        whole.paste(image, (left, 0))
        left += image.width
    return _png(whole)


def build_gif(pictures: Sequence[bytes], *, fps: int, loop: bool) -> bytes:
    """Returns a GIF of the pictures. Raises ToolError for what is no picture.

    GIFs count time in hundredths of a second, and players slow down frames shorter than two of them, so more than 50
    frames a second are shown as 50.
    """
    first, *rest = [_opened(picture).convert("RGBA") for picture in pictures]
    out = io.BytesIO()
    options = {"loop": 0} if loop else {}
    first.save(
        out, "GIF", save_all=True, append_images=rest, duration=max(round(100 / fps), 2) * 10, disposal=2, **options
    )
    return out.getvalue()


def _opened(picture: bytes) -> Picture:
    from PIL import Image, UnidentifiedImageError

    try:
        image = Image.open(io.BytesIO(picture))
        image.load()
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise ToolError("The service did not send a picture.") from error
    return image


def _png(image: Picture) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


POLL_S = 5.0
POLLS = 60
ROTATIONS_AT_ONCE = 4
MAX_PICTURE_BYTES = 8_000_000
ANIMATED_SIDE = 64
"""The only size that the service animates."""
FRAMES = 4

_WEB = re.compile(r"https://|http://127\.0\.0\.1:[0-9]+/")
"""Begins an address that is fetched. Without the slash, `127.0.0.1:80` could be the name of a user."""

DIRECTIONS = ("south", "east", "north", "west")
"""The views of a sprite, in the order in which one is chosen to represent it."""

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
    """A sprite: its prompt, and the addresses of its views by direction."""

    id: str
    prompt: str
    views: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def front(self) -> tuple[str, str]:
        """The direction and the address of the view that represents the sprite."""
        for direction in (*DIRECTIONS, *self.views):
            if direction in self.views:
                return direction, self.views[direction]
        raise ToolError("PixelLab has no picture of this sprite.")


class PixelLab:
    """The requests that the tools need. Every method raises ToolError, with a text for people."""

    def __init__(self, remote: VendorClient, *, poll_s: float = POLL_S, pause: SleepFor = anyio.sleep) -> None:
        self._remote = remote
        self._poll_s = poll_s
        self._pause = pause

    async def make_character(self, description: str, side: int, *, isometric: bool, seed: int | None) -> Sprite:
        """Makes a sprite with views from four directions."""
        wanted = _given(description=description, image_size=_square(side), isometric=isometric or None, seed=seed)
        begun = (await self._remote.post("create-character-with-4-directions", wanted)).body
        character_id = _text(begun, "character_id")
        if not character_id:
            raise ToolError("PixelLab did not say which sprite it makes.")
        await self._result(begun)
        return await self.find_character(character_id)

    async def find_character(self, sprite_id: str) -> Sprite:
        """Returns the sprite with that id."""
        if not sprite_id.replace("-", "").replace("_", "").isalnum():
            raise ToolError(f"`{sprite_id[:60]}` is not the id of a sprite.")
        body = (await self._remote.get(f"characters/{sprite_id}")).body
        urls = body.get("rotation_urls")
        views = cast("dict[str, Any]", urls) if isinstance(urls, dict) else {}
        kept = {direction: url for direction, url in views.items() if isinstance(url, str) and _is_web(url)}
        return Sprite(sprite_id, _text(body, "prompt"), kept)

    async def make_image(self, wanted: Mapping[str, object]) -> bytes:
        """Makes one picture."""
        begun = (await self._remote.post("create-image-pixflux", wanted)).body
        return _read_picture(await self._result(begun))

    async def rotate(self, picture: bytes, angles: Sequence[float]) -> list[bytes]:
        """Returns the picture turned by each angle, in degrees, in the given order."""
        turned: dict[int, bytes] = {}
        # The service allows few jobs at once and answers 429 to more.
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
        """Returns the frames of an animation."""
        wanted = {
            "reference_image": _packed(resize_square(picture, ANIMATED_SIDE)),
            "image_size": _square(ANIMATED_SIDE),
            "description": description or "pixel art character",
            "action": action,
            "view": "side",
            "direction": direction,
            "n_frames": FRAMES,
        }
        result = await self._result((await self._remote.post("animate-with-text", wanted)).body)
        frames = result.get("images")
        rows = cast("list[object]", frames) if isinstance(frames, list) else []
        pictures = [_unpacked(cast("dict[str, Any]", row)) for row in rows if isinstance(row, dict)]
        if not pictures:
            raise ToolError("PixelLab returned no frames.")
        return pictures

    async def download(self, url: str) -> bytes:
        """Downloads a picture from the address that PixelLab gave; the key is not sent there."""
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
        """Returns the result: at once, or of the job that was started."""
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
        # The API takes -180 to 180 degrees.
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
        raise ToolError("PixelLab returned no picture.")
    return picture


def _read_picture(result: Mapping[str, Any]) -> bytes:
    row = result.get("image")
    if not isinstance(row, dict):
        raise ToolError("PixelLab returned no picture.")
    return _unpacked(cast("dict[str, Any]", row))


def _text(body: Mapping[str, Any], key: str) -> str:
    value = body.get(key)
    return value if isinstance(value, str) else ""


def _is_web(url: str) -> bool:
    return _WEB.match(url) is not None


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """Returns the first error of the group; the rest was cancelled or adds nothing."""
    error = group.exceptions[0]
    return _first(cast("ExceptionGroup[Exception]", error)) if isinstance(error, ExceptionGroup) else error


LONGEST_S = 360.0
"""As long as a client lets a call take by default."""

Side = Annotated[int, Param("in pixels", ge=32, le=400)]
Direction = Literal["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"]


@dataclass(frozen=True, slots=True)
class PixelLabSettings:
    api_key: str = ""
    base_url: str = "https://api.pixellab.ai/v2"
    poll_s: float = POLL_S
    retry_pauses_s: tuple[float, ...] = (2.0, 4.0, 8.0)


skill = Skill("pixellab", description="Pixel art: sprites, pictures, rotations, animations.", settings=PixelLabSettings)


@skill.tool(tier=Tier.SENSITIVE, timeout_s=LONGEST_S)
async def generate_sprite(
    context: ToolContext,
    prompt: Annotated[str, Param("what it shows: a knight riding a wolf", min_length=1, max_length=500)],
    size: Literal["16x16", "32x32", "64x64", "128x128"] = "32x32",
    style: Annotated[str, Param("such as fantasy, sci-fi, isometric", max_length=100)] = "",
    seed: Annotated[int | None, Param("the same seed gives the same sprite", ge=0)] = None,
) -> ToolOutput:
    """Makes a game character with views from four directions. It can be rotated and animated by its id."""
    side = int(size.partition("x")[0])
    isometric = style.strip().lower() == "isometric"
    description = prompt if not style or isometric else f"{prompt}, {style} style"
    async with _pixellab(context) as pixels:
        sprite = await pixels.make_character(description, side, isometric=isometric, seed=seed)
        direction, url = sprite.front
        picture = await pixels.download(url)
    views = ", ".join(sprite.views)
    text = f"The sprite {sprite.id} ({size}) is shown to the user, seen from the {direction}. Views: {views}."
    return ToolOutput(text, _shown(picture, "png", prompt[:200], sprite.views))


@skill.tool(tier=Tier.SENSITIVE, timeout_s=LONGEST_S)
async def generate_image_pixflux(  # noqa: PLR0913, PLR0917 - the vendor's parameters, filled by name
    context: ToolContext,
    description: Annotated[str, Param("what it shows", min_length=1, max_length=500)],
    width: Side,
    height: Side,
    detail: Literal["low detail", "medium detail", "highly detailed"] | None = None,
    direction: Direction | None = None,
    isometric: bool = False,  # noqa: FBT001, FBT002 - filled by name
    no_background: bool = False,  # noqa: FBT001, FBT002
    outline: Literal["single color black outline", "single color outline", "selective outline", "lineless"]
    | None = None,
    negative_description: Annotated[str, Param("what it must not show", max_length=500)] = "",
    seed: Annotated[int | None, Param(ge=0)] = None,
    background_removal_task: Literal["remove_simple_background", "remove_complex_background"] | None = None,
    init_image: Annotated[str, Param("picture to begin with, as base64 of a PNG")] = "",
    init_image_strength: Annotated[int, Param("how much of it stays", ge=1, le=999)] = 300,
) -> ToolOutput:
    """Makes one pixel art picture, with control over outline, detail and view. For scenes, icons, buildings."""
    wanted: dict[str, object] = {"description": description, "image_size": {"width": width, "height": height}}
    options = {
        "detail": detail,
        "direction": direction,
        "isometric": isometric or None,
        "no_background": no_background or None,
        "outline": outline,
        "negative_description": negative_description or None,
        "seed": seed,
        "background_removal_task": background_removal_task,
    }
    wanted |= {name: value for name, value in options.items() if value is not None}
    if init_image:
        wanted |= {
            "init_image": {"type": "base64", "base64": init_image, "format": "png"},
            "init_image_strength": init_image_strength,
        }
    async with _pixellab(context) as pixels:
        picture = await pixels.make_image(wanted)
    return ToolOutput(
        f"The picture ({width}x{height}) is shown to the user.", _shown(picture, "png", description[:200])
    )


@skill.tool(tier=Tier.SENSITIVE, timeout_s=LONGEST_S)
async def rotate_sprite(
    context: ToolContext,
    sprite_id: Annotated[str, Param("as generate_sprite gave it", min_length=1, max_length=100)],
    angles: Annotated[list[float], Param("1 to 16 angles in degrees: [0, 90, 180]", min_length=1, max_length=16)],
) -> ToolOutput:
    """Turns a sprite by each of the angles and gives all of them on one sheet."""
    async with _pixellab(context) as pixels:
        sprite = await pixels.find_character(sprite_id)
        _, url = sprite.front
        turned = await pixels.rotate(await pixels.download(url), angles)
    named = ", ".join(f"{angle:g}°" for angle in angles)
    text = f"A sheet with {len(turned)} views of the sprite {sprite.id} is shown to the user, from left: {named}."
    return ToolOutput(text, _shown(build_sheet(turned), "png", f"Turned by {named}"))


@skill.tool(tier=Tier.SENSITIVE, timeout_s=LONGEST_S)
async def animate_sprite(
    context: ToolContext,
    sprite_id: Annotated[str, Param("as generate_sprite gave it", min_length=1, max_length=100)],
    fps: Annotated[int, Param("frames a second", ge=1, le=60)] = 12,
    loop: bool = True,  # noqa: FBT001, FBT002 - filled by name
    action: Annotated[str, Param("what it does", min_length=1, max_length=100)] = "walk",
) -> ToolOutput:
    """Animates a sprite as a GIF."""
    async with _pixellab(context) as pixels:
        sprite = await pixels.find_character(sprite_id)
        direction, url = sprite.front
        picture = await pixels.download(url)
        frames = await pixels.animate(picture, description=sprite.prompt, action=action, direction=direction)
    text = f"An animation of the sprite {sprite.id} ({action}, {len(frames)} frames) is shown to the user."
    return ToolOutput(text, _shown(build_gif(frames, fps=fps, loop=loop), "gif", action))


@asynccontextmanager
async def _pixellab(context: ToolContext) -> AsyncGenerator[PixelLab]:
    settings = context.settings(PixelLabSettings)
    if not settings.api_key:
        raise ToolError("No key for PixelLab is configured: set PIXELLAB_API_KEY.")
    headers = {"Authorization": f"Bearer {settings.api_key}"}
    service = VendorService(
        "PixelLab", settings.base_url, headers, PIXELLAB_ERRORS, retry_pauses_s=settings.retry_pauses_s
    )
    async with VendorClient(service) as remote:
        yield PixelLab(remote, poll_s=settings.poll_s)


def _shown(picture: bytes, kind: str, title: str, links: Mapping[str, str] | None = None) -> JsonObject:
    url = f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"
    return {"images": [{"url": url, "title": title, "links": dict(links or {})}]}


def main() -> None:
    """Runs the server. Without a key it says what is missing and exits with 2."""
    variables = (
        EnvVariable("PIXELLAB_API_KEY", "pixellab", "api_key", is_required=True),
        EnvVariable("PIXELLAB_BASE_URL", "pixellab", "base_url"),
    )
    run("denizen-mcp-pixellab", (skill,), variables)
