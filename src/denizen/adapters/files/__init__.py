"""Folders of this machine as sources."""

from denizen.adapters.files.reader import FolderReader

__all__ = ["FolderReader"]
