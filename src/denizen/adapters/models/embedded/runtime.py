"""The embedded model as the rest of Denizen sees it: an OpenAI-compatible endpoint that is there when asked for.

`EmbeddedRuntime.endpoint()` gets the weights and starts the child process on first use, and again when it died.
Requests go straight to the endpoint, through the ordinary OpenAI-compatible adapter. The child ends with `aclose()`, or
with this process, however that ends.
"""

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

import anyio

from denizen.adapters.models.embedded.catalogue import DEFAULT, WeightsEntry
from denizen.adapters.models.embedded.child_process import (
    RestartPolicy,
    ServerProcess,
    require_runtime,
    start_server_process,
)
from denizen.adapters.models.embedded.progress import LoadProgress, ReportLoadProgress, ignore_progress
from denizen.adapters.models.embedded.server import ServerSettings
from denizen.adapters.models.embedded.weights import Weights, WeightsPlaces, find_weights, load_weights
from denizen.domain.errors import Unavailable
from denizen.domain.record import record

_MOST_THREADS = 8


@record(kw_only=True)
class EmbeddedSettings:
    """How the embedded model runs. `environ` is the process's environment; the child sees a small part of it.

    `slots` conversations are answered side by side; each has `context_tokens` (None: what the weights say) to itself.
    `threads` None takes the processors that this process may use, eight at most. After `idle_s` without a request the
    weights leave memory, and come back with the next one. `answer_tokens` limits answers to requests that set no limit.
    `start_deadline_s` is for loading; getting the weights takes as long as it takes.
    """

    places: WeightsPlaces
    environ: Mapping[str, str]
    entry: WeightsEntry = DEFAULT
    context_tokens: int | None = None
    slots: int = 2
    threads: int | None = None
    idle_s: int = 900
    answer_tokens: int = 1024
    start_deadline_s: float = 180
    restart: RestartPolicy = field(default_factory=RestartPolicy)

    @property
    def log(self) -> Path:
        return self.places.home / "logs" / "embedded.log"


@record(kw_only=True)
class EmbeddedEndpoint:
    """The address of the running child: `base_url` ends in `/v1`. Port and key change with every start."""

    base_url: str
    api_key: str = field(repr=False)
    model: str
    context_tokens: int
    native_tools: bool


class EmbeddedRuntime:
    """Owns the child process. One per Denizen process; many tasks may ask for the endpoint at once."""

    def __init__(self, settings: EmbeddedSettings, report: ReportLoadProgress = ignore_progress) -> None:
        self._settings = settings
        self._report = report
        self._lock = anyio.Lock()
        self._running: tuple[ServerProcess, EmbeddedEndpoint] | None = None
        self._deaths: Sequence[float] = ()
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process id of the child, while there is one."""
        return self._running[0].process.pid if self._running else None

    async def endpoint(self) -> EmbeddedEndpoint:
        """Returns the endpoint of a running child; starts one when there is none. Ask before each request: it is cheap.

        Raises NeedsAttention when weights or runtime are missing, InvalidInput when the user's own file is no model,
        Unavailable when the child does not start, keeps dying, or the runtime is closed.
        """
        async with self._lock:
            if self._running is not None:
                child, endpoint = self._running
                if child.is_alive():
                    return endpoint
                self._running = None
                await child.aclose()
                self._note_death()
            self._require_open()
            if find_weights(self._settings.entry, self._settings.places) is None:
                require_runtime()
            weights = await load_weights(self._settings.entry, self._settings.places, self._report)
            await self._pause()
            self._running = await self._start(weights)
            return self._running[1]

    async def aclose(self) -> None:
        """Ends the child, for good."""
        self._closed = True
        running, self._running = self._running, None
        if running is not None:
            await running[0].aclose()

    async def _start(self, weights: Weights) -> tuple[ServerProcess, EmbeddedEndpoint]:
        self._report(LoadProgress(f"starting {weights.model}"))
        told = self._plan_server(weights)
        try:
            child = await start_server_process(
                told, self._settings.environ, self._settings.log, self._settings.start_deadline_s
            )
        except Unavailable:
            self._note_death()
            raise
        if self._closed:
            await child.aclose()
            self._require_open()
        endpoint = EmbeddedEndpoint(
            base_url=f"http://127.0.0.1:{child.port}/v1",
            api_key=told.api_key,
            model=told.model,
            context_tokens=told.context_tokens,
            native_tools=weights.native_tools,
        )
        return child, endpoint

    def _plan_server(self, weights: Weights) -> ServerSettings:
        usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
        return ServerSettings(
            weights=str(weights.path),
            model=weights.model,
            api_key=secrets.token_urlsafe(32),
            context_tokens=self._settings.context_tokens or weights.context_tokens,
            slots=self._settings.slots,
            threads=self._settings.threads or min(usable, _MOST_THREADS),
            idle_s=self._settings.idle_s,
            answer_tokens=self._settings.answer_tokens,
            temperature=weights.temperature,
        )

    def _note_death(self) -> None:
        now = anyio.current_time()
        self._deaths = (*self._settings.restart.recent(self._deaths, now), now)

    async def _pause(self) -> None:
        """Waits as long as the restart policy says. Raises Unavailable when it says no."""
        policy, now = self._settings.restart, anyio.current_time()
        pause_s = policy.plan_pause_s(self._deaths, now)
        if pause_s is None:
            raise Unavailable(
                "The built-in model keeps dying and is left alone for a while.",
                code="embedded_model_keeps_dying",
                why=f"It died {len(self._deaths)} times within {policy.window_s / 60:.0f} minutes.",
                fix=f"See {self._settings.log}, or connect a provider with `denizen setup`.",
                retry_after_s=self._deaths[0] + policy.window_s - now,
            )
        await anyio.sleep(pause_s)

    def _require_open(self) -> None:
        if self._closed:
            raise Unavailable("The built-in model is shut down.", code="embedded_model_closed")
