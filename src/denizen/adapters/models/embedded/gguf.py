"""GGUF files: the scalar metadata of the header, and the chat template to run a model with.

`load_gguf_header` is a bounds-checked reader of the key/value section (strings and numbers; arrays are skipped).
Tensors are left to llama.cpp.

Most models run with the template in their weights file. Qwen2.5-Coder's own template asks for `<tool_call>` tags, but
the model was not trained on them and answers with a fenced json block, which the server then leaves in the text. The
corrected template asks for what the model does.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from denizen.domain.errors import InvalidInput
from denizen.domain.record import record

MAGIC = b"GGUF"

Scalar: TypeAlias = str | int | float | bool

_STRING = 8
_ARRAY = 9
_FORMATS: Mapping[int, str] = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_VERSIONS = (2, 3)


@record
class GgufHeader:
    """Scalar metadata by key, for example `general.architecture` or `tokenizer.chat_template`."""

    metadata: Mapping[str, Scalar]

    def find_text(self, key: str) -> str | None:
        """Returns the string stored under `key`, if there is one."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    def find_number(self, key: str) -> int | None:
        """Returns the integer stored under `key`, if there is one."""
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def is_gguf(path: Path) -> bool:
    """Returns whether the file starts with the GGUF magic. Raises OSError as `open` does."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def load_gguf_header(path: Path) -> GgufHeader:
    """Reads the metadata of a little-endian GGUF file of version 2 or 3.

    Raises InvalidInput when the file is not GGUF or its header is cut short; OSError as `open` does.
    """
    if not is_gguf(path):
        raise _not_readable(path, "it does not start with the bytes GGUF")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return GgufHeader(_Cursor(data).read_metadata())
        except (struct.error, UnicodeDecodeError, ValueError) as error:
            raise _not_readable(path, str(error)) from error


def _not_readable(path: Path, why: str) -> InvalidInput:
    return InvalidInput(
        f"{path} is not a model file that the embedded runtime can read.",
        code="weights_not_gguf",
        why=why,
        fix="Give the path of a complete GGUF file (version 2 or 3).",
        path=str(path),
    )


class _Cursor:
    """Walks the key/value section; every step is checked against the end of the file."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = len(MAGIC)

    def read_metadata(self) -> dict[str, Scalar]:
        version = self._number("<I")
        if version not in _VERSIONS:
            raise ValueError(f"GGUF version {version} is not one of {_VERSIONS}")
        self._number("<Q")  # how many tensors
        metadata: dict[str, Scalar] = {}
        for _ in range(self._number("<Q")):
            key = self._text()
            kind = self._number("<I")
            value = self._value(kind)
            if value is not None:
                metadata[key] = value
        return metadata

    def _value(self, kind: int) -> Scalar | None:
        if kind == _STRING:
            return self._text()
        if kind == _ARRAY:
            self._step_over_array()
            return None
        value: int | float | bool = self._unpack(_format(kind))
        return value

    def _step_over_array(self) -> None:
        kind, count = self._number("<I"), self._number("<Q")
        if kind == _STRING:
            for _ in range(count):
                self._advance(self._number("<Q"))
        else:
            self._advance(count * struct.calcsize(_format(kind)))

    def _text(self) -> str:
        length = self._number("<Q")
        start = self._at
        self._advance(length)
        return self._data[start : self._at].decode()

    def _number(self, fmt: str) -> int:
        return int(self._unpack(fmt))

    def _unpack(self, fmt: str) -> int | float | bool:
        start = self._at
        self._advance(struct.calcsize(fmt))
        value: int | float | bool = struct.unpack_from(fmt, self._data, start)[0]
        return value

    def _advance(self, count: int) -> None:
        if count > len(self._data) - self._at:
            raise ValueError("the header ends in the middle of a value")
        self._at += count


def _format(kind: int) -> str:
    try:
        return _FORMATS[kind]
    except KeyError:
        raise ValueError(f"value type {kind} is unknown") from None


_FENCE = "```"

# Each fragment stands once in the template. The doubled braces in the first are a slip of the original.
_QWEN_CODER_REPLACEMENTS = (
    (
        (
            r"return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n"
            r"<tool_call>\n{{\"name\": <function-name>, \"arguments\": <args-json-object>}}\n</tool_call><|im_end|>"
        ),
        (
            r"answer with a fenced json block with function name and arguments:\n"
            rf"{_FENCE}json\n{{\"name\": <function-name>, \"arguments\": <args-json-object>}}\n{_FENCE}<|im_end|>"
        ),
    ),
    (r"""'\n<tool_call>\n{"name": "'""", rf"""'\n{_FENCE}json\n{{"name": "'"""),
    (r"'}\n</tool_call>'", rf"'}}\n{_FENCE}'"),
    (
        # Without this line the model repeats the same call for ever.
        r"'\n</tool_response>'",
        (
            r"'\n</tool_response>\nUse this result to answer my question in plain text. "
            r"Call another function only if something is still missing.'"
        ),
    ),
)


def plan_template(header: GgufHeader) -> str | None:
    """Returns the template to use instead of the one in the weights file; None when that one is right."""
    if header.find_text("general.basename") != "Qwen2.5-Coder":
        return None
    template = header.find_text("tokenizer.chat_template") or ""
    if any(template.count(wrong) != 1 for wrong, _ in _QWEN_CODER_REPLACEMENTS):
        return None  # another edition of the template, perhaps corrected by its author
    for wrong, right in _QWEN_CODER_REPLACEMENTS:
        template = template.replace(wrong, right)
    return template


def load_template(weights: Path) -> str | None:
    """Returns `plan_template` for a file. Raises InvalidInput when it is not a readable GGUF file."""
    return plan_template(load_gguf_header(weights))
