"""Secrets by reference: the configuration names them, adapters ask for the value at the moment of use."""

from __future__ import annotations

from typing import Protocol


class Secrets(Protocol):
    """The secrets of this home folder."""

    def get(self, name: str) -> str:
        """Returns the value. Raises NeedsAttention, which names the variable and never a value, when it is not set."""
        ...

    def mask(self, text: str) -> str:
        """Returns the text with every known secret value replaced by `***`."""
        ...
