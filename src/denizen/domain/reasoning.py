"""A model's reasoning as a platform message in front of the answer, hidden until somebody opens it. Pure.

It is for people to look at: no archive keeps it, so that no later prompt has it.
"""

from __future__ import annotations

from denizen.domain.room import Post

HEAD = "-# reasoned before it answered"
_BARS = "||"


def reasoning_text(thoughts: str, *, limit_chars: int) -> str:
    """Within the limit; a long one is cut at its end."""
    frame = f"{HEAD}\n{_BARS}{_BARS}"
    words = thoughts.strip().replace(_BARS, "|\N{ZERO WIDTH SPACE}|")
    room = limit_chars - len(frame)
    if len(words) > room:
        words = f"{words[: room - 1].rstrip()}…"
    return f"{HEAD}\n{_BARS}{words}{_BARS}"


def is_reasoning(post: Post) -> bool:
    """Whether the post is an agent's reasoning and nothing else."""
    return post.author.is_bot and post.text.startswith(f"{HEAD}\n{_BARS}") and post.text.endswith(_BARS)
