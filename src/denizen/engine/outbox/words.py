"""What people on a platform read about a turn that failed: one table from the family of the error to a sentence.

Nothing of the inside is told; the reference finds the turn in the trace (`denizen trace`).
"""

from __future__ import annotations

from denizen.domain.attention import AccountPolicy
from denizen.domain.turn import Turn

_SAFE = frozenset({"InvalidInput", "NotFound", "Exhausted", "NotAllowed"})
"""Families whose own words are meant for who asked."""
_WORDS = {
    "Unavailable": "I cannot reach my model just now. Please try again in a little while.",
    "NeedsAttention": "Something here needs whoever runs me; I cannot answer until then.",
    "NeedsApproval": "This needs somebody's approval first.",
    "Conflict": "Something changed meanwhile. Please try again.",
}
NOT_SHOWN = "I made something that cannot be shown here."
"""In the place of cards and files that the platform refused."""
NOTHING = "I have nothing to show for that."
"""In the place of an answer without a word or a picture: a question never stays without a reply."""

_UNKNOWN = "Something went wrong on my side, and I could not answer."
_OWN = {
    "turn_timeout": "This took too long, so I stopped.",
    "turn_lost": "I was interrupted. Please ask again.",
    # What a provider says about these names accounts and addresses of the operator.
    "model_quota": "My budget for this is used up for now.",
    "model_rejected": "My model refused this request.",
    "context_too_long": "This has become too long for me. `/compact` or `/new` helps.",
}


def failure_text(turn: Turn, account_policy: AccountPolicy) -> str:
    """The configured text (inventory L-config-error-message) or the sentence of the family, with the reference."""
    if account_policy.style.error_message:
        words = account_policy.style.error_message
    elif turn.failure_code in _OWN:
        words = _OWN[turn.failure_code]
    elif turn.failure_family in _SAFE:
        words = turn.failure
    else:
        words = _WORDS.get(turn.failure_family, _UNKNOWN)
    return f"{words}\n-# Reference: {turn.id}"
