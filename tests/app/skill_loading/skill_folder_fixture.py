"""Skills of an owner in a home folder, for tests: written, enabled, changed."""

from __future__ import annotations

from pathlib import Path

from denizen.app.skill_loading.folder import load_folder
from tests.app.home_folder import Home

LAB = """
models:
  providers: {lab: {kind: openai-compatible, base_url: "http://127.0.0.1:9/v1"}}
  aliases: {balanced: lab/one}
"""

CODE = '''
from denizen.skill import Skill, Tier, ToolContext
from .words import WORD

skill = Skill("{name}", description="Says a word.")


@skill.tool(tier=Tier.HARMLESS)
async def {name}_say(context: ToolContext) -> str:
    """Says a word."""
    from .late import TAIL
    return WORD + TAIL
'''


def write_skill(
    home: Home, name: str, *, word: str = "one", code: str = CODE, manifest: str = "tier: 0", tail: str = "!"
) -> Path:
    """A Python skill of three files."""
    home.add_file(f"skills/{name}/skill.yaml", f"name: {name}\ndescription: Says a word.\n{manifest}\n")
    home.add_file(f"skills/{name}/words.py", f"WORD = {word!r}\n")
    home.add_file(f"skills/{name}/late.py", f"TAIL = {tail!r}\n")
    return home.add_file(f"skills/{name}/skill.py", code.replace("{name}", name)).parent


def enable_skills(home: Home, *names: str, more: str = "") -> str:
    """A configuration that pins the skills as they are now."""
    lines = [f"  {name}: {{sha256: {load_folder(home.path, name).sha256}}}" for name in names]
    return LAB + "skills:\n" + "\n".join(lines) + f"\n{more}\n"
