"""A bundled server in the test's process, with a real MCP client on it, and what its results hold."""

import base64
import io
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from mcp import Client
from mcp_types import CallToolResult, ImageContent, ResourceLink, TextContent
from PIL import Image

from denizen.skill import Skill
from denizen_mcp.server import Sections, build_server, open_toolsets


@asynccontextmanager
async def open_client(*skills: Skill, sections: Sections) -> AsyncGenerator[Client]:
    async with Client(build_server("test", open_toolsets(skills, sections))) as client:
        yield client


def get_text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def get_picture(result: CallToolResult) -> Image.Image:
    block = next(block for block in result.content if isinstance(block, ImageContent))
    return Image.open(io.BytesIO(base64.b64decode(block.data)))


def get_links(result: CallToolResult) -> dict[str, str]:
    return {block.name: str(block.uri) for block in result.content if isinstance(block, ResourceLink)}
