"""Sprites: every tool against a server that speaks PixelLab's wire form."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from mcp import Client
from PIL import Image

from denizen.skill import Skill, Tier, ToolContext
from denizen_mcp import pixellab
from denizen_mcp.pixellab import POLL_S, POLLS, PixelLabSettings
from tests.clock import ManualClock
from tests.mcp_servers.mcp_client import get_links, get_picture, get_text, open_client
from tests.mcp_servers.vendor_simulator import KEY, Vendor

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def open_pixellab(vendor: Vendor, *, key: str = KEY) -> AsyncGenerator[Client]:
    """A client of the server, which neither pauses between polls nor before it tries again."""
    section = {"api_key": key, "base_url": f"{vendor.url}/v2", "poll_s": 0.0, "retry_pauses_s": [0.0, 0.0, 0.0]}
    async with open_client(pixellab.skill, sections={"pixellab": section}) as client:
        yield client


@pytest.mark.proves("L-tool-generate-sprite")
async def test_a_sprite_has_an_id_a_picture_and_links_to_its_four_views(vendor: Vendor) -> None:
    async with open_pixellab(vendor) as client:
        result = await client.call_tool("generate_sprite", {"prompt": "a knight", "size": "64x64", "seed": 7})
    assert not result.is_error
    assert "char-1" in get_text(result)
    assert get_picture(result).size == (32, 32)
    assert set(get_links(result)) == {"north", "east", "south", "west"}
    wanted = {"description": "a knight", "image_size": {"width": 64, "height": 64}, "seed": 7}
    assert vendor.body_of("create-character-with-4-directions") == wanted
    assert vendor.paths.count("background-jobs/job-1") == vendor.polls + 1


@pytest.mark.proves("L-tool-generate-sprite", "L-prompt-planner")
@pytest.mark.parametrize(("size", "side"), [(None, 32), ("16x16", 16), ("32x32", 32), ("64x64", 64), ("128x128", 128)])
async def test_a_sprite_has_one_of_four_sizes(vendor: Vendor, size: str | None, side: int) -> None:
    wanted = {"prompt": "x" * 500} if size is None else {"prompt": "x", "size": size}
    async with open_pixellab(vendor) as client:
        assert not (await client.call_tool("generate_sprite", wanted)).is_error
    asked = vendor.body_of("create-character-with-4-directions")
    assert asked["image_size"] == {"width": side, "height": side}


@pytest.mark.proves("L-tool-generate-image-pixflux", "L-tool-rotate-sprite", "L-tool-animate-sprite")
async def test_what_is_just_in_range_reaches_the_vendor(vendor: Vendor) -> None:
    calls: list[tuple[str, dict[str, object]]] = [
        *(
            ("generate_image_pixflux", {"description": "x" * 500, "width": low, "height": high, **more})
            for low, high, more in ((32, 400, {"init_image_strength": 1}), (400, 32, {"init_image_strength": 999}))
        ),
        ("rotate_sprite", {"sprite_id": "char-1", "angles": [10]}),
        ("rotate_sprite", {"sprite_id": "char-1", "angles": list(range(16))}),
        *(("animate_sprite", {"sprite_id": "char-1", "fps": fps}) for fps in (1, 60)),
    ]
    async with open_pixellab(vendor) as client:
        for tool, args in calls:
            result = await client.call_tool(tool, args)
            assert not result.is_error, get_text(result)
        sheet = get_picture(await client.call_tool("rotate_sprite", {"sprite_id": "char-1", "angles": [0.5] * 16}))
    assert sheet.size == (16 * 32, 32)


@pytest.mark.proves("L-tool-generate-sprite")
async def test_a_style_is_told_and_isometric_is_a_switch(vendor: Vendor) -> None:
    async with open_pixellab(vendor) as client:
        await client.call_tool("generate_sprite", {"prompt": "an elf", "style": "fantasy"})
        assert vendor.body_of("create-character-with-4-directions")["description"] == "an elf, fantasy style"
        await client.call_tool("generate_sprite", {"prompt": "an elf", "style": "Isometric"})
        body = vendor.body_of("create-character-with-4-directions")
    assert (body["description"], body["isometric"]) == ("an elf", True)


async def test_the_key_goes_to_the_vendor_and_not_to_where_its_pictures_lie(vendor: Vendor) -> None:
    async with open_pixellab(vendor) as client:
        await client.call_tool("generate_sprite", {"prompt": "a knight"})
    assert "authorization" not in vendor.body_of("cdn/south.png")


@pytest.mark.proves("L-tool-generate-image-pixflux")
@pytest.mark.parametrize("as_job", [False, True])
async def test_a_picture_comes_at_once_or_by_a_job(vendor: Vendor, as_job: bool) -> None:
    vendor.as_job = as_job
    wanted = {
        "description": "a hut",
        "width": 64,
        "height": 48,
        "outline": "lineless",
        "detail": "low detail",
        "direction": "north-east",
        "isometric": True,
        "no_background": True,
        "negative_description": "trees",
        "background_removal_task": "remove_simple_background",
        "seed": 3,
        "init_image": "aGk=",
        "init_image_strength": 500,
    }
    async with open_pixellab(vendor) as client:
        result = await client.call_tool("generate_image_pixflux", wanted)
    assert get_picture(result).size == (64, 48)
    body = dict(vendor.body_of("create-image-pixflux"))
    assert body.pop("image_size") == {"width": 64, "height": 48}
    assert body.pop("init_image") == {"type": "base64", "base64": "aGk=", "format": "png"}
    assert body == {key: value for key, value in wanted.items() if key not in {"width", "height", "init_image"}}


@pytest.mark.proves("L-tool-rotate-sprite", "LW10")
async def test_a_sprite_is_turned_by_each_angle_onto_one_sheet(vendor: Vendor) -> None:
    async with open_pixellab(vendor) as client:
        result = await client.call_tool("rotate_sprite", {"sprite_id": "char-1", "angles": [90, 10, 270]})
    sheet = get_picture(result).convert("RGBA")
    assert sheet.size == (96, 32)
    assert [sheet.getpixel((x, 5)) for x in (5, 40, 70)] == [(90, 0, 0, 255), (10, 0, 0, 255), (166, 0, 0, 255)]
    assert sorted(body["direction_change"] for path, body in vendor.asked if path == "rotate") == [-90, 10, 90]


@pytest.mark.proves("L-tool-animate-sprite")
async def test_a_sprite_is_animated_as_a_gif_of_the_wanted_speed(vendor: Vendor) -> None:
    async with open_pixellab(vendor) as client:
        result = await client.call_tool("animate_sprite", {"sprite_id": "char-1", "fps": 20, "action": "jump"})
        once = await client.call_tool("animate_sprite", {"sprite_id": "char-1", "loop": False})
    gif = get_picture(result)
    assert isinstance(gif, Image.Image)
    assert (gif.format, gif.size, getattr(gif, "n_frames", 1)) == ("GIF", (64, 64), 4)
    assert (gif.info["duration"], gif.info["loop"]) == (50, 0)
    assert "loop" not in get_picture(once).info
    body = vendor.body_of("animate-with-text")
    assert (body["description"], body["direction"], body["view"]) == ("a knight", "south", "side")


HUT = {"description": "x", "width": 64, "height": 64}


@pytest.mark.proves(
    "L-tool-generate-sprite", "L-tool-generate-image-pixflux", "L-tool-rotate-sprite", "L-tool-animate-sprite"
)
@pytest.mark.parametrize(
    ("tool", "args", "said"),
    [
        ("generate_sprite", {"prompt": ""}, "prompt"),
        ("generate_sprite", {"prompt": "x" * 501}, "prompt"),
        ("generate_sprite", {"prompt": "x", "size": "20x20"}, "size"),
        ("generate_sprite", {"prompt": "x", "seed": -1}, "seed"),
        ("generate_image_pixflux", {**HUT, "description": ""}, "description"),
        ("generate_image_pixflux", {**HUT, "description": "x" * 501}, "description"),
        ("generate_image_pixflux", {**HUT, "detail": "some"}, "detail"),
        ("generate_image_pixflux", {**HUT, "direction": "up"}, "direction"),
        ("generate_image_pixflux", {**HUT, "outline": "thick"}, "outline"),
        ("generate_image_pixflux", {**HUT, "background_removal_task": "all"}, "background_removal_task"),
        ("generate_image_pixflux", {**HUT, "init_image_strength": 0}, "init_image_strength"),
        ("generate_image_pixflux", {**HUT, "init_image_strength": 1000}, "init_image_strength"),
        ("generate_image_pixflux", {"description": "x", "width": 31, "height": 64}, "width"),
        ("generate_image_pixflux", {"description": "x", "width": 401, "height": 64}, "width"),
        ("generate_image_pixflux", {"description": "x", "width": 64, "height": 31}, "height"),
        ("generate_image_pixflux", {"description": "x", "width": 64, "height": 401}, "height"),
        ("rotate_sprite", {"sprite_id": "char-1", "angles": []}, "angles"),
        ("rotate_sprite", {"sprite_id": "char-1", "angles": list(range(17))}, "angles"),
        ("rotate_sprite", {"sprite_id": "../balance", "angles": [1]}, "not the id"),
        ("animate_sprite", {"sprite_id": "char-1", "fps": 61}, "fps"),
        ("animate_sprite", {"sprite_id": "char-1", "fps": 0}, "fps"),
        ("animate_sprite", {"sprite_id": "char-1", "loop": "often"}, "loop"),
    ],
)
async def test_what_is_out_of_range_never_reaches_the_vendor(
    vendor: Vendor, tool: str, args: dict[str, object], said: str
) -> None:
    async with open_pixellab(vendor) as client:
        result = await client.call_tool(tool, args)
    assert result.is_error
    assert said in get_text(result)
    assert vendor.asked == []


@pytest.mark.proves("L-tool-pixellab-client")
@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (400, {"error": "bad colour"}, "does not take this request. (HTTP status 400: bad colour)"),
        (402, {"detail": "Not enough credits"}, "credit is used up"),
        (403, {"detail": "no"}, "does not allow this with the key"),
        (404, {"detail": "Character not found"}, "does not know this sprite"),
        (
            422,
            {"detail": [{"loc": ["body", "seed"], "msg": "too small", "input": "x" * 999}]},
            "these values. (HTTP status 422: body.seed: too small",
        ),
        (429, {"detail": {"message": "slow down"}}, "Try again in a moment. (HTTP status 429: slow down)"),
    ],
)
async def test_each_refusal_has_its_own_text(vendor: Vendor, status: int, body: object, said: str) -> None:
    vendor.failures = [(status, body)]
    async with open_pixellab(vendor) as client:
        result = await client.call_tool("animate_sprite", {"sprite_id": "char-1"})
    assert result.is_error
    assert said in get_text(result)
    assert len(get_text(result)) < 500
    assert len(vendor.asked) == 1, "it is not asked again"


@pytest.mark.proves("L-tool-pixellab-client")
async def test_a_wrong_key_is_said_without_the_key(vendor: Vendor) -> None:
    async with open_pixellab(vendor, key="wrong-key-98765") as client:
        result = await client.call_tool("animate_sprite", {"sprite_id": "char-1"})
    assert "Check PIXELLAB_API_KEY" in get_text(result)
    assert "98765" not in get_text(result)


@pytest.mark.proves("L-tool-pixellab-client")
@pytest.mark.parametrize("status", [500, 503, 599])
async def test_an_error_of_the_server_is_tried_three_times_more(vendor: Vendor, status: int) -> None:
    async with open_pixellab(vendor) as client:
        vendor.failures = [(status, {"error": "busy"})] * 3
        assert not (await client.call_tool("animate_sprite", {"sprite_id": "char-1"})).is_error
        vendor.failures = [(status, {"error": "busy"})] * 4
        result = await client.call_tool("animate_sprite", {"sprite_id": "char-1"})
    assert "error of its own" in get_text(result)
    assert vendor.failures == []


async def test_a_failed_job_says_why(vendor: Vendor) -> None:
    vendor.job_error = "not suitable"
    async with open_pixellab(vendor) as client:
        result = await client.call_tool("generate_sprite", {"prompt": "a knight"})
    assert result.is_error
    assert "not suitable" in get_text(result)


@pytest.mark.proves("L-tool-pixellab-client")
async def test_a_job_that_never_ends_is_given_up_after_sixty_polls(vendor: Vendor) -> None:
    vendor.polls = 1000
    heard: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        heard.append(message or "")

    async with open_pixellab(vendor) as client:
        result = await client.call_tool("generate_sprite", {"prompt": "a knight"}, progress_callback=hear)
    assert "not ready" in get_text(result)
    assert vendor.paths.count("background-jobs/job-1") == POLLS == 60
    assert POLL_S == 5.0
    assert heard
    assert "at work" in heard[0]


@pytest.mark.proves("L-tool-pixellab-client")
async def test_by_default_it_polls_every_5_s_tries_again_after_2_4_and_8_s_and_waits_120_s(vendor: Vendor) -> None:
    vendor.failures, clock = [(503, {})] * 3, ManualClock()
    probe = Skill("pixellab", description="Makes a sprite without waiting.", settings=PixelLabSettings)

    @probe.tool(tier=Tier.SENSITIVE)
    async def make(context: ToolContext) -> str:
        """Makes it."""
        async with pixellab._pixellab(context) as pixels:
            pixels._pause = pixels._remote._pause = clock.sleep
            await pixels.make_character("a knight", 32, isometric=False, seed=None)
            return f"{pixels._remote._client.timeout.read:g} s"

    section = {"api_key": KEY, "base_url": f"{vendor.url}/v2"}
    async with open_client(probe, sections={"pixellab": section}) as client:
        assert get_text(await client.call_tool("make", {})) == "120 s"
    assert clock.sleeps == [2.0, 4.0, 8.0, *[5.0] * vendor.polls]


async def test_a_vendor_that_is_away_is_said(vendor: Vendor) -> None:
    section = {"api_key": KEY, "base_url": "http://127.0.0.1:9/v2", "retry_pauses_s": [0.0]}
    async with open_client(pixellab.skill, sections={"pixellab": section}) as client:
        result = await client.call_tool("animate_sprite", {"sprite_id": "char-1"})
    assert "cannot be reached" in get_text(result)
    assert vendor.asked == []


@pytest.mark.proves("L-tool-generate-image-pixflux")
async def test_the_tools_are_offered_with_their_bounds(vendor: Vendor) -> None:
    async with open_pixellab(vendor) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"generate_sprite", "generate_image_pixflux", "rotate_sprite", "animate_sprite"}
    prompt = tools["generate_sprite"].input_schema["properties"]["prompt"]
    assert (prompt["minLength"], prompt["maxLength"]) == (1, 500)
    assert json.dumps(tools["rotate_sprite"].input_schema).count("maxItems") == 1
    pixflux = tools["generate_image_pixflux"].input_schema["properties"]
    assert {name: set(field["enum"]) - {None} for name, field in pixflux.items() if "enum" in field} == {
        "detail": {"low detail", "medium detail", "highly detailed"},
        "direction": {
            f"{ns}{'-' if ns and ew else ''}{ew}" for ns in ("north", "south", "") for ew in ("east", "west", "")
        }
        - {""},
        "outline": {"single color black outline", "single color outline", "selective outline", "lineless"},
        "background_removal_task": {"remove_simple_background", "remove_complex_background"},
    }
    hints = tools["animate_sprite"].annotations
    assert hints is not None
    assert hints.read_only_hint is False
