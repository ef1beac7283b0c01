"""An agent as people describe it before it exists: the answers of an interview, and what each has to be like. Pure.

`engine/agents/catalog.py` writes it into the configuration. Whoever asks the questions, a terminal or a model, checks
each answer at its own step with the functions here; `check_draft` checks them all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType

from denizen.domain.errors import Conflict, InvalidInput
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record

IDENTITY_FILE, RULES_FILE = "IDENTITY.md", "RULES.md"
"""The files of a persona that a draft fills: who the agent is, and what it has to do."""
MAX_DESCRIPTION_CHARS = 300
MAX_TEXT_CHARS = 8000
MAX_TOOLS = 60

QUESTIONS: Mapping[str, str] = MappingProxyType(
    {
        "name": "Name",
        "description": "What is it for, in one sentence?",
        "identity": "Who is it? (You are ...; empty for the usual character)",
        "instructions": "What does it do, and what does it leave? (may be empty)",
        "tools": "Tools, none by default; * is all that do no great harm",
        "model": "Model (empty for the usual one)",
    }
)
"""The steps of an interview, in their order."""
REQUIRED = ("name", "description")

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_SIGNS = re.compile(r"[*?\[]")


@record(kw_only=True)
class AgentDraft:
    """The answers about an agent that is to be made. `identity` is who it is, `instructions` what it does and leaves;
    without either it has the usual persona. `tools` are names and patterns; without any it has none. `model` is empty
    for the usual one.
    """

    name: str
    description: str
    identity: str = ""
    instructions: str = ""
    tools: tuple[str, ...] = ()
    model: str = ""

    @property
    def section(self) -> JsonObject:
        """The keys and values below `agents.NAME` of the configuration."""
        model: dict[str, Json] = {"model": self.model} if self.model else {}
        return {"description": self.description, **model, "tools": list(self.tools)}

    @property
    def files(self) -> Mapping[str, str]:
        """The Markdown files of its folder, by name."""
        texts = {IDENTITY_FILE: self.identity, RULES_FILE: self.instructions}
        return {name: f"{text}\n" for name, text in texts.items() if text}


@record
class AgentChoices:
    """The agents, tools and models that there are."""

    agents: Collection[str]
    tools: Collection[str]
    models: Sequence[str]


def check_answer(step: str, text: str, choices: AgentChoices) -> str:
    """Returns the answer to one of the `QUESTIONS`. Raises InvalidInput and Conflict for one that does not do."""
    match step:
        case "name":
            return check_name(text, choices.agents)
        case "description":
            return check_description(text)
        case "tools":
            return " ".join(check_tools(split_words(text), choices.tools))
        case "model":
            return check_model(text, choices.models)
        case _:
            return check_text(text)


def to_draft(answers: Mapping[str, str]) -> AgentDraft:
    """Returns the draft that the answers to `QUESTIONS` make."""
    texts = {step: answers.get(step, "") for step in QUESTIONS if step != "tools"}
    return AgentDraft(**texts, tools=split_words(answers.get("tools", "")))


def check_name(text: str, taken: Collection[str]) -> str:
    """Returns a new agent's name. Raises InvalidInput for what is none, Conflict for one that is taken."""
    name = text.strip()
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            "This cannot be an agent's name.",
            code="agent_name_invalid",
            fix="Use 1 to 32 small letters, digits, - and _; begin with a letter or digit.",
        )
    if name in taken:
        raise Conflict(f"There is an agent '{name}' already.", code="agent_exists", fix="Choose another name.")
    return name


def check_description(text: str) -> str:
    """Returns what an agent is for, in one line. Raises InvalidInput."""
    said = " ".join(text.split())
    if not said:
        raise InvalidInput("It has to be said what the agent is for.", code="agent_text_invalid", fix="Say it briefly.")
    return _check_text(said, MAX_DESCRIPTION_CHARS)


def check_text(text: str) -> str:
    """Returns a text of the persona, which may be empty. Raises InvalidInput."""
    return _check_text(text.strip(), MAX_TEXT_CHARS)


def _check_text(text: str, most: int) -> str:
    if len(text) > most:
        raise InvalidInput(f"This text is longer than {most} characters.", code="agent_text_invalid", fix="Shorten it.")
    if "${" in text:
        raise InvalidInput(
            "The text of an agent must not refer to a variable.",
            code="agent_text_invalid",
            why="`${NAME}` stands for a secret, which would end up in a prompt",
            fix="Leave it out.",
        )
    return text


def split_words(text: str) -> tuple[str, ...]:
    """Returns the words of an answer that lists some, with commas or spaces between, each once."""
    return tuple(dict.fromkeys(text.replace(",", " ").split()))


def check_tools(tools: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Returns the names and patterns. Raises InvalidInput for one that no known tool has."""
    if len(tools) > MAX_TOOLS:
        raise InvalidInput(f"{MAX_TOOLS} tools are as many as can be named.", code="agent_tools_invalid")
    patterns = {each for each in tools if _SIGNS.search(each)}
    unknown = [
        each
        for each in tools
        if each not in known and not (each in patterns and any(fnmatchcase(tool, each) for tool in known))
    ]
    if unknown:
        raise InvalidInput(
            f"There is no tool {', '.join(each[:64] for each in unknown)}.",
            code="agent_tools_invalid",
            fix="Take names of the list, or patterns such as *_note.",
        )
    return tuple(dict.fromkeys(tools))


def check_model(text: str, known: Sequence[str]) -> str:
    """Returns the word for a model, empty for the usual one. Raises InvalidInput for one that is not configured."""
    word = text.strip()
    if word and word not in known:
        raise InvalidInput(
            f"There is no model '{word[:100]}'.",
            code="agent_model_invalid",
            fix=f"Choose one of: {', '.join(known[:20])}; or none for the usual one.",
        )
    return word


def check_draft(
    draft: AgentDraft, *, taken: Collection[str], tools: Collection[str], models: Sequence[str]
) -> AgentDraft:
    """Returns the draft as it is written. Raises what the checks of its answers raise."""
    return AgentDraft(
        name=check_name(draft.name, taken),
        description=check_description(draft.description),
        identity=check_text(draft.identity),
        instructions=check_text(draft.instructions),
        tools=check_tools(draft.tools, tools),
        model=check_model(draft.model, models),
    )
