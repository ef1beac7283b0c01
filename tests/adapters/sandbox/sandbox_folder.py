"""A folder of documents with traps in it, beside another one that nobody may see."""

from __future__ import annotations

import hashlib
import stat
from dataclasses import dataclass
from pathlib import Path

MARK = "OUTSIDE-BYTES-5c1f"
"""Stands in files outside, and nowhere inside."""
LEAKS = (MARK, "root:x:0", "uid=0", "uid=65534", "PWNED7", "/usr/sbin/nologin", "PATH=/")
"""What output holds only when something got out: bytes of outside files, or output of a program that must not run.
"""


@dataclass(frozen=True, slots=True)
class SandboxFolder:
    """`root` is for the shell, `outside` is not."""

    root: Path
    outside: Path

    def fill(self, command: str) -> str:
        return command.replace("{out}", str(self.outside))

    def picture(self) -> dict[str, str]:
        """Everything that a write would change, inside and outside."""
        return {str(path): _about(path) for top in (self.root, self.outside) for path in sorted(top.rglob("*"))}


def make_sandbox_folder(folder: Path, *, traps: bool = True) -> SandboxFolder:
    """`traps` are links, a pipe, and names that look like options."""
    documents = SandboxFolder(folder / "kb", folder / "outside")
    for each in (
        folder,
        documents.root,
        documents.outside,
        documents.root / "docs" / "sub dir",
        documents.root / "api",
    ):
        each.mkdir(parents=True, exist_ok=True, mode=0o755)
    (documents.outside / "secret.txt").write_text(f"{MARK}\n", encoding="utf-8")
    texts = {
        "docs/guide.md": "# Guide\n\nInstall with node or python.\nfoo => bar\nRun env | sort\nLast line of Foo\n",
        "docs/sub dir/deep file.txt": "zebra\napple\napple\nÄpfel und Öl\n10\n9\n",
        "docs/numbers.txt": "".join(f"line {number}\n" for number in range(1, 41)),
        "api/a.json": '{"name": "a", "cost": "$5"}\n',
        "api/b.json": '{"name": "b"}\n',
        "api/ref.mdx": "export const x = 1;\n`code` $(sub)\n",
        "README.md": "See docs/guide.md\nfoo\n",
        ".hidden": "hidden foo\n",
        "empty.txt": "",
        "names.txt": "docs/guide.md\nREADME.md\n",
    }
    if traps:
        texts |= {
            "-delete": "x\n",
            "-o": "x\n",
            "--files0-from=names": "x\n",
            "-exec": "x\n",
            "options.txt": "-o\npwned\n",
            "outside.txt": f"{documents.outside}/secret.txt\n",
            "up.txt": "../outside/secret.txt\n",
            "names0": f"{documents.outside}/secret.txt\0../outside/secret.txt\0",
            "script.sh": "#!/bin/sh\necho PWNED$((3 + 4))\necho x > pwned\n",
            "patterns": "x\n",
        }
    for name, text in texts.items():
        (documents.root / name).write_text(text, encoding="utf-8")
        (documents.root / name).chmod(0o755 if name == "script.sh" else 0o644)
    if traps:
        (documents.root / "link").symlink_to(documents.outside / "secret.txt")
        (documents.root / "updir").symlink_to("../outside")
        (documents.root / "passwd").symlink_to("/etc/passwd")
        (documents.root / "rootlink").symlink_to("/")
        (documents.root / "loop").symlink_to("loop")
    return documents


def _about(path: Path) -> str:
    found = path.lstat()
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(found.st_mode) else ""
    target = path.readlink() if path.is_symlink() else ""
    return f"{found.st_mode} {found.st_uid} {found.st_size} {found.st_mtime_ns} {found.st_nlink} {digest} {target}"
