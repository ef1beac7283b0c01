"""The decorator of records. The SDK has it, made of the standard library alone: its records are the server's, too."""

from denizen_sdk.records import record

__all__ = ["record"]
