"""Errors as clients get them: the table from error family to HTTP status, and the way there and back.

| family         | status | clients may repeat |                                                                 |
|----------------|--------|--------------------|-----------------------------------------------------------------|
| InvalidInput   | 400    | no                 |                                                                 |
| NotAllowed     | 403    | no                 | 401 when the credentials are missing or wrong                   |
| NeedsApproval  | 403    | no                 | a person has to decide first                                    |
| NotFound       | 404    | no                 |                                                                 |
| Conflict       | 409    | no                 |                                                                 |
| LimitExceeded  | 429    | yes                |                                                                 |
| NeedsAttention | 500    | no                 | the server cannot work as it is set up; its operator has to act |
| Unavailable    | 503    | yes                | with `Retry-After`                                              |
| faults (bugs)  | 500    | no                 | with a reference to the log, and nothing from inside            |

Imports next to nothing, since `denizen ask` reads errors of a running server and has to be quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from denizen.domain.errors import (
    Conflict,
    DenizenError,
    InvalidInput,
    LimitExceeded,
    NeedsApproval,
    NeedsAttention,
    NotAllowed,
    NotFound,
    Unavailable,
)
from denizen_sdk.errors import ProblemDetails

STATUS: Mapping[type[DenizenError], int] = {
    InvalidInput: 400,
    NotAllowed: 403,
    NeedsApproval: 403,
    NotFound: 404,
    Conflict: 409,
    LimitExceeded: 429,
    NeedsAttention: 500,
    Unavailable: 503,
}
BUG = 500
CREDENTIAL_CODES = frozenset({"credentials_missing", "credentials_wrong", "signature_missing", "signature_wrong"})
_FAULT_CODES = frozenset({"bug", DenizenError.code})
_FAMILIES: Mapping[int, type[DenizenError]] = {
    **{status: family for family, status in STATUS.items() if family is not NeedsApproval},
    401: NotAllowed,
}

_USUAL: Mapping[int, tuple[str, str]] = {
    400: ("the request cannot be used as it is", "Correct it: /api/openapi.json tells what each route takes."),
    401: ("no key came along, or a wrong one", "Send a key as `Authorization: Bearer` or as `x-api-key`."),
    403: ("the caller may not do this", "Ask an admin or an owner to do it."),
    404: ("it is not there, or not for this caller", "Name another."),
    409: ("it has changed meanwhile, or is there already", "Look at it again, then repeat the request."),
    429: ("a limit is used up", "Try again later."),
    500: ("something is wrong on the server's side", "Tell whoever runs the server; its log says more."),
    503: ("something that it needs does not answer", "Try again later."),
}
"""The reason and the remedy of an error that names none itself, by its status."""


def describe_problem(error: DenizenError, *, reference: str = "") -> ProblemDetails:
    """Returns the error as clients get it."""
    status = next((code for family, code in STATUS.items() if isinstance(error, family)), BUG)
    if error.code in CREDENTIAL_CODES:
        status = 401
    return ProblemDetails(
        code=error.code, message=error.message, status=status, why=error.why, fix=error.fix, reference=reference
    )


def fill_in(problem: ProblemDetails) -> ProblemDetails:
    """Returns the problem with the usual reason and remedy of its status where it names none."""
    why, fix = _find_usual(problem.status)
    return replace(problem, why=problem.why or why, fix=problem.fix or fix)


def read_problem(problem: ProblemDetails) -> DenizenError:
    """Returns the error that `describe_problem` described, without what `fill_in` added. `NeedsApproval` comes back as
    `NotAllowed`.
    """
    family = DenizenError if problem.code in _FAULT_CODES else _FAMILIES.get(problem.status, DenizenError)
    why, fix = _find_usual(problem.status)
    return family(
        problem.message,
        code=problem.code,
        why="" if problem.why == why else problem.why,
        fix="" if problem.fix == fix else problem.fix,
    )


def _find_usual(status: int) -> tuple[str, str]:
    return _USUAL.get(status, _USUAL[500 if status >= 500 else 400])
