"""The child process that runs llama.cpp: `python -m denizen.adapters.models.embedded.server`.

A process of its own, so that a crash of native code or a lack of memory does not take Denizen down. It speaks with
its parent (`runtime`) through three pipes:

stdin
    One JSON line, the `ServerSettings` (the API key travels here, never in argv). Then silence; end of file means
    that the parent is gone, however it went, and ends the process.
stdout
    One JSON line: `{"port": N}` when requests are answered, or `{"error": CODE, "detail": TEXT}`.
stderr
    The log of llama.cpp.

Imports nothing but the standard library, its neighbours and, late, xllamacpp, so that it starts quickly.
"""

import dataclasses
import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from denizen.adapters.models.embedded.gguf import load_template
from denizen.domain.errors import DenizenError
from denizen.domain.record import record

NO_RUNTIME = "no_runtime"
NO_LIBRARY = "no_library"
NOT_LOADED = "not_loaded"

_POLL_S = 0.02
_PROMPT_CACHE_MIB = 512
_WARNINGS = 2


@record(kw_only=True)
class ServerSettings:
    """The settings of the child. `context_tokens` is for each of the `slots` (conversations answered side by side).

    The weights leave memory after `idle_s` without a request and come back with the next one. `answer_tokens` and
    `temperature` hold when a request names none.
    """

    weights: str
    model: str
    api_key: str
    context_tokens: int
    slots: int
    threads: int
    idle_s: int
    answer_tokens: int
    temperature: float

    def encode(self) -> bytes:
        return json.dumps(dataclasses.asdict(self)).encode() + b"\n"


def main() -> None:
    """Reads the settings, serves until stdin ends, and never returns."""
    announce = _take_stdout()
    settings = ServerSettings(**json.loads(sys.stdin.buffer.readline()))
    watch = threading.Thread(target=_exit_with_parent, args=(sys.stdin.buffer,), daemon=True)
    watch.start()
    server, said = _start(settings)
    announce.write(json.dumps(said).encode() + b"\n")
    announce.close()
    if server is None:
        sys.stderr.flush()
        os._exit(1)
    watch.join()


def _take_stdout() -> BinaryIO:
    """Returns the real stdout, for us alone: whatever native code prints goes to stderr from now on."""
    ours = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return ours


def _exit_with_parent(stdin: BinaryIO) -> None:
    while stdin.read(1):
        pass
    os._exit(0)  # at once: native threads would hold up an orderly exit, and there is nothing to save


def _start(settings: ServerSettings) -> tuple[object | None, Mapping[str, object]]:
    """Returns the running server with what to announce; no server when it cannot be had."""
    os.putenv("OMP_WAIT_POLICY", "passive")  # read when the library loads; spinning threads starve everything else
    try:
        llama: Any = importlib.import_module("xllamacpp")
    except ModuleNotFoundError as error:
        return None, {"error": NO_RUNTIME, "detail": str(error)}
    except ImportError as error:  # it is there, and needs a library of the system that is not
        return None, {"error": NO_LIBRARY, "detail": str(error)}
    try:
        params: Any = llama.CommonParams()
        for name, value in plan_params(settings, load_template(Path(settings.weights))).items():
            section, _, field = name.rpartition(".")
            setattr(getattr(params, section) if section else params, field, value)
        server: Any = llama.Server(params)
    except (DenizenError, RuntimeError, ValueError, OSError) as error:
        return None, {"error": NOT_LOADED, "detail": str(error)}
    address = str(server.listening_address)
    _wait_until_ready(f"{address}/health")
    return server, {"port": urlsplit(address).port}


def plan_params(settings: ServerSettings, template: str | None) -> Mapping[str, object]:
    """Returns the parameters of llama.cpp by their (dotted) names. Only the loopback address, only with the key."""
    return {
        "model.path": settings.weights,
        "model_alias": {settings.model},
        "chat_template": template or "",
        "use_jinja": True,
        "hostnames": ["127.0.0.1"],
        "port": 0,
        "api_keys": [settings.api_key],
        "cors_origins": "",
        "ui": False,
        "endpoint_slots": False,
        "n_parallel": settings.slots,
        "n_ctx": settings.context_tokens * settings.slots,
        "n_predict": settings.answer_tokens,
        "sampling.temp": settings.temperature,
        "cpuparams.n_threads": settings.threads,
        "cpuparams_batch.n_threads": settings.threads,
        "cache_ram_mib": _PROMPT_CACHE_MIB,
        "sleep_idle_seconds": settings.idle_s,
        "verbosity": _WARNINGS,
    }


def _wait_until_ready(health_url: str) -> None:
    """Returns when the server answers 200. The parent holds the deadline and kills us when it passes."""
    import urllib.error
    import urllib.request

    while True:
        try:
            with urllib.request.urlopen(health_url, timeout=10):  # noqa: S310 - our own http address
                return
        except urllib.error.URLError:
            time.sleep(_POLL_S)


if __name__ == "__main__":
    main()
