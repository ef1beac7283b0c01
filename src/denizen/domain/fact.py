"""Facts of which only one is true at a time, as remembered sentences tell them: where somebody lives, works, is called.
Pure.

A new sentence about the same thing supersedes an older one when the older says nothing else. What is not surely
understood (another language, a negation, the past, a part of the time) supersedes nothing and is superseded by nothing:
to hide what is true is worse than to show both with their dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_IDENTITY = (
    "address age birthday boss city company country email employer home hometown husband manager name nickname number "
    "occupation partner phone profession pronouns residence size spouse surname timezone wife"
)
"""Nouns of which somebody has one: "my X is Y" says which."""
_SAME = {
    "city": "home",
    "residence": "home",
    "employer": "work",
    "company": "work",
    "profession": "occupation",
    "manager": "boss",
    "husband": "spouse",
    "wife": "spouse",
}
_BE = "(?:is|are|am)"
_VERBS = (
    ("home", rf"(?:live|lives|reside|resides|{_BE} living|{_BE} based|has been living|have been living) in "),
    ("home", rf"(?:(?:has |have )?(?:moved|relocated)|{_BE} moving)(?: back)?(?: away)? to "),
    ("work", rf"(?:work|works|{_BE} working|{_BE} employed) (?:at|for|by) "),
    ("occupation", rf"(?:work|works|{_BE} working) as "),
    ("age", rf"{_BE} \d{{1,3}}(?: years old)?$"),
    ("marriage", rf"{_BE} (?:single|married|engaged|divorced|widowed)(?: to | with |$)"),
    ("name", rf"(?:{_BE} (?:called|named)|go by|goes by|(?:wants?|prefers?|likes?) to be called) "),
    ("pronouns", r"(?:use|uses) (?:the pronouns )?\w+/\w+(?: pronouns)?$"),
    ("birthday", r"was born on "),
)
_VERB = re.compile(
    "|".join(rf"(?P<{name}_{number}>\b{pattern})" for number, (name, pattern) in enumerate(_VERBS)), re.IGNORECASE
)
_NOUN = re.compile(
    rf"(?P<noun>(?:(?:first|last|full|middle|given|family|phone|shoe|e-?mail) )?\b(?:{_IDENTITY.replace(' ', '|')})"
    rf"|(?:favou?rite|preferred)(?: [^\W\d_]+){{1,3}}?) (?:is|are) ",
    re.IGNORECASE,
)

_LEADING = re.compile(r"(?:in|on|at|called|named|the) ")
_OPEN = re.compile(rf"favou?rite|preferred|{_BE} (?:\d|single|married|engaged|divorced|widowed)|uses? ", re.IGNORECASE)
"""Forms behind which anything may follow, or nothing more."""

_CLAUSES = re.compile(r"[.;!?\n]+(?:\s|$)|,?\s+(?:and|but|while|because|since|so|who|which|where)\s+")
_FILLERS = re.compile(
    r"\b(?:now|currently|recently|just|nowadays|presently|meanwhile|finally)\b,?|^(?:yes|also),", re.IGNORECASE
)
_UNSURE = re.compile(
    r"\b(?:not|no longer|never|any ?more|used to|formerly|previously|originally|until|till|if|when|once|temporarily|"
    r"sometimes|often|usually|during|for (?:a|the|some) (?:while|time|week|month|year|summer|winter)|part of|half|also|"
    r"too|as well|second|another|ago|"
    r"(?:19|20)\d\d|might|may|will|would|wants? to move|plans?|hopes?)\b|n't\b|\?",
    re.IGNORECASE,
)
_BIRTH = re.compile(r"\b(?:birthday|born)\b", re.IGNORECASE)
_POSSESSIVE = frozenset({"my", "his", "her", "their"})
_SELF = _POSSESSIVE | {"", "i", "user", "the user", "this user", "he", "she", "they"}
_ARTICLES = frozenset({"the", "this"})
_SHORT = {"i'm": "I am", "i've": "I have", "he's": "he is", "she's": "she is", "they're": "they are"}
_MAX_NAME = 3


def is_superseded(old: str, new: str, name: str = "") -> bool:
    """Whether all that the older sentence tells is told anew by the other. `name` is that of the one whom both are
    about, if they do not say.
    """
    told = find_attributes(old, name)
    return bool(told) and None not in told and told <= find_attributes(new, name)


def find_attributes(text: str, name: str = "") -> frozenset[tuple[str, str] | None]:
    """Returns whom and what a sentence tells of that has one value at a time, such as `("", "home")`, and None for any
    part of it that tells something else. `("dog", "name")` is the name of somebody's dog, `("bob", "home")` Bob's home.
    """
    if not text.isprintable():
        return frozenset({None})
    plain = " ".join(_SHORT.get(word.casefold(), word) for word in text.replace("’", "'").split())
    plain = plain.replace("ime zone", "imezone")
    clauses = [clause.strip(" ,") for clause in _CLAUSES.split(plain)]
    return frozenset(_find_attribute(clause, name) for clause in clauses if clause)


def _find_attribute(clause: str, name: str) -> tuple[str, str] | None:
    clause = " ".join(_FILLERS.sub(" ", clause).split())
    if _UNSURE.search(clause) and not _BIRTH.search(clause):
        return None
    found = _NOUN.search(clause) or _VERB.search(clause)
    if found is None or not _tells_which(found, clause[found.end() :]):
        return None
    who = _who(clause[: found.start()].strip(), name)
    noun = found.groupdict().get("noun")
    attribute = _name_noun(noun.casefold()) if noun else str(found.lastgroup).partition("_")[0]
    return None if who is None else (who, attribute)


def _name_noun(noun: str) -> str:
    *others, last = noun.split()
    return " ".join([*others, _SAME.get(last, last)]).replace("favourite", "favorite")


def _tells_which(found: re.Match[str], value: str) -> bool:
    """Whether a name, a number or a kind follows: "works at Acme", not "works at night". Behind a comma no more than a
    name may follow, as in "Lyon, France".
    """
    _, *others = value.split(", ")
    is_place = all(word[:1].isupper() for other in others for word in other.split())
    named = _LEADING.sub("", value, count=1)
    is_kind = value.startswith(("a ", "an ")) and not str(found.lastgroup).startswith("home")
    return is_place and bool(
        _OPEN.match(found.group()) or is_kind or named[:1].isupper() or named[:1].isdigit() or {*"@/"} & {*named}
    )


def _who(written: str, name: str) -> str | None:
    """Whom a clause is about: empty for the one whom the whole memory is about; None where that is not clear."""
    names = {name.casefold(), *name.casefold().split()}
    words = written.split()
    is_chain = any(word.endswith("'s") or word.casefold() in _POSSESSIVE for word in words)
    if not is_chain and written.casefold() not in {*_SELF, *names} and not all(map(_is_name, words)):
        return None
    others = [word.casefold().removesuffix("'s") for word in words]
    while others and others[0] in {*_SELF, *names, *_ARTICLES}:
        others = others[1:]
    return " ".join(others) if len(others) <= _MAX_NAME and all(word.isalpha() for word in others) else None


def _is_name(word: str) -> bool:
    return word.isalpha() and word[0].isupper()


def find_superseded(new: str, old: Iterable[tuple[str, str]], name: str = "") -> list[str]:
    """Returns the keys of the older texts that the new one tells anew in other words."""
    return [key for key, text in old if text != new and is_superseded(text, new, name)]
