"""The toolbox: its tools over MCP, and the programs as they are installed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from denizen.builtin_skills import time
from denizen.domain.errors import InvalidInput
from denizen_mcp import toolbox as greynoise
from denizen_mcp import toolbox as painter
from denizen_mcp.server import read_variables
from denizen_mcp.toolbox import VARIABLES
from tests.mcp_servers.mcp_client import get_links, get_picture, get_text, open_client
from tests.mcp_servers.vendor_simulator import KEY, Vendor

pytestmark = pytest.mark.anyio
BIN = Path(sys.executable).parent


@pytest.mark.proves("L-config-greynoise", "L-tool-greynoise")
async def test_without_a_key_the_community_is_asked_about_an_address(vendor: Vendor) -> None:
    sections = read_variables(VARIABLES, {"GREYNOISE_BASE_URL": vendor.url})
    async with open_client(greynoise.greynoise_skill, sections=sections) as client:
        known = json.loads(get_text(await client.call_tool("greynoise_ip_address", {"ip_address": "8.8.8.8"})))
        unknown = json.loads(get_text(await client.call_tool("greynoise_ip_address", {"ip_address": "9.9.9.9"})))
    assert vendor.paths == ["/v3/community/8.8.8.8", "/v3/community/9.9.9.9"]
    assert (known["seen"], known["classification"], known["is_common_service"]) == (False, "benign", True)
    assert known["metadata"]["name"] == "Google Public DNS"
    assert set(known) == {"ip", "seen", "classification", "last_seen", "is_common_service", "metadata"}
    assert (unknown["seen"], unknown["classification"], unknown["last_seen"]) == (False, "unknown", None)
    assert greynoise.GreyNoiseSettings() == greynoise.GreyNoiseSettings(api_key="", base_url="https://api.greynoise.io")


@pytest.mark.proves("L-tool-greynoise")
async def test_with_a_key_the_whole_record_is_told(vendor: Vendor) -> None:
    section = {"base_url": vendor.url, "api_key": KEY}
    async with open_client(greynoise.greynoise_skill, sections={"greynoise": section}) as client:
        found = json.loads(get_text(await client.call_tool("greynoise_ip_address", {"ip_address": "8.8.4.4"})))
    assert found == {
        "ip": "8.8.4.4",
        "seen": True,
        "classification": "malicious",
        "first_seen": "2024-01-01",
        "last_seen": "2026-11-01",
        "tags": ["SMBv1 Crawler"],
        "metadata": {"asn": "AS64500", "country": "Nowhere"},
    }


@pytest.mark.proves("L-tool-greynoise")
@pytest.mark.parametrize("address", ["1.2.3", "2001:db8::1", "evil.example", "10.0.0.1", "1.2.3.4/../x"])
async def test_what_is_no_public_ipv4_address_is_asked_of_nobody(vendor: Vendor, address: str) -> None:
    async with open_client(greynoise.greynoise_skill, sections={"greynoise": {"base_url": vendor.url}}) as client:
        result = await client.call_tool("greynoise_ip_address", {"ip_address": address})
    assert result.is_error
    assert vendor.asked == []


@pytest.mark.parametrize(("status", "said"), [(401, "Check GREYNOISE_API_KEY"), (429, "too often")])
async def test_a_refusal_says_what_to_do(vendor: Vendor, status: int, said: str) -> None:
    vendor.failures = [(status, {"message": "no"})]
    async with open_client(greynoise.greynoise_skill, sections={"greynoise": {"base_url": vendor.url}}) as client:
        result = await client.call_tool("greynoise_ip_address", {"ip_address": "8.8.8.8"})
    assert result.is_error
    assert said in get_text(result)


@pytest.mark.proves("L-tool-generate-image")
async def test_pictures_are_painted_as_links_or_as_files(vendor: Vendor) -> None:
    async with open_client(
        painter.painter_skill, sections={"painter": {"base_url": vendor.url, "api_key": KEY, "model": "brush-1"}}
    ) as client:
        links = await client.call_tool("generate_image", {"prompt": "a fox", "n": 2})
        files = await client.call_tool("generate_image", {"prompt": "a fox", "response_format": "b64_json"})
    assert set(get_links(links).values()) == {"https://images.example/1.png"}
    assert "2 pictures" in get_text(links)
    assert "A small red square." in get_text(links)
    assert get_picture(files).size == (8, 8)
    assert vendor.asked[0][1] == {
        "model": "brush-1",
        "prompt": "a fox",
        "n": 2,
        "response_format": "url",
        "user": "api_key:mcp",
    }


@pytest.mark.proves("L-tool-generate-image")
@pytest.mark.parametrize(
    "args",
    [
        {"prompt": ""},
        {"prompt": "x" * 4001},
        {"prompt": "x", "n": 11},
        {"prompt": "x", "n": 0},
        {"prompt": "x", "response_format": "gif"},
    ],
)
async def test_an_order_out_of_range_is_refused(vendor: Vendor, args: dict[str, object]) -> None:
    section = {"base_url": vendor.url, "api_key": KEY}
    async with open_client(painter.painter_skill, sections={"painter": section}) as client:
        assert (await client.call_tool("generate_image", args)).is_error
    assert vendor.asked == []


@pytest.mark.proves("L-tool-generate-image")
@pytest.mark.parametrize(("chars", "n", "said"), [(4000, 10, "10 pictures"), (1, 1, "1 picture is")])
async def test_the_largest_order_and_the_smallest_are_taken(vendor: Vendor, chars: int, n: int, said: str) -> None:
    section = {"base_url": vendor.url, "api_key": KEY}
    async with open_client(painter.painter_skill, sections={"painter": section}) as client:
        result = await client.call_tool("generate_image", {"prompt": "x" * chars, "n": n})
    assert said in get_text(result)


@pytest.mark.proves("L-config-required")
async def test_without_a_key_generating_an_image_says_what_is_missing() -> None:
    async with open_client(painter.painter_skill, sections={}) as client:
        result = await client.call_tool("generate_image", {"prompt": "a fox"})
    assert result.is_error
    assert "IMAGE_API_KEY" in get_text(result)


async def test_built_in_skills_are_offered_as_they_are() -> None:
    async with open_client(time.skill, sections={"time": {"timezone": "Asia/Tokyo"}}) as client:
        result = await client.call_tool("current_time", {})
        unknown = await client.call_tool("no_such_tool", {})
    assert "Asia/Tokyo" in get_text(result)
    assert unknown.is_error


def test_of_two_variables_for_one_field_the_later_counts() -> None:
    sections = read_variables(VARIABLES, {"XAI_API_KEY": "one", "IMAGE_API_KEY": "two"})
    assert sections == {"painter": {"api_key": "two"}}


def test_a_setting_that_does_not_exist_is_refused() -> None:
    from denizen_mcp.server import open_toolsets

    with pytest.raises(InvalidInput, match="no setting"):
        open_toolsets([painter.painter_skill], {"painter": {"colour": "red"}})


async def test_the_programs_speak_mcp_over_their_standard_streams() -> None:
    for program, tool in (("denizen-mcp-toolbox", "weather"), ("denizen-mcp-pixellab", "rotate_sprite")):
        parameters = StdioServerParameters(
            command=str(BIN / program), env={"PIXELLAB_API_KEY": KEY, "PATH": os.environ["PATH"]}
        )
        async with Client(parameters) as client:
            assert tool in {offered.name for offered in (await client.list_tools()).tools}
            if tool == "weather":
                assert "UTC" in get_text(await client.call_tool("current_time", {}))


@pytest.mark.proves("L-config-required")
def test_the_programs_explain_themselves_and_say_what_is_missing() -> None:
    told = subprocess.run([BIN / "denizen-mcp-toolbox", "--help"], capture_output=True, text=True, check=True).stdout
    assert "greynoise_ip_address" in told
    assert "GREYNOISE_API_KEY" in told
    bare = subprocess.run([BIN / "denizen-mcp-pixellab"], capture_output=True, text=True, check=False, env={})
    assert (bare.returncode, bare.stdout) == (2, "")
    assert "PIXELLAB_API_KEY is not set" in bare.stderr
    assert "Set PIXELLAB_API_KEY" in bare.stderr
