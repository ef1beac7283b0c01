"""Writes skills in conversation: create, read, edit, delete, list. For owners only.

Nothing of a written skill runs before its owner has looked at it and enabled it, on its page or on the
command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from denizen.skill import NotAllowed, Param, Skill, SkillEditor, Tier, ToolContext

skill = Skill("skill_manager", description="Writes and deletes the owner's skills.")

Name = Annotated[str, Param("a-z, 0-9 and _", max_length=64)]
SourceFile = Annotated[str, Param("such as skill.py", max_length=200)]


@skill.tool(tier=Tier.DANGEROUS, read_only=True, listed_only=True)
async def list_skills(context: ToolContext) -> str:
    """Lists the owner's skills and whether they are enabled."""
    found = await _workshop(context).list_skills()
    lines = (f"{s.name} ({s.kind}, {s.state}): {s.why or s.description}" for s in found)
    return "\n".join(lines) or "There are no skills yet."


@skill.tool(tier=Tier.DANGEROUS, read_only=True, listed_only=True)
async def view_skill(context: ToolContext, name: Name) -> str:
    """Shows the files of one of the owner's skills."""
    files = await _workshop(context).read(name)
    return "\n\n".join(f"--- {file}\n{text}" for file, text in files.items())


@skill.tool(tier=Tier.DANGEROUS, listed_only=True)
async def create_skill(
    context: ToolContext,
    name: Name,
    files: Annotated[dict[str, str], Param("text by file name; skill.yaml and skill.py")],
) -> str:
    """Writes a new skill. It stays disabled until the owner enables it."""
    return describe_check(name, await _workshop(context).create(name, files, by=describe_author(context)))


@skill.tool(tier=Tier.DANGEROUS, listed_only=True)
async def edit_skill(context: ToolContext, name: Name, file: SourceFile, text: str) -> str:
    """Replaces one file of a skill, which is disabled by that until the owner enables it again."""
    return describe_check(name, await _workshop(context).edit(name, file, text, by=describe_author(context)))


@skill.tool(tier=Tier.DANGEROUS, destructive=True, listed_only=True)
async def delete_skill(context: ToolContext, name: Name) -> str:
    """Deletes a skill with all its files."""
    await _workshop(context).delete(name)
    return f"The skill {name} is deleted."


def describe_check(name: str, problems: Sequence[str]) -> str:
    """Tells a model the outcome of writing a skill. `problems` are lines of the check."""
    state = f"It is disabled. Its owner can look at it and run: denizen skill enable {name}"
    if problems:
        return f"The skill {name} is written, but the check found:\n" + "\n".join(problems) + f"\nEdit it. {state}"
    return f"The skill {name} is written and passes the check. {state}"


def describe_author(context: ToolContext) -> str:
    """Returns who writes a skill, as its owner reads it."""
    return f"{context.agent} for {context.principal.name}"


def _workshop(context: ToolContext) -> SkillEditor:
    require_owner(context, "write skills")
    if context.skill_editor is None:
        raise NotAllowed("skills cannot be written from here")
    return context.skill_editor


OWNER = "owner"


def require_owner(context: ToolContext, what: str) -> None:
    """Raises NotAllowed unless an owner asks, whatever the gate decided."""
    if OWNER not in context.principal.roles:
        raise NotAllowed(f"only an owner may {what}")
