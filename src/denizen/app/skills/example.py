"""The skills to begin with, and how a skill is written, for people and for models."""

from __future__ import annotations

_MANIFEST = """\
name: {name}
version: 0.1.0
description: Rolls dice.
# No tool of it has a lower tier than this: 0 harmless, 1 limited by rate, 2 sensitive, 3 dangerous (left out: 3).
tier: 0
# What its context holds: network, tools, history, programs, model.
permissions: []
# Run by `denizen skill test {name}`: the result must hold the text.
examples:
  - {{tool: {name}_roll, args: {{sides: 6, count: 3}}, expect: "rolled"}}
  - {{tool: {name}_roll, args: {{sides: 1}}, expect: "minimum of 2", error: true}}
"""

_CODE = '''\
"""Rolls dice. An example: change it to what you need."""

from __future__ import annotations

import secrets
from typing import Annotated

from denizen.skill import Param, Skill, Tier, ToolContext

skill = Skill("{name}", description="Rolls dice.")


@skill.tool(tier=Tier.HARMLESS)
async def {name}_roll(
    context: ToolContext,
    sides: Annotated[int, Param("2 to 1000", ge=2, le=1000)] = 6,
    count: Annotated[int, Param("how many dice", ge=1, le=20)] = 1,
) -> str:
    """Rolls dice and tells what they show."""
    rolled = [secrets.randbelow(sides) + 1 for _ in range(count)]
    return f"rolled {{', '.join(map(str, rolled))}}, together {{sum(rolled)}}"
'''

_MARKDOWN = """\
---
name: {name}
description: How we write announcements. Read it before you write one.
---

# Announcements

1. Begin with what changes for the reader, in one sentence.
2. Say from when on.
3. End with whom to ask.

Keep it below 120 words. `example.md` shows a good one.
"""

_MARKDOWN_EXAMPLE = """\
The library opens at 8 from Monday on. The early shift is a trial until March. Questions: ask Ana.
"""

GUIDE = f"""\
A skill is a folder. A Python skill has two files:

skill.yaml
```yaml
{_MANIFEST.format(name="dice")}```

skill.py
```python
{_CODE.format(name="dice")}```

Rules: the folder, `name` and Skill(...) have the same name (a-z, 0-9, _). Import from denizen.skill, the standard
library and files of your own (`from .other import thing`) only. Every tool has a docstring of one sentence, a context
as its first parameter and a type for each other parameter (str, int, float, bool, Literal, list, dict). Tool names are
unique among all skills: begin them with the skill's name. Return text; raise ToolError("what is wrong") for what the
caller can correct. `await context.fetch(url)` needs the permission network and gives .status and .text; context.folder
is a folder of its own.

A Markdown skill, which tells how something is done, has one file SKILL.md:
```markdown
{_MARKDOWN.format(name="announcements")}```
"""


def python_example(name: str) -> dict[str, str]:
    """The files of a working Python skill."""
    return {"skill.yaml": _MANIFEST.format(name=name), "skill.py": _CODE.format(name=name)}


def markdown_example(name: str) -> dict[str, str]:
    """The files of a Markdown skill."""
    return {"SKILL.md": _MARKDOWN.format(name=name), "example.md": _MARKDOWN_EXAMPLE}
