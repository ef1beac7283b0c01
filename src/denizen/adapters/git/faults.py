"""What a failure of git means, told from what it says (in English: the locale is fixed). Called by `program`."""

from __future__ import annotations

import re

from denizen.domain.errors import DenizenError, Exhausted, InvalidInput, NeedsAttention, NotFound, Unavailable

_MISSING_BRANCH = re.compile(r"couldn't find remote ref|Remote branch .* not found", re.IGNORECASE)
_OTHER_OWNER = re.compile(r"dubious ownership", re.IGNORECASE)
_REFUSED_TRANSPORT = re.compile(r"transport '[^']*' not allowed|protocol .* is not supported", re.IGNORECASE)
_DENIED = re.compile(
    r"Authentication failed|could not read Username|could not read Password|Permission denied|"
    r"terminal prompts disabled|Host key verification failed|error: 40[13]\b",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"repository '[^']*' not found|Repository not found|does not exist|does not appear to be a git repository|"
    r"not a git repository|error: 404\b",
    re.IGNORECASE,
)
_DAMAGED = re.compile(
    r"bad object|corrupt|loose object|inflate|index-pack failed|unable to read|\.lock': File exists", re.IGNORECASE
)
"""A lock that nobody removes is what a process leaves that was killed."""
_FULL = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)
_TOO_LARGE = re.compile(r"File too large|died of signal 25")
_NO_SSH = re.compile(r"cannot run ssh", re.IGNORECASE)
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""A server's words are shown on a terminal: none of them may work there."""
_MAX_WHY_CHARS = 300


def explain_git_error(said: str) -> DenizenError:
    """The error for a run that failed. What is not known counts as worth another try."""
    why = _last_words(said)
    if _MISSING_BRANCH.search(said):
        return NotFound("There is no such branch.", code="branch_missing", why=why, fix="Look at the source's branch.")
    if _OTHER_OWNER.search(said):
        fix = "Change the owner of the repository's folder to the user that runs Denizen."
        return NeedsAttention("The repository belongs to another user.", code="source_denied", why=why, fix=fix)
    if _REFUSED_TRANSPORT.search(said):
        return InvalidInput("Git does not read such addresses here.", code="source_invalid", why=why)
    if _TOO_LARGE.search(said):
        fix = "Take one without large files; of a server that knows partial clones only documents are fetched."
        return Exhausted("The repository is too large.", code="repository_too_large", why=why, fix=fix)
    if _FULL.search(said):
        return NeedsAttention("The disk is full.", code="library_unusable", why=why, fix="Make room for the clones.")
    if _NO_SSH.search(said):
        fix = "Install it, such as with `apt install openssh-client`."
        return NeedsAttention("The program `ssh` cannot be started.", code="git_missing", why=why, fix=fix)
    if _DENIED.search(said):
        fix = "Check the address. A private repository is read over ssh, with a deploy key in the SSH agent and the "
        fix += "host in known_hosts."
        return NeedsAttention(
            "The repository does not exist, or may not be read.", code="source_denied", why=why, fix=fix
        )
    if _MISSING.search(said):
        return NotFound("There is no such repository.", code="source_missing", why=why, fix="Check the location.")
    if _DAMAGED.search(said):
        return Unavailable("The copy of the repository is damaged.", code="source_damaged", why=why)
    fix = "Look at the address and the network; the next sync tries again."
    return Unavailable("The repository could not be read.", code="source_unavailable", why=why, fix=fix)


def _last_words(said: str) -> str:
    lines = [_UNSEEN.sub(" ", line).strip() for line in re.split(r"[\r\n]+", said) if line.strip()]
    told = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))] or lines
    return " ".join(told[-3:])[:_MAX_WHY_CHARS]
