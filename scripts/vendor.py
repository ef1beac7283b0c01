"""`python -m scripts.vendor` fetches the scripts of others that the pages load; `manifest.json` beside them lists them.

Each file is taken from a release on npm, and kept only if its sha256 is that of the manifest; with `--accept` the
manifest takes the digests of what came, for a change of version. `python -m scripts.vendor --check` compares the files
that are here, without asking anybody; `tests/web/test_vendor.py` does that too.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

VENDOR = Path(__file__).parents[1] / "src" / "denizen" / "web" / "static" / "vendor"
MANIFEST = VENDOR / "manifest.json"


def find_differences() -> Iterator[str]:
    """Yields what of the folder and its manifest do not fit."""
    manifest = read_manifest()
    here = {path.name for path in VENDOR.iterdir()} - {MANIFEST.name}
    for name in sorted(here ^ manifest.keys()):
        yield f"{name}: is {'not in the manifest' if name in here else 'missing'}"
    for name in sorted(here & manifest.keys()):
        if sha256(VENDOR / name) != manifest[name]["sha256"]:
            yield f"{name}: is not the file of its release"


def read_manifest() -> dict[str, dict[str, str]]:
    """Returns package, version, path in the package, license and sha256 by the name of the file here."""
    return json.loads(MANIFEST.read_text())


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fetch(*, accepts: bool) -> None:
    """Fetches all files. Raises SystemExit when one is not the one that the manifest names."""
    manifest = read_manifest()
    with tempfile.TemporaryDirectory() as folder:
        for name, entry in manifest.items():
            release = f"{entry['package']}@{entry['version']}"
            command = ["npm", "pack", "--silent", release]
            packed = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)  # noqa: S603
            with tarfile.open(Path(folder) / packed.stdout.strip().splitlines()[-1]) as archive:
                member = archive.extractfile(f"package/{entry['path']}")
                if member is None:
                    raise SystemExit(f"{release} has no {entry['path']}")
                content = member.read()
            digest = hashlib.sha256(content).hexdigest()
            if accepts:
                entry["sha256"] = digest
            elif digest != entry["sha256"]:
                raise SystemExit(f"{name}: {release} has another {entry['path']} than the manifest says")
            (VENDOR / name).write_bytes(content)
    MANIFEST.write_text(json.dumps(manifest, indent=2) + "\n")


def main(arguments: Sequence[str]) -> int:
    if "--check" in arguments:
        found = list(find_differences())
        sys.stdout.write("".join(f"{each}\n" for each in found))
        return bool(found)
    fetch(accepts="--accept" in arguments)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
