"""Folders of this machine as sources, and the one that has learned answers."""

from denizen.adapters.files.learned import LearnedFolder
from denizen.adapters.files.reader import FolderReader

__all__ = ["FolderReader", "LearnedFolder"]
