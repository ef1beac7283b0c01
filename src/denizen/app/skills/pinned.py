"""Importing the code of a skill from the bytes that were pinned, never from the files: no byte code lying beside them
and no change a moment later can come in between.

Each version is a package of its own, named after its content: turns that began with an old version keep it, and lazy
imports in it find their own siblings. Versions stay for the life of the process; they are a few kilobytes each.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType

from denizen.app.skills.folder import SkillFolder

ROOT = "denizen_skill_of_owner"
"""What names of these packages begin with."""


class _Loader(InspectLoader):
    """One module, from its source in memory."""

    def __init__(self, source: bytes, file: str, *, is_package: bool) -> None:
        self._source = source
        self._file = file
        self._is_package = is_package

    def is_package(self, fullname: str) -> bool:
        return self._is_package

    def get_source(self, fullname: str) -> str:
        return self._source.decode("utf-8-sig")

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self._file, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = self._file
        exec(self.get_code(module.__name__), module.__dict__)  # noqa: S102 - what the owner enabled


class _Finder(MetaPathFinder):
    """Knows the modules of all versions that were loaded. One in each process."""

    def __init__(self) -> None:
        self.packages: dict[str, tuple[Path, Mapping[str, bytes]]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if package not in self.packages:
            return None
        folder, files = self.packages[package]
        stem = rest.replace(".", "/")
        for file, is_package in ((f"{stem}.py", False), (f"{stem}/__init__.py" if stem else "__init__.py", True)):
            if file in files:
                return self._spec(fullname, files[file], folder / file, is_package=is_package)
        if not stem or any(name.startswith(f"{stem}/") for name in files):  # a folder without a module of its own
            return self._spec(fullname, b"", folder / stem, is_package=True)
        return None

    @staticmethod
    def _spec(fullname: str, source: bytes, file: Path, *, is_package: bool) -> ModuleSpec:
        loader = _Loader(source, str(file), is_package=is_package)
        return ModuleSpec(fullname, loader, origin=str(file), is_package=is_package)


_FINDER = _Finder()


def import_entry(folder: SkillFolder, entry: str) -> ModuleType:
    """The module that holds the skill; the same one when this content was imported before. Raises whatever its code
    raises; nothing of a version that failed is kept.
    """
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    package = f"{ROOT}_{folder.name}_{folder.sha256[:16]}"
    _FINDER.packages[package] = (folder.path, folder.files)
    try:
        return importlib.import_module(f"{package}.{entry.removesuffix('.py')}")
    except BaseException:
        for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
            del sys.modules[name]
        raise
