"""Why a line is not run. The text is for a model: what is wrong, and what to write instead."""

from __future__ import annotations


class CommandRefusedError(Exception):
    """Raised before anything of the line runs."""

    def __init__(self, reason: str, instead: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.instead = instead

    def explain(self) -> str:
        return f"refused: {self.reason}. {self.instead}".rstrip() + "\n"
