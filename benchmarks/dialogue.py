"""A made-up community that talks for ten weeks, and questions to which one of its messages is the answer.

Always the same. Facts are told in one of two ways and asked for in another, every second one also by another word for
its matter, so that words alone find only a part; every fact has others of its kind beside it, told by others. Some are
answers that say nothing without what they answer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

START = datetime(2026, 9, 7, 8, tzinfo=UTC)
WEEKS = 10
MESSAGES = 3000
PEOPLE = ("Ana", "Bea", "Kim", "Udo", "Zoe", "Lou", "Ravi", "Mia", "Tom Reed", "Ines", "Omar", "Yuki")
ROOMS = ("general", "plans", "kitchen", "repairs", "garden", "games")


class AskedBy(StrEnum):
    """The things that a question names besides its matter."""

    MATTER = "matter alone"
    PERSON = "and person"
    ROOM_AND_TIME = "person, room, time"
    EXCHANGE = "short answer"
    """The answer says nothing without the message that it answers."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message. `replies_to` is the number of the one that it answers."""

    number: int
    room: str
    author: str
    text: str
    at: datetime
    replies_to: int | None = None


@dataclass(frozen=True, slots=True)
class DialogueQuestion:
    """A question, and the numbers of the messages that answer it."""

    text: str
    evidence: frozenset[int]
    kind: AskedBy


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The messages, oldest first, and the questions about them at `now`."""

    said: Sequence[Said]
    questions: Sequence[DialogueQuestion]
    now: datetime


@dataclass(frozen=True, slots=True)
class _Matter:
    """Facts of one kind. `{0}` is a value as it is told, `{1}` as it is asked for; `told` and `asked` are wordings."""

    told: tuple[str, ...]
    asked: tuple[str, ...]
    values: tuple[tuple[str, str], ...]


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Values as they are told, each with how it is asked for."""
    found = (pair.split(": ") for pair in text.split(" | "))
    return tuple((told, asked) for told, asked in found)


_MATTERS = (
    _Matter(
        ("We adopted a {0} from the shelter, she is so shy.", "There is a {0} living with us since Sunday!"),
        ("new pet: {1}", "getting {1} at home"),
        _pairs(
            "tabby kitten: a young cat | greyhound: a racing dog | lop rabbit: a bunny | budgie: a bird | "
            "tortoise: a slow reptile"
        ),
    ),
    _Matter(
        ("I booked {0} for the end of the month.", "Tickets for {0} are bought, I cannot wait."),
        ("travelling to {1}", "a trip to {1}"),
        _pairs(
            "Lisbon: Portugal | Kyoto: Japan | Oslo: Norway | Marrakesh: Morocco | Reykjavik: Iceland | Athens: Greece"
        ),
    ),
    _Matter(
        ("The {0} broke again, nothing happens when I press start.", "Somebody has to look at the {0}, it is dead."),
        ("{1} out of order", "a defect of {1}"),
        _pairs(
            "washing machine: the laundry appliance | dishwasher: the thing for dirty plates | lift: the elevator"
            " | doorbell: the ringer at the entrance | kettle: boiling water for tea | radiator: the heating"
        ),
    ),
    _Matter(
        ("My new job at the {0} begins in October.", "They hired me at the {0}!"),
        ("employment at {1}", "starting work at {1}"),
        _pairs(
            "hospital: a clinic | bakery: the place that makes bread | law firm: the attorneys' office | primary "
            "school: teaching small children | airport: the airfield | brewery: making beer"
        ),
    ),
    _Matter(
        ("I am allergic to {0}, please no cake with it.", "Careful with {0}, I cannot eat any of it."),
        ("not tolerating {1} in food", "an intolerance of {1}"),
        _pairs(
            "peanuts: legume nuts | prawns: shellfish | gluten: wheat | strawberries: red berries | milk: dairy |"
            " soy: tofu"
        ),
    ),
    _Matter(
        ("I am reading a book about {0}, it is wonderful.", "Half way through that fat volume on {0}."),
        ("literature on {1}", "reading about {1}"),
        _pairs(
            "whales: sea mammals | the Romans: antiquity | chess openings: a board game | mushrooms: fungi | "
            "black holes: astronomy | lighthouses: beacons by the sea"
        ),
    ),
    _Matter(
        ("I take {0} lessons on Tuesdays now.", "My teacher for {0} says that I make progress."),
        ("learning {1}", "taking classes in {1}"),
        _pairs(
            "violin: a string instrument | Arabic: a foreign language | pottery: shaping clay | fencing: fighting"
            " with swords | tango: a dance | sailing: steering a boat"
        ),
    ),
    _Matter(
        ("The {0} goes up to 40 a month from January.", "They want more money for the {0}, 40 a month."),
        ("a higher price for {1}", "{1} becoming more expensive"),
        _pairs(
            "gym: the fitness club | broadband: the internet connection | parking lot: leaving the car | nursery:"
            " child care | storage room: keeping boxes | bus pass: public transport"
        ),
    ),
    _Matter(
        ("My {0} hurts since the fall, the doctor says two weeks of rest.", "I sprained my {0} on the stairs."),
        ("an injured {1}", "pain in the {1}"),
        _pairs("ankle: foot | wrist: hand | shoulder: upper arm | back: spine | knee: leg | thumb: finger"),
    ),
    _Matter(
        ("We could plant {0} along the fence.", "For the bed by the fence I want {0}."),
        ("growing {1} near the border", "an idea to put {1} into the soil"),
        _pairs(
            "tomatoes: vegetables for sauce | lavender: purple fragrant shrubs | sunflowers: tall yellow blossoms"
            " | garlic: bulbs against vampires | raspberries: soft fruit | mint: herbs for tea"
        ),
    ),
    _Matter(
        ("I lost my {0} somewhere between the station and here.", "Has anybody found a {0}? Mine is gone."),
        ("a missing {1}", "searching for {1}"),
        _pairs(
            "wallet: purse with cards | umbrella: protection from rain | headphones: something for listening to "
            "music | scarf: woollen thing for the neck | glasses: what helps to see | bike lock: what secures a "
            "bicycle"
        ),
    ),
    _Matter(
        ("For Saturday I make {0}.", "I bring {0} to the party."),
        ("contributing {1} to the feast", "cooking {1}"),
        _pairs(
            "lentil soup: a stew of pulses | apple pie: a fruit dessert | sushi: rice with raw fish | guacamole: "
            "an avocado dip | falafel: chickpea balls | pancakes: a flat sweet breakfast"
        ),
    ),
)

_EXCHANGES = (
    (
        "Where do we keep the {0}?",
        "where is {1} stored",
        ("In the blue box under the stairs.", "Top shelf, left of the window.", "Behind the curtain."),
    ),
    (
        "Who has the key of the {0}?",
        "who has what opens {1}",
        ("Me, till Monday.", "That would be my brother.", "It hangs at the neighbour's."),
    ),
    (
        "When do they collect the {0}?",
        "the day on which {1} is picked up",
        ("Every second Thursday.", "Tomorrow at seven.", "Not before the 12th."),
    ),
    (
        "How much was the {0}?",
        "what {1} cost",
        ("Thirty-five, with the discount.", "Almost nothing, ten or so.", "Ninety, and worth it."),
    ),
)
_THINGS = _pairs(
    "spare bulbs: lamps | bike pump: the tool for flat tyres | cellar: the basement | old paper: recycling | "
    "projector: the device for films | shed: the hut outside | ladder: what one climbs on | tent: the camping "
    "shelter | barbecue: the grill | first-aid kit: bandages"
)

_CHATTER = (
    "Good morning everybody.",
    "Ha, true.",
    "I am off to bed.",
    "Who is up for {0} tonight?",
    "No idea, honestly.",
    "Thanks, {1}!",
    "That was a good evening.",
    "Rain again, of course.",
    "See you at {0}.",
    "I agree with {1}.",
    "Same here.",
    "Let me check later.",
    "My week was long.",
    "Anybody for {0} on Saturday?",
    "Nice.",
    "I forgot, sorry.",
    "The trains are late today.",
    "On my way.",
    "{1}, did you see the news?",
    "Coffee first.",
    "We should do {0} more often.",
    "What a day.",
    "I will bring some snacks.",
    "Not me, ask {1}.",
)
_FUN = ("chess", "a film", "football", "karaoke", "a walk", "the market", "poker", "the quiz", "lunch", "the concert")
_PERSON = ("What did {who} say about {matter}?", "Has {who} mentioned {matter}?", "Did {who} tell us of {matter}?")
_MATTER_ALONE = (
    "Who talked about {matter}?",
    "Somebody mentioned {matter}, what was it?",
    "What was said about {matter}?",
)


def make_dialogue() -> Dialogue:
    """Returns MESSAGES messages with the questions of all their facts."""
    drawn = random.Random(29)
    now = START + timedelta(weeks=WEEKS)
    count = sum(len(each.values) for each in _MATTERS) + len(_THINGS) * len(_EXCHANGES)
    slots = sorted(drawn.sample(range(8, MESSAGES - 8, 4), count))
    told = [*_tell_facts(drawn), *_tell_exchanges(drawn)]
    drawn.shuffle(told)
    plan = dict(zip(slots, told, strict=True))
    said: list[Said] = []
    questions: list[DialogueQuestion] = []
    step = timedelta(weeks=WEEKS) / MESSAGES
    room = ROOMS[0]
    while len(said) < MESSAGES:
        number = len(said)
        if number % 7 == 0:
            room = drawn.choice(ROOMS)
        at = START + number * step
        fact = plan.get(number)
        if fact is None:
            said.append(Said(number, room, drawn.choice(PEOPLE), _chat(drawn), at))
            continue
        lines, asked, kind = fact
        who = drawn.sample(PEOPLE, len(lines))
        for offset, (author, line) in enumerate(zip(who, lines, strict=True)):
            replies_to = number if offset and drawn.random() < 0.5 else None
            said.append(Said(number + offset, room, author, line, at + offset * timedelta(minutes=1), replies_to))
        matter = asked.format(who=who[-1])
        if kind is AskedBy.ROOM_AND_TIME:
            matter = f"{matter.rstrip('?')} in #{room} {_name_week(at, now)}?"
        questions.append(DialogueQuestion(matter, frozenset({len(said) - 1}), kind))
    return Dialogue(said, questions, now)


def _tell_facts(drawn: random.Random) -> Iterator[tuple[tuple[str, ...], str, AskedBy]]:
    kinds = (AskedBy.MATTER, AskedBy.PERSON, AskedBy.ROOM_AND_TIME)
    for matter in _MATTERS:
        for number, (told, asked) in enumerate(matter.values):
            kind = kinds[number % len(kinds)]
            form = drawn.choice(_MATTER_ALONE if kind is AskedBy.MATTER else _PERSON)
            about = drawn.choice(matter.asked).format(told, asked if number % 2 else told)
            yield (drawn.choice(matter.told).format(told, asked),), form.replace("{matter}", about), kind


def _tell_exchanges(drawn: random.Random) -> Iterator[tuple[tuple[str, ...], str, AskedBy]]:
    for number, (told, asked) in enumerate(_THINGS):
        for question, about, answers in _EXCHANGES:
            lines = (question.format(told), drawn.choice(answers))
            yield (
                lines,
                f"Does anybody know {about.format(told, asked if number % 2 else f'the {told}')}?",
                AskedBy.EXCHANGE,
            )


def _chat(drawn: random.Random) -> str:
    return drawn.choice(_CHATTER).format(drawn.choice(_FUN), drawn.choice(PEOPLE))


def _name_week(at: datetime, now: datetime) -> str:
    """Says when it was as somebody would who remembers roughly."""
    monday = (now - timedelta(days=now.weekday())).date()
    weeks = (monday - at.date()).days // 7 + 1
    if at.date() >= monday:
        return "this week"
    if weeks == 1:
        return "last week"
    return f"{weeks} weeks ago" if weeks < 4 else f"in {at:%B}"
