"""Builds a release into dist/release: wheel, sdist, the list of parts (SBOM), their licences, and sums of it all.

It refuses while the version is not the same everywhere, or the changelog has no heading for it. The parts are the
packages of locks/run.txt. With SIGNING_KEY, a private key of ssh, the sums are signed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OUT = ROOT / "dist" / "release"
NAMESPACE = "denizen-release"
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)", re.MULTILINE)


def find_problems(root: Path) -> Iterator[str]:
    """Says what keeps a release from being built."""
    version = read_version(root)
    code = (root / "src" / "denizen" / "__init__.py").read_text(encoding="utf-8")
    if f'__version__ = "{version}"' not in code:
        yield f"src/denizen/__init__.py has another version than pyproject.toml, which says {version}"
    chart = (root / "deploy" / "helm" / "denizen" / "Chart.yaml").read_text(encoding="utf-8")
    if f'appVersion: "{version}"' not in chart:
        yield f"deploy/helm/denizen/Chart.yaml has another appVersion than {version}"
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        yield f"CHANGELOG.md has no heading `## [{version}] - YYYY-MM-DD`"
    elif re.search(r"^## \[Unreleased\]\s+(?!## )\S", changelog, re.MULTILINE):
        yield "CHANGELOG.md has entries below [Unreleased]"


def read_version(root: Path) -> str:
    return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def list_parts(lock: str) -> list[tuple[str, str, str]]:
    """Returns name, version and licence of each package of a lock, by name; of one that is not installed here, which
    another system needs, the licence is empty.
    """
    return sorted((each["name"], each["version"], _find_licence(each["name"])) for each in _PIN.finditer(lock))


def _find_licence(name: str) -> str:
    try:
        about: Any = importlib.metadata.metadata(name)  # an e-mail message, whose type tells less than it can do
    except importlib.metadata.PackageNotFoundError:
        return ""
    if expression := about.get("License-Expression"):
        return str(expression)
    named: list[str] = about.get_all("Classifier") or []
    classified = [each.rpartition(" :: ")[2] for each in named if each.startswith("License")]
    return " / ".join(classified) or str(about.get("License") or "").partition("\n")[0][:80] or _read_title(name)


def _read_title(name: str) -> str:
    """Returns the first line of the licence that a package ships, for one whose metadata do not name it."""
    files = importlib.metadata.files(name) or []
    texts = [each for each in files if each.parent.name == "licenses"]
    return texts[0].read_text(encoding="utf-8").strip().partition("\n")[0][:80] if texts else ""


def render_sbom(version: str, parts: list[tuple[str, str, str]]) -> str:
    """Returns the list of parts in CycloneDX JSON."""
    # The classes are wrapped by their library, so that type checkers see nothing of them.
    model: Any = import_module("cyclonedx.model.component")
    licences: Any = import_module("cyclonedx.model.license")
    output: Any = import_module("cyclonedx.output.json")
    urls: Any = import_module("packageurl")
    bom: Any = import_module("cyclonedx.model.bom").Bom()
    bom.metadata.component = model.Component(name="denizen", version=version, type=model.ComponentType.APPLICATION)
    for name, number, licence in parts:
        component = model.Component(
            name=name,
            version=number,
            type=model.ComponentType.LIBRARY,
            purl=urls.PackageURL("pypi", None, name.lower(), number),
            licenses=[licences.DisjunctiveLicense(name=licence)] if licence else [],
        )
        bom.components.add(component)
        bom.register_dependency(bom.metadata.component, [component])
    return str(output.JsonV1Dot6(bom).output_as_string(indent=2)) + "\n"


def render_licences(parts: list[tuple[str, str, str]]) -> str:
    rows = [f"| {name} | {version} | {licence or 'not installed here'} |" for name, version, licence in parts]
    return "\n".join(["| package | version | licence |", "|---|---|---|", *rows]) + "\n"


def main() -> int:
    problems = list(find_problems(ROOT))
    for each in problems:
        sys.stderr.write(f"error: {each}\n")
    if problems:
        return 1
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    subprocess.run([ROOT / "scripts" / "build", OUT], check=True)  # noqa: S603 - a script of this repository
    (OUT / ".gitignore").unlink(missing_ok=True)
    version = read_version(ROOT)
    parts = list_parts((ROOT / "locks" / "run.txt").read_text(encoding="utf-8"))
    (OUT / f"denizen-{version}.cdx.json").write_text(render_sbom(version, parts), encoding="utf-8")
    (OUT / "licences.md").write_text(render_licences(parts), encoding="utf-8")
    sums = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in sorted(OUT.iterdir())]
    (OUT / "sha256sums.txt").write_text("".join(sums), encoding="utf-8")
    if key := os.environ.get("SIGNING_KEY"):
        command = ["ssh-keygen", "-Y", "sign", "-f", key, "-n", NAMESPACE, str(OUT / "sha256sums.txt")]
        subprocess.run(command, check=True)  # noqa: S603 - fixed program
    sys.stdout.write("".join(f"dist/release/{each.name}\n" for each in sorted(OUT.iterdir())))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
