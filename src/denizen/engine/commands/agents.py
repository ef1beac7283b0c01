"""`/agents`: making an agent by an interview, as `denizen agents create` does.

Each answer is an option of `/agents create`, and is checked at its own step; those that do are kept with the settings
of the caller, so that only what is missing or wrong is said again. In the end the owner sees what would be written, and
says `write: yes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from denizen.domain.agent_draft import QUESTIONS, REQUIRED, check_answer, to_draft
from denizen.domain.errors import DenizenError
from denizen.engine.commands.command import CommandContext, CommandDefinition, OptionSuggester
from denizen.engine.commands.text import code_block, private_reply, rank_suggestions
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec

DRAFT = "agent_draft"
"""The key of the answers among the settings of the caller."""
_SHOWN = "shown"
"""The key of the lines that the caller was shown, among the answers."""
EMPTY = "-"
NOTES_CHARS = 700
"""Room for the words around the change that is shown."""


async def _run(context: CommandContext) -> CommandReply:
    answers = await _load(context)
    if context.command.group == "discard":
        await _keep(context, None)
        return private_reply("The answers are gone." if answers else "There were no answers.")
    given = {step: context.option(step) for step in QUESTIONS if context.option(step)}
    choices, faults = await context.deps.catalogs.agents.load_choices(), list[str]()
    for step, text in given.items():
        try:
            answers[step] = check_answer(step, "" if text == EMPTY else text, choices)
        except DenizenError as error:
            faults.append(f"`{step}`: {error.explain()}")
    seen = "" if given else answers.pop(_SHOWN, "")
    answers.pop(_SHOWN, "")
    missing = [step for step in REQUIRED if not answers.get(step)]
    if faults or missing:
        await _keep(context, answers)
        asked = [f"{QUESTIONS[step]} `/agents create {step}: ...`" for step in missing if step not in given]
        kept = [f"Kept: {', '.join(answers)}."] if answers else []
        return CommandReply("\n".join([*faults, *asked, *kept]), is_failure=bool(faults))
    draft = to_draft(answers)
    lines = await context.deps.catalogs.agents.describe_plan(draft)
    if context.option("write") == "yes" and seen == lines:
        await context.deps.catalogs.agents.create(context.caller.principal, draft)
        await _keep(context, None)
        return private_reply(f"{draft.name} is there now.")
    await _keep(context, {**answers, _SHOWN: lines})
    open_steps = [f"- `{step}`: {question}" for step, question in QUESTIONS.items() if not answers.get(step)]
    more = ["You may still say:", *open_steps] if open_steps else []
    room = context.message_limit - NOTES_CHARS
    is_cut = len(lines) > room
    return private_reply(
        "This would be written, with your texts in full, which are cut here:" if is_cut else "This would be written:",
        code_block(lines, limit=room),
        "`/agents create write:yes` writes it; an answer that you give again replaces the old one, `-` empties it; "
        "`/agents discard` forgets all.",
        *more,
    )


async def _load(context: CommandContext) -> dict[str, str]:
    async with context.store.work(write=False) as work:
        kept = (await work.user_settings.get(context.caller.principal.key)).get(DRAFT)
    return {key: str(value) for key, value in kept.items()} if isinstance(kept, dict) else {}


async def _keep(context: CommandContext, answers: dict[str, str] | None) -> None:
    async with context.store.work() as work:
        await work.user_settings.put(
            context.caller.principal.key, DRAFT, {**answers} if answers else None, now=context.now()
        )


async def _suggest_model(context: CommandContext, typed: str) -> Sequence[str]:
    return rank_suggestions(typed, context.deps.catalogs.agents.list_models())


async def _suggest_tools(context: CommandContext, typed: str) -> Sequence[str]:
    """Completes the last of the words."""
    before, _, last = typed.rpartition(" ")
    found = rank_suggestions(last, await context.deps.catalogs.agents.list_tools())
    return [f"{before} {each}".strip() for each in found]


_ABOUT = {
    "name": "Small letters, digits, - or _.",
    "description": "What it is for, in one sentence.",
    "identity": "Who it is, spoken to it: You are ...",
    "instructions": "What it does, and what it leaves.",
    "tools": "Names or patterns; none by default, * is all that do no great harm.",
    "model": "An alias or provider/model; the usual one by default.",
}
_SUGGESTS: Mapping[str, OptionSuggester] = {"model": _suggest_model, "tools": _suggest_tools}

AGENTS = CommandDefinition(
    CommandSpec(
        "agents",
        "Make an agent.",
        groups=(
            CommandSpec(
                "create",
                "Say what a new agent is like, see what would be written, and write it.",
                (
                    *(
                        CommandOption(step, about, suggests=step in {"tools", "model"})
                        for step, about in _ABOUT.items()
                    ),
                    CommandOption("write", "Write what was shown.", choices=("yes",)),
                ),
            ),
            CommandSpec("discard", "Forget the answers of an agent that was not made."),
        ),
    ),
    _run,
    _SUGGESTS,
)
