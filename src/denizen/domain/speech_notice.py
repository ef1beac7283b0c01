"""The post of an account about what it has understood of somebody in a voice channel. Pure.

The listener archives it as a message of the speaker, who can opt out and be forgotten. To other accounts of ours it is
a post of that account, which no archive keeps.
"""

from __future__ import annotations

from denizen.domain.room import Post

_HEAD = "🎙️ **"


def write_speech_notice(name: str, text: str) -> str:
    """Returns the text of the post. `name` and `text` are escaped for Markdown."""
    return f"{_HEAD}{name}**: {text}"


def is_speech_notice(post: Post) -> bool:
    """Whether the post has that form, whoever wrote it."""
    return post.text.startswith(_HEAD)
