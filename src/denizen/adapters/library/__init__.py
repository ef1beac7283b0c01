"""The library on disk: files of all sources by their content, and the snapshots made of them."""

from denizen.adapters.library.ingestion import ConvertedText, DocumentConverters
from denizen.adapters.library.library import FileLibrary

__all__ = ["ConvertedText", "DocumentConverters", "FileLibrary"]
