"""Whether a sentence is a plain fact that somebody said of themselves, in their own words, in the message that is being
answered. Pure.

A turn that has read what others wrote may not write to the memory by itself, since their words may have brought it
about. But what the asker has just said is the asker's, whatever else was read: such a sentence is theirs when it
repeats a whole statement of their message, made by the first person about itself, word for word but for the grammar of
"I" and "the user".

All of it is a list of what is let through: English sentences of a few usual forms. Everything else is not recognised
and people are asked as before: other languages, other people, what somebody heard or supposes, what reads like an
order, a right or a rule, references ("that", "here") which other texts could fill with their meaning, links, quotations
and any character beside letters, digits and simple punctuation. One sentence that is neither a statement nor a courtesy
spoils the whole message, as it may quote, deny or play what the others say: "Just kidding. I like cats".
"""

from __future__ import annotations

import re
import unicodedata

from denizen.domain.words import split_words

MAX_WORDS = 14
"""The limit of one statement."""
MAX_SAID_CHARS = 2000
MAX_TEXT_CHARS = 300
"""The limit of a sentence of the memory that is compared with what was said."""
LAST_LETTER = "\u017f"
"""Letters beyond those of the languages of Europe that use the Latin alphabet may look like others."""

_FOREIGN = re.compile(r"[\[\]<>{}|`\"“”„«»\\]|://|^\s*>", re.MULTILINE)
"""Marks of quotations, links, embeds and code: a message that has one may hold what somebody else wrote."""
_END = re.compile(r"(?<=[.!;?])\s+")
_ALSO = re.compile(r",?\s+(?:and|but)\s+(?=(?:i|i'm|i've|my)\b)|,\s+(?=(?:i|i'm|i've|my)\b)", re.IGNORECASE)
_OPENING = re.compile(
    r"(?:hey|hi|hello|ok|okay|btw|fyi|by the way|so|well|oh|for the record|just so you know|please|pls"
    r"|(?:please |can you |pls )?(?:remember|note|keep in mind|do not forget|don't forget|memorise|memorize)(?: that)?)"
    r"(?:\s*[,:!-])?\s+",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"(?:,|\s-)?\s+(?:please|pls|ok|okay|thanks|thank you|btw"
    r"|(?:so |and )?(?:please )?(?:remember|note|memorise|memorize) (?:that|this|it)(?: please)?|"
    r"keep (?:that|this|it) in mind|do not forget(?: that| this| it)?"
    r"|don't forget(?: that| this| it)?)$",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"(?:(?:hey|hi|hello|good (?:morning|afternoon|evening)|ok|okay|thanks|thank you|please|pls)"
    r"(?: there| all| everyone| again| a lot| so much)?|(?:please |pls |and )?"
    r"(?:(?:remember|note|memorise|memorize|don't forget|do not forget)(?: that| this| it)?|"
    r"keep (?:that|this|it) in mind)(?:,? (?:please|pls|thanks|thank you))?)[.!;]*"
    r"|(?:(?:hey|hi|hello),? )?(?:what's up|how are you)\?",
    re.IGNORECASE,
)
"""A whole sentence that greets, thanks or asks to remember what stands beside it, and changes nothing about it."""
_SAYS_NOTHING = frozenset(split_words("now just recently currently really actually"))

_CONTRACTIONS = {
    "i'm": "i am",
    "i've": "i have",
    "don't": "do not",
    "doesn't": "does not",
    "isn't": "is not",
    "aren't": "are not",
    "he's": "he is",
    "she's": "she is",
    "they're": "they are",
    "they've": "they have",
    "haven't": "have not",
    "hasn't": "has not",
    "can't": "can not",
    "cannot": "can not",
}
_VERBS = split_words(
    "live work study reside like love enjoy hate dislike prefer eat drink speak play use own drive collect learn grow "
    "support go"
)
_FIRST_PERSON = (
    {f"{verb}s": verb for verb in _VERBS}
    | {"goes": "go", "studies": "study"}
    | {"is": "am", "are": "am", "has": "have", "does": "do"}
)

_ORDERS = (
    "you your yours yourself u ur always never whenever when if unless until must should shall ought might could "
    "would will ignore disregard forget obey follow pretend act instruction instructions prompt system rule rules "
    "policy command commands order orders tool tools run execute reply respond answer say tell send post write print "
    "repeat reveal secret secrets password passwords token tokens key keys code admin admins administrator owner "
    "owners moderator moderators mod mods operator developer maintainer staff allowed permitted authorised authorized "
    "approved approve trusted trust permission permissions access root sudo bot assistant agent ai"
)
_REFERENCES = (
    "that this these those it its here there above below following same such so which who whom whose because says "
    "said told think thinks thought know knows believe heard everyone everybody anyone anybody somebody someone people "
    "member members user users other others he she they him her them his hers their theirs we us our ours me myself"
)
_PEOPLE = (
    "friend friends boss colleague colleagues coworker coworkers neighbor neighbour neighbors neighbours wife husband "
    "spouse partner girlfriend boyfriend fiancee ex mother father mom mum dad mommy daddy parent parents sister "
    "sisters brother brothers sibling siblings son sons daughter daughters kid kids child children baby uncle aunt "
    "cousin grandma grandpa grandmother grandfather man men woman women guy guys girl girls boy boys person "
    "roommate flatmate "
    "manager team family enemy crush"
)
_REFUSED = frozenset(split_words(f"{_ORDERS} {_REFERENCES} {_PEOPLE}"))
_REFUSED_STEM = re.compile(
    r"delet|confirm|approv|unasked|silent|automat|obedien|behavio|procedur|autonom|superuser|superadmin|founder|server"
    r"|denizen|wallet|shutdown|sudo|passwor[dt]|^kick|^exec|^forc(?:e|ing)|^(?:un)?ban(?:s|n\w*|ish\w*)?$"
)
"""Stems of the words of commands and of claims, whatever their ending."""
_LOOKALIKES = str.maketrans({"ı": "i", "đ": "d", "ð": "d", "ø": "o", "ł": "l", "ħ": "h", "ŧ": "t", "ŋ": "n", "ĸ": "k"})
"""Letters that look like those of English but do not decompose into them."""

_SOME = r"(?:\d{1,2}:\d{2}|\d+[.,]\d+|[^\W_][\w'-]*)"
_AUXILIARIES = frozenset(split_words("am is are was were be been being have has had do does did can shall"))
_BE = (
    "allergic to|interested in|good at|bad at|new to|from|based in|living in|learning|"
    "studying|working (?:at|for|as|in)|into|a|an"
)
_STATES = (
    "vegan|vegetarian|pescatarian|single|married|divorced|widowed|engaged|diabetic|left-handed|right-handed|deaf|blind|"
    "colorblind|colour-blind|color-blind|pregnant|retired|lactose intolerant|gluten intolerant|dyslexic|autistic"
)
_PETS = r"dog|cat|rabbit|parrot|hamster|horse|pet|bird|tortoise|snake"
_NOBODY_DOING = rf"(?!{_SOME} (?:.* )?[\w'-]+ing\b)"
"""Whoever likes "Bob cooking" tells of Bob."""
_COUNTS = r"a|an|no|one|two|three|four|five|six|seven|eight|nine|ten|\d{1,3}"
_STATEMENT = re.compile(
    rf"i (?:usually |mostly |only |also )?(?:"
    rf"am (?:not )?(?:{_BE})(?: {_SOME}){{1,4}}"
    rf"|am \d{{1,3}}(?: years old)?"
    rf"|am (?:not )?(?:{_STATES})"
    rf"|was born (?:in|on)(?: {_SOME}){{1,4}}"
    rf"|grew up in(?: {_SOME}){{1,3}}"
    rf"|(?:have )?(?:moved|relocated)(?: back)? to(?: {_SOME}){{1,4}}"
    rf"|(?:do not )?(?:live|work|study|reside) (?:in|at|near|for|as)(?: {_SOME}){{1,4}}"
    rf"|(?:do not )?(?:like|love|enjoy|hate|dislike|prefer) {_NOBODY_DOING}{_SOME}(?: {_SOME})?"
    rf"|(?:do not |can not )?(?:eat|drink|speak|play|use|own(?! the\b)|drive|collect|study|learn|grow|support)"
    rf" (?!(?:.* )?(?:for|to|with|about|against|as)\b){_NOBODY_DOING}{_SOME}(?: {_SOME}){{0,4}}"
    rf"|have (?:{_COUNTS}) (?!(?:.* )?(?:called|named)\b){_NOBODY_DOING}{_SOME}(?: {_SOME})?"
    rf"|have (?:a|an) (?:{_SOME} )?(?:{_PETS}) (?:called|named) {_SOME}"
    rf"|(?:go by|prefer to be called) {_SOME}"
    rf")"
    rf"|my (?:(?:favou?rite|preferred)(?: {_SOME}){{1,2}}|(?:first |last |full |nick)?name|birthday|pronouns|"
    rf"time ?zone|home|home ?town|mother tongue|native language|language|job|profession|hobby|hobbies|instrument|sport|"
    rf"diet|allergy|shoe size|car|bike|laptop|phone|{_PETS})"
    rf" am (?:not )?(?:(?:called|named|in|on|at|a|an) )?(?:{_SOME} ){{0,3}}{_SOME}"
)
_COMMON = (
    frozenset(_VERBS)
    | _FIRST_PERSON.keys()
    | _AUXILIARIES
    | _SAYS_NOTHING
    | frozenset(
        split_words(
            "a an the all any both each every everything few many most nobody none nothing some something another and "
            "or but not no yes i my to of in on at for from as by with please remember note today tomorrow everywhere "
            "community group guild channel chat team world god hi hello hey thanks"
        )
    )
)
"""Words that say something at the beginning of a sentence, so that nobody's display name may stand there as one."""
_LEADS_TO_NAME = frozenset(
    split_words(
        "in at to from on near for as called named am speak learn play use drive study support own collect by a an "
        "the and or not"
    )
)
_BEHIND_NAME = _SAYS_NOTHING | frozenset(split_words("in at near since from to and or as on of"))


def find_statements(said: str) -> list[str]:
    """Finds what somebody states about themselves in a message, in the first person and small letters.

    Empty as soon as a single sentence says anything else.
    """
    plain = said.replace("’", "'")
    if len(plain) > MAX_SAID_CHARS or _FOREIGN.search(plain) or not _is_plain(plain.replace("\n", " ")):
        return []
    found: list[str] = []
    for sentence in _END.split(" ".join(plain.split())):
        if _COURTESY.fullmatch(sentence):
            continue
        for part in _ALSO.split(_strip(sentence)):
            clause = _strip(part)
            statement = _normalise(clause)
            if sentence.endswith("?") or not _is_statement(clause, statement):
                return []
            found.append(statement)
    return found


def is_own_statement(text: str, said: str, name: str) -> bool:
    """Whether all of `text` is what the asker, who is called `name`, has stated so in the message `said`."""
    if len(text) > MAX_TEXT_CHARS:
        return False
    stated = frozenset(find_statements(said))
    plain = text.replace("’", "'").strip().rstrip(".!")
    if not stated or not plain or not _is_plain(plain):
        return False
    return all(_normalise(_to_first_person(part, name)) in stated for part in _split_text(plain))


def _strip(clause: str) -> str:
    """Takes off how a message begins and ends beside what it says."""
    clause = clause.strip().rstrip(".!;, ")
    while opening := _OPENING.match(clause):
        clause = clause[opening.end() :]
    while closing := _CLOSING.search(clause):
        clause = clause[: closing.start()].rstrip(".!;, ")
    return clause


def _is_plain(text: str) -> bool:
    """Whether no character may look like others or stands for them, as the signs of ordinals ("ª") and fractions do."""
    return (
        text.isprintable()
        and all(char <= LAST_LETTER and unicodedata.category(char) not in ("Lo", "No") for char in text)
        and "@" not in text
    )


def _is_statement(clause: str, statement: str) -> bool:
    words = statement.split()
    if len(words) > MAX_WORDS or not _STATEMENT.fullmatch(statement) or any(map(_is_refused, words)):
        return False
    later = words[3:] if words[1] == "am" else words[2:]
    is_one = sum(word in _AUXILIARIES for word in later) <= (1 if words[0] == "my" or words[1] == "have" else 0)
    return is_one and _ends_list(words) and _names_no_one(clause)


def _is_refused(word: str) -> bool:
    """Whether a word or a part of it belongs to orders, claims, references or other people, with any accents."""
    decomposed = unicodedata.normalize("NFKD", word.casefold().translate(_LOOKALIKES))
    parts = re.split(r"[^a-z0-9]+", decomposed.encode("ascii", "ignore").decode())
    return any(part in _REFUSED or _REFUSED_STEM.search(part) for part in [*parts, "".join(parts)])


def _ends_list(words: list[str]) -> bool:
    """Behind "and" nothing but one thing more may follow, where else another sentence could begin."""
    for place, word in enumerate(words):
        if word in ("and", "or", "but"):
            rest = words[place + 1 :]
            if not (len(rest) == 1 or (len(rest) == 2 and rest[0] in ("a", "an", "the", "two", "no"))):
                return False
    return True


def _names_no_one(clause: str) -> bool:
    """A name stands where that of a place or a thing does, and nothing is told of it."""
    words = clause.split()[1:]
    for before, word, behind in zip(["", *words], words, [*words[1:], ""], strict=False):
        if not word[:1].isupper() or word in ("I", "I'm", "I've"):
            continue
        leads = (
            before[:1].isupper()
            or before.isdigit()
            or _FIRST_PERSON.get(before.casefold(), before.casefold()) in _LEADS_TO_NAME
        )
        follows = not behind or behind[:1].isupper() or behind.casefold() in _BEHIND_NAME
        if not (leads and follows) or word.endswith(("'s", "s'")):
            return False
    return True


def _normalise(clause: str) -> str:
    words = [_CONTRACTIONS.get(word, word) for word in clause.casefold().replace(",", " , ").split()]
    words = [word for word in " ".join(words).replace(" , ", " ").split() if word not in _SAYS_NOTHING]
    if words[:1] == ["my"]:
        words = ["am" if word in ("is", "are") else word for word in words]
    return " ".join(words)


def _split_text(text: str) -> list[str]:
    """The sentence of a memory in parts, each with its own verb."""
    verbs = "|".join(sorted({*_FIRST_PERSON, "am", "have", "moved", "grew", "was", "do", *_VERBS}))
    return re.split(rf",?\s+and\s+(?=(?:also |i )?(?:{verbs})\b)", text, flags=re.IGNORECASE)


def _to_first_person(part: str, name: str) -> str:
    """The sentence as the one whom it is about would say it."""
    words = [_CONTRACTIONS.get(word, word) for word in part.casefold().split()]
    words = " ".join(words).split()
    is_name = name.isalpha() and name.isascii() and name.casefold() not in _COMMON and not _is_refused(name)
    called = [name.casefold()] if is_name else []
    if words[:1] == ["the"] and words[1:2] in (["user"], ["user's"]):
        words = words[1:]
    if words[:1] in (["user's"], ["my"], *([f"{each}'s"] for each in called)):
        return " ".join(["my", *words[1:]])
    if words[:1] in (["user"], ["i"], *([each] for each in called)):
        words = words[1:]
    elif words[:1] in (["allergic"], ["vegan"], ["vegetarian"]):
        words = ["am", *words]
    while words[:1] and words[0] in _SAYS_NOTHING:
        words = words[1:]
    is_negated = words[:2] in (["does", "not"], ["do", "not"], ["can", "not"])
    verb = 0 if not is_negated else 2
    also = verb + 1 if words[verb : verb + 1] in (["usually"], ["mostly"], ["only"], ["also"]) else verb
    words = [_FIRST_PERSON.get(word, word) if place in (0, verb, also) else word for place, word in enumerate(words)]
    return " ".join(["i", *words])
