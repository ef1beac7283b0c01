"""Reading and writing files of this machine, below folders that the owner names; off unless switched on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated

from denizen.skill import Param, Skill, Taint, Tier, ToolContext
from denizen.skills.paging import read_part
from denizen.skills.places import AllowedFolders


@dataclass(frozen=True, slots=True)
class FileSettings:
    """`allowed` are absolute paths of folders; nothing outside of them is reached, not through links either."""

    allowed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for path in self.allowed:
            if not PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise ValueError("write each folder as an absolute path without `..`, such as /srv/shared")


skill = Skill("files", description="Reads and writes files in allowed folders.", settings=FileSettings)

FilePath = Annotated[str, Param("absolute, or below the first allowed folder", max_length=1000)]


@skill.tool(tier=Tier.SENSITIVE, reads=[Taint.DOCUMENT])
def read(context: ToolContext, path: FilePath, start: Annotated[int, Param("character to begin at", ge=0)] = 0) -> str:
    """Reads a text file."""
    part, more = read_part(_places(context).read(path), start, what=path)
    return "\n".join(filter(None, (part, more))) or "The file is empty."


@skill.tool(tier=Tier.DANGEROUS)
def write(context: ToolContext, path: FilePath, content: str) -> str:
    """Writes a new text file."""
    is_new = _places(context).write(path, content, replace=False)
    return f"Wrote {path}." if is_new else f"{path} has this content already."


@skill.tool(tier=Tier.DANGEROUS, destructive=True)
def replace_file(context: ToolContext, path: FilePath, content: str) -> str:
    """Replaces the whole content of a text file."""
    is_new = _places(context).write(path, content, replace=True)
    return f"Replaced {path}." if is_new else f"{path} has this content already."


def _places(context: ToolContext) -> AllowedFolders:
    return AllowedFolders(context.settings(FileSettings).allowed)
