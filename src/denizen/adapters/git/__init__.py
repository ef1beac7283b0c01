"""Git repositories as sources, read by the `git` program."""

from denizen.adapters.git.reader import GitReader

__all__ = ["GitReader"]
