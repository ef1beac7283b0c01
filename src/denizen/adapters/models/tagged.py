"""Thinking that open-weight models write into their text, between tags at its beginning: told apart from the answer.

The vendor's layer knows the tags only when they arrive alone; servers cut streams as they like. Pure; used by `model`
for deltas and by `reply` for the whole text.
"""

from __future__ import annotations

from collections.abc import Iterator

from denizen.ports.model import TextDelta, ThinkingDelta

_OPEN = ("<think>", "<thinking>")
_CLOSE = {"<think>": "</think>", "<thinking>": "</thinking>"}


class TagSplitter:
    """Feed it the text as it comes. Only a tag before any other text counts: later ones are talk about tags."""

    def __init__(self) -> None:
        self._held = ""
        self._close = ""
        self._in_text = False
        self._answered = False

    def feed(self, text: str) -> Iterator[TextDelta | ThinkingDelta]:
        """What is certain by now; the rest is held until more comes."""
        if self._in_text:
            yield from self._say(text)
            return
        self._held += text
        if not self._close:
            yield from self._begin()
        if self._close:
            yield from self._think()

    def finish(self) -> Iterator[TextDelta | ThinkingDelta]:
        """What was still held when the stream ended."""
        held, self._held = self._held, ""
        if held:
            yield ThinkingDelta(held) if self._close else TextDelta(held)

    def _begin(self) -> Iterator[TextDelta]:
        """Takes the opening tag off, or finds that there is none."""
        start = self._held.lstrip()
        for tag in _OPEN:
            if start.startswith(tag):
                self._close, self._held = _CLOSE[tag], start.removeprefix(tag)
                return
        if not any(tag.startswith(start) for tag in _OPEN):
            self._in_text = self._answered = True
            held, self._held = self._held, ""
            yield TextDelta(held)

    def _think(self) -> Iterator[TextDelta | ThinkingDelta]:
        thought, closed, rest = self._held.partition(self._close)
        if closed:
            self._in_text, self._held = True, ""
            if thought:
                yield ThinkingDelta(thought)
            yield from self._say(rest)
            return
        # The end may be the beginning of the closing tag.
        keep = next((n for n in range(len(self._close) - 1, 0, -1) if self._held.endswith(self._close[:n])), 0)
        certain, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        if certain:
            yield ThinkingDelta(certain)

    def _say(self, text: str) -> Iterator[TextDelta]:
        """The answer; white space between the thinking and it belongs to neither."""
        answer = text if self._answered else text.lstrip()
        if answer:
            self._answered = True
            yield TextDelta(answer)


def split_tagged(text: str) -> tuple[str, str]:
    """The thinking at the beginning of a whole text, and the answer."""
    splitter = TagSplitter()
    found = [*splitter.feed(text), *splitter.finish()]
    thought = "".join(piece.text for piece in found if isinstance(piece, ThinkingDelta))
    return thought, "".join(piece.text for piece in found if isinstance(piece, TextDelta))
