"""Translates `rg` into the same search with grep or, for `rg --files`, find. An option without a counterpart is refused
with the way that grep or another program has for it.

rg itself never runs: it is installed on few machines, and can start programs (`--pre`). Patterns are those of grep -P,
which are nearest to rg's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from denizen.adapters.sandbox.inside.words import CommandRefusedError

_GREP_OPTIONS = {
    "-n": "-n --line-number",
    "-i": "-i --ignore-case",
    "-w": "-w --word-regexp",
    "-x": "-x --line-regexp",
    "-l": "-l --files-with-matches",
    "-L": "--files-without-match",
    "-v": "-v --invert-match",
    "-o": "-o --only-matching",
    "-H": "-H --with-filename",
    "-h": "-I --no-filename",
    "-q": "-q --quiet",
    "-a": "-a --text",
    "-Z": "-0 --null",
    "-b": "-b --byte-offset",
    "-s": "--no-messages",
}
_GREP_VALUES = {
    "-A": "-A --after-context",
    "-B": "-B --before-context",
    "-C": "-C --context",
    "-m": "-m --max-count",
    "-e": "-e --regexp",
}
_SAME = {name: option for option, names in _GREP_OPTIONS.items() for name in names.split()}
_SAME_VALUED = {name: option for option, names in _GREP_VALUES.items() for name in names.split()}
_OWN = frozenset({"-F", "--fixed-strings", "-S", "--smart-case", "--hidden", "-.", "-u", "--unrestricted", "--files"})
_OWN_VALUED = frozenset({"-g", "--glob", "--iglob", "-t", "--type", "-T", "--type-not"})
_NOTHING = frozenset(
    {
        *("-N", "--no-line-number", "--no-heading", "--no-ignore", "--no-ignore-vcs", "--no-config", "-P", "--pcre2"),
        *("-s", "--case-sensitive", "--no-column"),
    }
)
"""Options for what grep does anyway."""
_NOTHING_VALUED = frozenset({"--color", "--colors", "-j", "--threads", "--sort"})
_INSTEAD = {
    **dict.fromkeys(("-c", "--count"), "Write grep -rc PATTERN . | grep -v ':0$'."),
    "--count-matches": "Write grep -ro PATTERN . | wc -l.",
    **dict.fromkeys(("-r", "--replace"), "Write grep -rh PATTERN . | sed 's/PATTERN/TEXT/'."),
    **dict.fromkeys(("-U", "--multiline", "--multiline-dotall"), "Write grep -rPzo '(?s)PATTERN' .."),
    **dict.fromkeys(
        ("-d", "--max-depth", "--maxdepth"), "Write find . -maxdepth N -type f -exec grep -H PATTERN {} +."
    ),
    **dict.fromkeys(("-M", "--max-columns", "--trim"), "Write grep -rn PATTERN . | cut -c1-200."),
    **dict.fromkeys(("-L", "--follow"), "Links are not followed. Files without a match are --files-without-match."),
    **dict.fromkeys(("-f", "--file"), "Patterns from files are not read; give them with -e."),
    **dict.fromkeys(("-p", "--pretty", "--heading", "--vimgrep", "--column"), "Write grep -rn PATTERN .."),
    **dict.fromkeys(("--json", "--stats"), "Write grep -rn PATTERN . | wc -l."),
    **dict.fromkeys(("-z", "--search-zip", "--pre"), "No other program runs."),
}
_TYPES = {
    "md": "*.md *.mdx *.markdown *.mkd *.mdown",
    "markdown": "*.md *.mdx *.markdown *.mkd *.mdown",
    "txt": "*.txt",
    "json": "*.json *.jsonl",
    "yaml": "*.yaml *.yml",
    "toml": "*.toml",
    "html": "*.html *.htm",
    "css": "*.css *.scss",
    "js": "*.js *.jsx *.mjs *.cjs *.vue",
    "ts": "*.ts *.tsx *.mts *.cts",
    "py": "*.py *.pyi",
    "python": "*.py *.pyi",
    "rust": "*.rs",
    "go": "*.go",
    "java": "*.java",
    "c": "*.c *.h",
    "cpp": "*.cpp *.cc *.cxx *.hpp *.hh *.h",
    "sh": "*.sh *.bash",
    "sql": "*.sql",
    "xml": "*.xml",
    "csv": "*.csv",
    "rst": "*.rst",
    "log": "*.log",
}
_HIDDEN = ["--exclude=.*", "--exclude-dir=.?*"]
_FIX = "Write grep -rn."


def translate_rg(argv: Sequence[str], *, has_input: bool) -> list[str]:
    """Returns the command that runs in the place of rg. `has_input` tells whether it stands behind a pipe. Raises
    CommandRefusedError.
    """
    search = _Search()
    search.read(argv[1:])
    return search.make_find() if search.is_listing else search.make_grep(has_input=has_input)


@dataclass(slots=True)
class _Search:
    options: list[str] = field(default_factory=list[str])
    patterns: list[str] = field(default_factory=list[str])
    paths: list[str] = field(default_factory=list[str])
    wanted: list[str] = field(default_factory=list[str])
    unwanted: list[str] = field(default_factory=list[str])
    with_hidden: bool = False
    is_fixed: bool = False
    is_smart_case: bool = False
    is_listing: bool = False

    def read(self, args: Sequence[str]) -> None:
        rest = list(args)
        operands: list[str] = []
        while rest:
            word = rest.pop(0)
            if word == "--":
                operands += rest
                break
            if word.startswith("--"):
                name, equals, value = word.partition("=")
                self._read_option(name, value if equals else None, rest)
            elif word.startswith("-") and word != "-":
                self._read_cluster(word, rest)
            else:
                operands.append(word)
        if not self.patterns and not self.is_listing:
            if not operands:
                raise CommandRefusedError("rg has no pattern", "Write rg PATTERN, or rg --files.")
            self.patterns.append(operands.pop(0))
        self.paths = operands

    def _read_cluster(self, word: str, rest: list[str]) -> None:
        for place, letter in enumerate(word[1:], start=1):
            name = f"-{letter}"
            if name in _SAME_VALUED or name in _NOTHING_VALUED or name in _OWN_VALUED:
                self._read_option(name, word[place + 1 :].removeprefix("=") or None, rest)
                return
            self._read_option(name, None, rest)

    def _read_option(self, name: str, value: str | None, rest: list[str]) -> None:
        if name in _SAME_VALUED or name in _NOTHING_VALUED or name in _OWN_VALUED:
            if value is None and not rest:
                raise CommandRefusedError(f"rg {name} needs a value")
            self._take(name, rest.pop(0) if value is None else value)
        elif value is not None or name not in {*_SAME, *_NOTHING, *_OWN}:
            raise CommandRefusedError(f"rg may not have the option `{name[:80]}`", _INSTEAD.get(name, _FIX))
        elif name in _SAME:
            self.options.append(_SAME[name])
        elif name in _OWN:
            self._switch(name)

    def _switch(self, name: str) -> None:
        self.is_fixed = self.is_fixed or name in {"-F", "--fixed-strings"}
        self.is_smart_case = self.is_smart_case or name in {"-S", "--smart-case"}
        self.with_hidden = self.with_hidden or name in {"--hidden", "-.", "-u", "--unrestricted"}
        self.is_listing = self.is_listing or name == "--files"

    def _take(self, name: str, value: str) -> None:
        if name in {"-e", "--regexp"}:
            self.patterns.append(value)
        elif name in _SAME_VALUED:
            self.options += [_SAME_VALUED[name], value]
        elif name in {"-t", "--type", "-T", "--type-not"}:
            globs = _TYPES.get(value)
            if globs is None:
                raise CommandRefusedError(f"rg does not know the type `{value[:80]}` here", "Write -g '*.EXTENSION'.")
            (self.wanted if name in {"-t", "--type"} else self.unwanted).extend(globs.split())
        elif name in _OWN_VALUED:
            is_wanted = not value.startswith("!")
            glob = value.removeprefix("!").removeprefix("**/")
            if "/" in glob.rstrip("/") or not glob or "{" in glob:
                raise CommandRefusedError(
                    f"rg -g cannot be `{value[:80]}` here", "Write -g '*.md', and name a folder behind the pattern."
                )
            (self.wanted if is_wanted else self.unwanted).append(glob)

    def make_grep(self, *, has_input: bool) -> list[str]:
        made = ["grep", "-F" if self.is_fixed else "-P"]
        if self.is_smart_case and not any(char.isupper() for pattern in self.patterns for char in pattern):
            made.append("-i")
        if self.paths or not has_input:
            made += ["-rI", *(f"--include={glob}" for glob in self.wanted)]
            for glob in self.unwanted:
                made += [f"--exclude={glob.rstrip('/')}", f"--exclude-dir={glob.rstrip('/')}"]
            made += [] if self._sees_hidden() else _HIDDEN
        made += self.options
        patterns = self.patterns
        if len(patterns) > 1 and not self.is_fixed:  # grep -P takes one
            patterns = ["|".join(f"(?:{pattern})" for pattern in patterns)]
        for pattern in patterns:
            made += ["-e", pattern]
        return [*made, "--", *self.paths] if self.paths else made

    def _sees_hidden(self) -> bool:
        """A hidden file that is named is searched."""
        names = [part for path in self.paths for part in path.split("/")]
        return self.with_hidden or any(name.startswith(".") and name.strip(".") for name in names)

    def make_find(self) -> list[str]:
        if self.options or self.patterns:
            raise CommandRefusedError(
                "rg --files lists files and searches nothing", "Write find . -type f | grep TEXT."
            )
        made = ["find", *self.paths, "-type", "f"]
        if not self._sees_hidden():
            made += ["-not", "-path", "*/.*"]
        if self.wanted:
            names = [word for glob in self.wanted for word in ("-o", "-name", glob)]
            made += ["(", *names[1:], ")"]
        for glob in self.unwanted:
            made += ["-not", "-name", glob, "-not", "-path", f"*/{glob.rstrip('/')}/*"]
        return [*made, "-print"] if self.paths else [*made, "-printf", "%P\\n"]
