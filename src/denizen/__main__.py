"""The `denizen` command. `--version` is answered before anything is imported."""

from __future__ import annotations

import gc
import os
import sys

START_OBJECTS = 1_000_000
"""More objects than are made while starting."""


def main() -> None:
    """Runs the command line and exits with its code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from denizen import __version__

        sys.stdout.write(f"denizen {__version__}\n")
        return
    # What is made while starting stays, and looking for garbage among it takes a tenth of the start, so the collector
    # waits until there is much more than that. `open_denizen` sets it to its usual pace; a command that opens nothing,
    # such as a benchmark, may run for long, too.
    gc.set_threshold(START_OBJECTS, 5, 5)
    # Pydantic would look through all that is installed for plugins, and run them in here.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # noqa: TID251 - pydantic reads it from there only
    from denizen.cli.main import run

    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 - it was closed by who started this
    code = run(sys.argv[1:])
    # Python looks for garbage once more before it ends, for 0.15 s; everything goes now anyway.
    gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    main()
