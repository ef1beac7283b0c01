"""Secrets by reference: the configuration names them, adapters ask for the value at the moment of use."""

from __future__ import annotations

from typing import Protocol


class Secrets(Protocol):
    def get(self, name: str) -> str:
        """The value. Raises NeedsAttention, naming the variable and never a value, when it is not set."""
        ...

    def mask(self, text: str) -> str:
        """The text with every known secret value replaced by `***`."""
        ...
