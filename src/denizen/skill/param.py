"""What an author may say about one parameter, beyond its type."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Param:
    """Stands in `Annotated[int, Param("how many", ge=1, le=10)]`. A plain string in its place is a description.

    The description is sent to the model with every request: a few words with an example beat a sentence. Bounds are
    stated in the schema and enforced before the tool runs. A fixed set of values is a `Literal` type.
    """

    description: str = ""
    ge: float | None = None
    le: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
