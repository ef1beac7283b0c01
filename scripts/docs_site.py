"""Builds the documentation as a site in dist/site: `python -m scripts.docs_site [NAME]`, or `make docs-site`.

    dist/site/0.3.0/         the pages of that version, with a search of their own; kept when the next one is built
    dist/site/latest/        a copy of the newest version
    dist/site/versions.json  what the selector on each page offers
    dist/site/index.html     leads to latest/

The layout is that of mike, so that any server of files can show it. NAME is the version of pyproject.toml unless it is
given; one that is no version, such as `main`, is never the latest while there is one that is. A page that breaks leaves
the site as it was.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from packaging.version import InvalidVersion, Version

from scripts.release.__main__ import read_version

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "dist" / "site"
LATEST = "latest"
_TO_LATEST = f"""\
<!doctype html>
<meta charset="utf-8">
<title>Denizen</title>
<meta http-equiv="refresh" content="0; url={LATEST}/index.html">
<a href="{LATEST}/index.html">The documentation of the latest version</a>
"""


class SiteError(Exception):
    """Pages of which no site is made, with what MkDocs said."""


def build_version(root: Path, site: Path, name: str) -> None:
    """Builds the pages of `root` as the version `name`, in place of what has that name. Raises SiteError."""
    if not name or name != Path(name).name or name.startswith(".") or name == LATEST:
        raise SiteError(f"'{name}' cannot be the name of a version: it is a folder of the site, and not '{LATEST}'")
    site.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=site, prefix=".") as folder:
        built = Path(folder) / "pages"
        command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(built)]
        variables = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(command, cwd=root, env=variables, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - fixed programs
        if done.returncode:
            raise SiteError(
                "\n".join(line for line in done.stderr.splitlines() if line and not line.startswith("INFO"))
            )
        shutil.rmtree(site / name, ignore_errors=True)
        built.rename(site / name)
    write_index(site)


def list_versions(site: Path) -> list[str]:
    """Returns the versions that the site has, the newest first, and then what is no version, by name."""
    names = sorted(each.parent.name for each in site.glob("[!.]*/sitemap.xml") if each.parent.name != LATEST)
    versions = sorted(filter(_is_version, names), key=Version, reverse=True)
    return [*versions, *(name for name in names if name not in versions)]


def write_index(site: Path) -> None:
    """Makes the newest version the latest one, and writes the list for the selector."""
    newest, *others = list_versions(site)
    shutil.rmtree(site / LATEST, ignore_errors=True)
    shutil.copytree(site / newest, site / LATEST)
    entries = [{"version": newest, "title": newest, "aliases": [LATEST]}]
    entries += [{"version": each, "title": each, "aliases": []} for each in others]
    (site / "versions.json").write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
    (site / "index.html").write_text(_TO_LATEST, encoding="utf-8")


def _is_version(name: str) -> bool:
    try:
        Version(name)
    except InvalidVersion:
        return False
    return True


def main(arguments: Sequence[str]) -> int:
    name = arguments[0] if arguments else read_version(ROOT)
    try:
        build_version(ROOT, SITE, name)
    except SiteError as error:
        sys.stderr.write(f"error: {error}\nfix: Mend what it names; the site is as it was.\n")
        return 1
    sys.stdout.write(f"wrote {SITE.relative_to(ROOT)}/{name}; look at it: python -m http.server -d dist/site\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
