"""Lets a model write a new skill from a description. The skill is checked without being run, and waits disabled for
its owner.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, cast

from denizen.builtin_skills.skill_manager import describe_author, describe_check, require_owner
from denizen.skill import NotAllowed, Param, Skill, Tier, ToolContext, ToolError

TRIES = 3

skill = Skill("skill_agent", description="Lets a model write a new skill.")

_RULES = """You write a skill for Denizen, a program whose agents use tools.

{guide}

Reply with one JSON object and nothing else: its keys are file names, its values the whole texts of the files. Write the
smallest skill that does what is asked, with one or two examples in skill.yaml. The request is what the skill should do;
ask for no permission that it does not need."""
_AGAIN = (
    "{request}\n\nYour last answer was:\n{answer}\n\nThe check found:\n{problems}\nWrite all files again, corrected."
)


@skill.tool(tier=Tier.DANGEROUS, timeout_s=300.0, listed_only=True)
async def write_skill(
    context: ToolContext,
    name: Annotated[str, Param("a-z, 0-9 and _", max_length=48)],
    description: Annotated[str, Param("what it should do", min_length=10, max_length=4000)],
) -> str:
    """Writes a new skill from a description. It stays disabled until the owner enables it."""
    require_owner(context, "have skills written")
    if context.skill_editor is None or context.ask_model is None:
        raise NotAllowed("skills cannot be written from here")
    shop, rules = context.skill_editor, _RULES.format(guide=context.skill_editor.guide())
    request = f"Name of the skill: {name}\nWhat it should do: {description}"
    text, author = request, describe_author(context)
    problems, is_there = ["the model wrote nothing that can be read as files"], False
    # The check tells the model what is wrong, and it mostly mends it at the second try.
    for _ in range(TRIES):
        answer = await context.ask_model(rules, text, max_output_tokens=8000)
        files = read_files(answer)
        if files:
            problems = []
            if is_there:
                for file, content in files.items():
                    problems = list(await shop.edit(name, file, content, by=author))
            else:
                problems = list(await shop.create(name, files, by=author))
                is_there = True
        if not problems:
            break
        text = _AGAIN.format(request=request, answer=answer[:20_000], problems="\n".join(problems))
    if not is_there:
        raise ToolError("The model did not write a readable skill. Describe it in other words, or write it yourself.")
    return describe_check(name, problems)


def read_files(answer: str) -> dict[str, str]:
    """Returns the files in a model's answer, which may be fenced or have words around it; empty when there are none."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"\{", answer):
        try:
            value, _ = decoder.raw_decode(answer, match.start())
        except (ValueError, RecursionError):
            continue
        found = cast("dict[str, object]", value)
        if found and all(isinstance(text, str) for text in found.values()):
            return {file: str(text) for file, text in found.items()}
    return {}
