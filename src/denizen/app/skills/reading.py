"""A skill's manifest out of its folder: `skill.yaml` of a Python skill, or the front matter of a SKILL.md."""

from __future__ import annotations

from io import StringIO
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from denizen.app.skills.folder import MANIFEST_FILE, MARKDOWN_FILE, SkillFolder
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json
from denizen.skill.manifest import SkillManifest, parse_front_matter, parse_manifest

MAX_MANIFEST_BYTES = 64_000


def read_folder_manifest(folder: SkillFolder) -> SkillManifest:
    """Raises InvalidInput (`bad_skill`) that names the file."""
    try:
        if folder.is_markdown:
            return parse_front_matter(_parse(split_front_matter(folder)[0]), folder=folder.name)
        if MANIFEST_FILE not in folder.files:
            raise InvalidInput(
                f"it has neither {MANIFEST_FILE} nor {MARKDOWN_FILE}",
                code="bad_skill",
                fix="`denizen skill new NAME` writes a whole example",
            )
        manifest = parse_manifest(_parse(_text(folder, MANIFEST_FILE)), folder=folder.name)
        if manifest.entry not in folder.files:
            fix = f"write the skill into {manifest.entry}, or name another file as `entry`"
            raise InvalidInput(f"there is no {manifest.entry}", code="bad_skill", fix=fix)
    except InvalidInput as error:
        file = MARKDOWN_FILE if folder.is_markdown else MANIFEST_FILE
        raise InvalidInput(f"{file}: {error.message}", code="bad_skill", fix=error.fix) from error
    return manifest


def split_front_matter(folder: SkillFolder) -> tuple[str, str]:
    """The front matter and the body of its SKILL.md. Raises InvalidInput."""
    lines = _text(folder, MARKDOWN_FILE).replace("\r\n", "\n").split("\n")
    if lines[0].strip() == "---" and "---" in (rest := [line.rstrip() for line in lines[1:]]):
        end = rest.index("---") + 1
        return "\n".join(lines[1:end]), "\n".join(lines[end + 1 :]).strip()
    raise InvalidInput(
        "it does not begin with front matter",
        code="bad_skill",
        fix="write a line ---, then `name: ...` and `description: ...`, then --- again",
    )


def _text(folder: SkillFolder, file: str) -> str:
    data = folder.files[file]
    if file == MANIFEST_FILE and len(data) > MAX_MANIFEST_BYTES:
        raise InvalidInput("it is too long", code="bad_skill", fix="shorten it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("it is no UTF-8 text", code="bad_skill", fix="save it as UTF-8") from None


def _parse(text: str) -> Json:
    try:
        parsed: object = cast("Any", YAML(typ="safe", pure=True)).load(StringIO(text))
    except (YAMLError, RecursionError, ValueError) as error:
        where = str(getattr(error, "problem", "") or "it cannot be read")
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 1})" if mark is not None else ""
        raise InvalidInput(f"it is no YAML: {where}{line}", code="bad_skill", fix="correct it there") from error
    return cast("Json", parsed)
