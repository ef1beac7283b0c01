"""Git repositories as sources, and one that snapshots are pushed to, by the `git` program."""

from denizen.adapters.git.reader import GitReader
from denizen.adapters.git.remote import GitRemote

__all__ = ["GitReader", "GitRemote"]
