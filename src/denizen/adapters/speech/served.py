"""Speech by a server with OpenAI's audio API: OpenAI itself, and servers of Whisper, Piper or Kokoro at home."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

from anyio import to_thread

from denizen.adapters.speech.audio import decode_file, encode_wav
from denizen.domain.errors import DenizenError, NeedsAttention, Unavailable
from denizen.domain.record import record
from denizen.ports.speech import Sound

if TYPE_CHECKING:
    import httpx2

MAX_ANSWER_BYTES = 50_000_000
SHOWN_CHARS = 300
REFUSED = (400, 401, 403, 404, 422)


@record
class SpeechEndpoint:
    """A server with an audio API. `provider` is its name in the configuration; `url` ends before `/audio`; `api_key` is
    called when needed.
    """

    provider: str
    url: str
    model: str
    api_key: Callable[[], str | None]
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout_s: float = 60.0

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"


class ServedSynthesizer:
    """Speaks with a model of a server, by `POST /audio/speech`."""

    def __init__(self, server: SpeechEndpoint, voice: str) -> None:
        self._server = server
        self._voice = voice

    async def synthesize(self, text: str) -> Sound:
        """Raises NeedsAttention when the server refuses what is asked or how, Unavailable when it does not answer."""
        asked = {"model": self._server.model, "input": text, "voice": self._voice, "response_format": "wav"}
        answer = await _ask(self._server, "/audio/speech", {"json": asked})
        try:
            return await to_thread.run_sync(decode_file, answer.content)
        except ValueError as error:
            raise _silent(self._server, "its answer holds no sound") from error


class ServedRecognizer:
    """Writes down with a model of a server, by `POST /audio/transcriptions`. `language` is a code such as `de`; empty
    when the model is to find out.
    """

    def __init__(self, server: SpeechEndpoint, language: str = "") -> None:
        self._server = server
        self._language = language

    async def transcribe(self, sound: Sound) -> str:
        """Raises NeedsAttention when the server refuses what is asked or how, Unavailable when it does not answer."""
        form = {"model": self._server.model, "response_format": "json"}
        form |= {"language": self._language} if self._language else {}
        files = {"file": ("speech.wav", await to_thread.run_sync(encode_wav, sound), "audio/wav")}
        answer = await _ask(self._server, "/audio/transcriptions", {"data": form, "files": files})
        try:
            return str(cast("dict[str, Any]", answer.json())["text"]).strip()
        except (ValueError, KeyError, TypeError) as error:
            raise _silent(self._server, "its answer holds no text") from error


async def _ask(server: SpeechEndpoint, path: str, body: Mapping[str, Any]) -> httpx2.Response:
    import httpx2

    key = server.api_key()
    headers = {**server.headers, **({"authorization": f"Bearer {key}"} if key else {})}
    try:
        async with httpx2.AsyncClient(timeout=server.timeout_s) as client:
            answer = await client.post(f"{server.url.rstrip('/')}{path}", headers=headers, **body)
    except httpx2.HTTPError as error:
        raise _silent(server, type(error).__name__) from error
    if answer.status_code != 200:
        raise _refused(server, answer)
    if len(answer.content) > MAX_ANSWER_BYTES:
        raise _silent(server, "its answer is too large")
    return answer


def _silent(server: SpeechEndpoint, why: str) -> Unavailable:
    return Unavailable(f"{server.name} did not answer.", code="speech_unavailable", why=why, fix="Try again.")


def _refused(server: SpeechEndpoint, answer: httpx2.Response) -> DenizenError:
    why = f"{answer.status_code}: {' '.join(answer.text.split())[:SHOWN_CHARS]}"
    if answer.status_code not in REFUSED:
        return _silent(server, why)
    return NeedsAttention(
        f"{server.name} refused the request for speech.",
        code="speech_refused",
        why=why,
        fix="Check speak_with, write_with and voice below tools.voice, and the key and address of the provider.",
    )
