"""Pixel art by PixelLab as an MCP server: sprites with four views, single pictures, rotations and animations.

The key is read from PIXELLAB_API_KEY; PIXELLAB_BASE_URL points at another server that speaks the same API.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Literal

from denizen.skill import JsonObject, Param, Skill, Tier, ToolContext, ToolError, ToolOutput
from denizen_mcp.frames import build_gif, build_sheet
from denizen_mcp.remote import VendorClient, VendorService
from denizen_mcp.serve import EnvVariable, run
from denizen_mcp.sprites import PIXELLAB_ERRORS, POLL_S, PixelLab

LONGEST_S = 360.0
"""As long as a call may take (inventory L6)."""

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
        "detail": detail, "direction": direction, "isometric": isometric or None,
        "no_background": no_background or None, "outline": outline,
        "negative_description": negative_description or None, "seed": seed,
        "background_removal_task": background_removal_task,
    }  # fmt: skip
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
    """Runs the server. Without a key it says what is missing and ends with 2."""
    variables = (
        EnvVariable("PIXELLAB_API_KEY", "pixellab", "api_key", is_required=True),
        EnvVariable("PIXELLAB_BASE_URL", "pixellab", "base_url"),
    )
    run("denizen-mcp-pixellab", (skill,), variables)
