"""What the prompts of a turn were made of; a segment's text lies apart, once, under its hash. Called by `turns`."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.tables.turns import prompt_texts, prompts
from denizen.domain.ids import TurnId
from denizen.domain.prompt import Stability
from denizen.domain.trace import MessageUse, PromptUse, SegmentUse

_PROMPTS = sa.select(prompts).where(prompts.c.turn_id == sa.bindparam("turn")).order_by(prompts.c.step)
_TEXTS = sa.select(prompt_texts).where(prompt_texts.c.sha256.in_(sa.bindparam("hashes", expanding=True)))


@cache
def _add_once(insert: InsertInto, table: sa.Table) -> sa.Executable:
    return insert(table).on_conflict_do_nothing().inline()


def add_prompt(connection: sa.Connection, insert: InsertInto, prompt: PromptUse) -> None:
    """Repeating it changes nothing."""
    texts = {s.sha256: s.text for s in prompt.segments if s.text is not None}
    if texts:
        rows = [{"sha256": sha256, "text": text} for sha256, text in sorted(texts.items())]
        connection.execute(_add_once(insert, prompt_texts), rows)
    connection.execute(
        _add_once(insert, prompts),
        {
            "turn_id": prompt.turn_id,
            "step": prompt.step,
            "model": prompt.model,
            "segments": [[s.name, int(s.stability), s.chars, s.tokens, s.sha256] for s in prompt.segments],
            "messages": [[m.kind, m.count, m.tokens] for m in prompt.messages],
            "tools": list(prompt.tools),
            "tool_tokens": prompt.tool_tokens,
            "memories": list(prompt.memories),
        },
    )


def list_prompts(connection: sa.Connection, turn_id: TurnId) -> list[PromptUse]:
    """By step."""
    rows = connection.execute(_PROMPTS, {"turn": turn_id}).all()
    hashes = {segment[-1] for row in rows for segment in row.segments}
    found = connection.execute(_TEXTS, {"hashes": sorted(hashes)}) if hashes else ()
    texts = {row.sha256: row.text for row in found}
    return [_prompt(row, texts) for row in rows]


def _prompt(row: sa.Row[Any], texts: dict[str, str]) -> PromptUse:
    return PromptUse(
        turn_id=row.turn_id,
        step=row.step,
        model=row.model,
        segments=tuple(
            SegmentUse(name, Stability(stability), chars, tokens, sha256, texts.get(sha256))
            for name, stability, chars, tokens, sha256 in row.segments
        ),
        messages=tuple(MessageUse(*message) for message in row.messages),
        tools=tuple(row.tools),
        tool_tokens=row.tool_tokens,
        memories=tuple(row.memories),
    )
