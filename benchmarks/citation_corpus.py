"""Answers with citations, what was read for them, and which of their citations are right.

In an answer `<opening|Thursdays>` stands for the path of a document and the number of the first line with that word,
`<opening|Thursdays+2>` for that line and the two behind it, `<opening>` for the path alone. `marks` says for each
citation in order whether it is right (`+`) or has to be marked (`-`). `HAND_WRITTEN` are written by hand;
`list_generated` crosses ways of writing a place with facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

from benchmarks.answers import HANDBOOK
from denizen.domain.citation import DocumentRef
from denizen.domain.evidence import ReadResult

HARBOUR = """# Harbour guide

This guide is for guests of the harbour of Sønderby.

## Berths

A berth costs 180 kroner a night for boats up to 10 metres.
Boats between 10 and 15 metres pay 240 kroner, longer ones 320 kroner.
From 1 October to 31 March the price is halved.
Berths with a green sign are free; a red sign means that the owner comes back.

## Water and power

Drinking water is free for all guests.
Power is 3.50 kroner a kilowatt hour; the meter takes the harbour card.
Each jetty has 16 sockets of 16 amperes.

## Showers and laundry

The showers stand behind the harbour office and are open day and night.
A shower takes 5 kroner for 4 minutes.
Washing machines cost 30 kroner, dryers 20 kroner.

## Harbour office

The office is open from 8:00 to 11:00 and from 16:00 to 18:30.
The harbour master is Birgitte Holm; her deputy is Anders Lund.
Call +45 5550 1234 outside opening hours.
A deposit of 50 kroner is taken for the harbour card.

## Waste

Glass, paper and metal go into the containers at the slipway.
Oil and batteries are taken at the office only.
Toilet tanks can be emptied at the pump on jetty C.

## Safety

Speed in the harbour is limited to 3 knots.
Children under 12 wear a life jacket on the jetties.
Life buoys hang every 25 metres.
The nearest hospital is in Middelfart, 14 kilometres away.
In an emergency call 112.

## Shops

The chandler sells rope, charts and paint until 17:00.
Fresh bread comes to jetty A at 7:30 in July and August.
Bicycles can be rented for 75 kroner a day at the kiosk.
The kiosk was opened in 1987 by Jonas Friis.

## Events

The regatta takes place on the second weekend of June with about 140 boats.
In 2024 the winner was the crew of the Havfruen.
Live music is played on Fridays from 20:00 in the sail loft.
"""

GERMAN = """# Gebührenordnung

Der Jahresbeitrag beträgt 1.250,50 Euro für Boote bis 8 Meter.
Für jedes weitere angefangene Meter kommen 95 Euro hinzu.
Mitglieder unter 27 Jahren zahlen die Hälfte.
Die Rechnung ist innerhalb von 14 Tagen zu begleichen.
Bei Verzug werden 12 Euro Mahngebühr erhoben.
Ansprechpartnerin für Beiträge ist Frau Yıldız.
Die Slipanlage ist dienstags bis sonntags von 9 bis 18 Uhr geöffnet.
"""

FRENCH = """# Machine à café

Le réservoir contient 1,8 litre d'eau.
Détartrez la machine tous les trois mois avec 100 ml de vinaigre.
L'eau doit atteindre 93 °C avant la première tasse.
La garantie dure deux ans à partir de l'achat.
Le filtre se change toutes les 60 tasses.
"""

SPANISH = """# Taller de bicicletas

El taller abre los lunes y miércoles de 17:00 a 20:30.
Una revisión completa cuesta 35 euros y tarda dos días.
Los socios tienen un descuento del 20 %.
La encargada del taller se llama Lucía Ferrer.
"""

CHINESE = """# 图书馆

图书馆每天上午九点开门，晚上八点关门。
每人最多可以借十本书，借期为三十天。
逾期每天罚款0.5元。
"""

REFERENCE = """# Configuration reference

| key | default | meaning |
|---|---|---|
| `timeout_s` | 30 | how long a request may take, in seconds |
| `max_retries` | 5 | so often a failed request is made again |
| `cache_mb` | 512 | the memory of the cache |
| `port` | 8650 | where the server listens |

Logs are kept for 90 days and then deleted.
The limit of one upload is 25 MB; larger files are refused with status 413.
Version 2.4 removed the option `legacy_mode`.
Requests are signed with HMAC-SHA256 and expire after 300 seconds.
A token has the scopes read, write and admin.
"""

SPACED = "# About us\n\nThe club was founded in 1911 by nine fishermen.\nIt has 412 members today.\n"
NOTES = "# Notes\n\nAda prefers tea and answers mail on Mondays.\nThe spare key lies under the third flowerpot.\n"
RULES = (
    "# Rules\n\nNo glass on the jetties.\nQuiet hours are from 22:00 to 6:00.\n"
    "Dogs are kept on a lead of at most 2 metres.\n"
)
SECRET = "# Board\n\nThe board meets on 3 May in room 7.\nThe budget is 90,000 kroner.\nMinutes are kept by Ole Krag.\n"

DOCUMENTS: Mapping[str, tuple[str, str]] = {
    **{name.removesuffix(".md"): (f"docs/handbook/{name}", text) for name, text in HANDBOOK.items()},
    "harbour": ("docs/guide/harbour.md", HARBOUR),
    "german": ("docs/verein/gebuehren.md", GERMAN),
    "french": ("docs/manuels/cafe.md", FRENCH),
    "spanish": ("docs/taller/bici.md", SPANISH),
    "chinese": ("docs/zh/图书馆.md", CHINESE),
    "reference": ("docs/api/reference.md", REFERENCE),
    "about": ("docs/guide/about us.md", SPACED),
    "notes": ("own/notes.md", NOTES),
    "rules": ("shared/rules.md", RULES),
    "board": ("docs/board/minutes.md", SECRET),
}
"""Path and text of each document by the name that cases give it. `board` is never read."""

PLACE = re.compile(r"<(\w+)(?:\|([^<>|+]+)(?:\+(\d+))?)?>")


@dataclass(frozen=True, slots=True)
class Case:
    """`read` names documents that were read whole, or with `@3-5` the lines that a search found; `commands` are
    commands of the shell, with the documents that they were given to read (a path may be a folder's) and those whose
    text they printed.
    """

    answer: str
    marks: str
    read: str = ""
    question: str = ""
    commands: Sequence[tuple[str, str, str]] = ()

    @property
    def text(self) -> str:
        return PLACE.sub(_write, self.answer)

    def list_results(self) -> Iterator[tuple[str, ReadResult]]:
        """Yields what the tools gave, each with its call as it was written."""
        for each in self.read.split():
            name, _, lines = each.partition("@")
            path, text = DOCUMENTS[name]
            first, last = map(int, lines.split("-")) if lines else (1, text.count("\n"))
            told = "\n".join(f"{n}: {line}" for n, line in list(enumerate(text.split("\n"), 1))[first - 1 : last])
            yield '{"query": "x"}', ReadResult(f"[{path}:{first}-{last}]\n{told}", (DocumentRef(path, first, last),))
        for command, given, printed in self.commands:
            places = tuple(DocumentRef(DOCUMENTS[each][0] if each in DOCUMENTS else each) for each in given.split())
            text = "\n".join(DOCUMENTS[each][1] if each in DOCUMENTS else each for each in printed.split("\0"))
            yield f'{{"command": {command!r}}}', ReadResult(text, places)


def _write(found: re.Match[str]) -> str:
    return write_place(found[1], found[2] or "", int(found[3] or 0)) if found[1] in DOCUMENTS else found[0]


def write_place(name: str, words: str = "", more: int = 0) -> str:
    path, text = DOCUMENTS[name]
    if not words:
        return path
    line = next(number for number, each in enumerate(text.split("\n"), 1) if words in each)
    return f"{path}:{line}-{line + more}" if more else f"{path}:{line}"


HAND_WRITTEN: Sequence[Case] = (
    # --- right: said again, in other words, in other formats ---
    Case("The library is open from 10 am to 7 pm, Tuesday to Saturday [<opening|Tuesday>].", "+", "opening"),
    Case("On Thursdays you can stay in the reading room until 10 pm [<opening|Thursdays>].", "+", "opening"),
    Case("In August it stays shut for two weeks (<opening|August>).", "+", "opening"),
    Case("A membership is €24 a year; students pay €9 [<membership|24 euros>].", "+", "membership"),
    Case("If you lose your card, a new one is three euros [<membership|lost card>].", "+", "membership"),
    Case("You can keep a book for four weeks and renew it twice [<loans|28 days>].", "+", "loans"),
    Case("You may have a board game for a week [<loans|Board games>].", "+", "loans"),
    Case("Being late costs €0.20 a day and never more than €8 a book [<loans|20 cents>].", "+", "loans"),
    Case("The Magnolia room is for 14 people, the Juniper room for six [<rooms|Magnolia+1>].", "+", "rooms"),
    Case("Write to Odile at least 2 days before [<rooms|Odile>].", "+", "rooms"),
    Case(
        "1. Take the introduction (every second Monday, 17:30) [<workshop|3D>].\n"
        "2. Pay 6 cents per gram [<workshop|Filament>].",
        "++",
        "workshop",
    ),
    Case(
        "A print of 50 grams is 3 euros (50 × 6 cents) [<workshop|Filament>].",
        "+",
        "workshop",
        "What does a print of 50 grams cost?",
    ),
    Case(
        "For 10 late days that makes 2 euros [<loans|20 cents>].",
        "+",
        "loans",
        "My book is 10 days late, what do I pay?",
    ),
    Case("Volunteers get up to 15 € a month for travel [<volunteers|travel>].", "+", "volunteers"),
    Case("The assembly point is the fountain in Mill Lane [<safety|fountain>].", "+", "safety"),
    Case("Berths are 180 kr. a night up to 10 m [<harbour|180>].", "+", "harbour"),
    Case("In winter (October to March) you pay half: 90 kroner for a small boat [<harbour|180+2>].", "+", "harbour"),
    Case(
        "A boat of 12 metres pays 240 kroner a night, so three nights are 720 kroner [<harbour|240>].",
        "+",
        "harbour",
        "What do 3 nights cost for a boat of 12 metres?",
    ),
    Case("Power costs 3.5 kroner per kWh [<harbour|kilowatt>].", "+", "harbour"),
    Case("Five kroner buy four minutes of shower [<harbour|shower takes>].", "+", "harbour"),
    Case(
        "The office is open in the morning (8–11 am) and again from 4 pm to 6:30 pm [<harbour|8:00>].", "+", "harbour"
    ),
    Case("Ask Birgitte Holm or her deputy Anders Lund [<harbour|Birgitte>].", "+", "harbour"),
    Case("Washing and drying together come to 50 kroner [<harbour|Washing>].", "+", "harbour"),
    Case("You may not go faster than three knots [<harbour|knots>].", "+", "harbour"),
    Case("The hospital in Middelfart is 14 km away [<harbour|hospital>].", "+", "harbour"),
    Case("The kiosk has been there since 1987 [<harbour|1987>].", "+", "harbour"),
    Case("About 140 boats come to the regatta in June [<harbour|regatta>].", "+", "harbour"),
    Case("Children younger than twelve need a life jacket [<harbour|Children>].", "+", "harbour"),
    Case('The guide says: "Drinking water is free for all guests" [<harbour|Drinking>].', "+", "harbour"),
    Case("“Life buoys hang every 25 metres” [<harbour|buoys>].", "+", "harbour"),
    Case('It says "Berths with a green sign are free ... the owner comes back" [<harbour|green>].', "+", "harbour"),
    Case('Water is "free" there [<harbour|Drinking>].', "+", "harbour"),
    Case("Uploads are limited to 25 MB; above that you get a 413 [<reference|25 MB>].", "+", "reference"),
    Case("The default timeout is half a minute (30 s) [<reference|timeout_s>].", "+", "reference"),
    Case("Signed requests are valid for 5 minutes [<reference|HMAC>].", "+", "reference"),
    Case("`legacy_mode` is gone since version 2.4 [<reference|legacy_mode>].", "+", "reference"),
    Case("Logs are deleted after three months (90 days) [<reference|Logs>].", "+", "reference"),
    Case("The server listens on 8650 by default [<reference|port>].", "+", "reference"),
    Case("There are three scopes: read, write and admin [<reference|scopes>].", "+", "reference"),
    Case("The cache takes half a gigabyte (512 MB) [<reference|cache_mb>].", "+", "reference"),
    Case("The club has existed since 1911 [<about|1911>].", "+", "about"),
    Case("Nine fishermen founded the club in 1911 and it has 412 members (<about|1911+1>).", "+", "about"),
    Case("The spare key is under the third flowerpot [<notes|flowerpot>].", "+", "notes"),
    Case("It has to be quiet from 10 in the evening to 6 in the morning [<rules|Quiet>].", "+", "rules"),
    Case("Quiet hours last eight hours, from 22:00 [<rules|Quiet>].", "+", "rules"),
    Case("Dogs stay on a lead of at most two metres.[<rules|Dogs>]", "+", "rules"),
    # --- right: whole documents, ranges, several places, beside the line ---
    Case("All of that is in [<opening>].", "+", "opening"),
    Case("The library opens at ten [<opening|Tuesday+2>].", "+", "opening"),
    Case("Filament costs 6 cents a gram [<workshop|3D>].", "+", "workshop"),
    Case("Berths are 180 kroner, power is 3.50 a kilowatt hour [<harbour|180>][<harbour|kilowatt>].", "++", "harbour"),
    Case("A year is 24 euros [<membership|24>], and a book may stay 28 days [<loans|28>].", "++", "membership loans"),
    Case("A year is 24 euros and a book may stay 28 days [<membership|24>; <loans|28>].", "+", "membership loans"),
    Case(
        "| what | price |\n|---|---|\n| berth | 180 kr [<harbour|180>] |\n| dryer | 20 kr [<harbour|dryers>] |",
        "++",
        "harbour",
    ),
    Case(
        "- **Showers:** day and night [<harbour|showers stand>]\n- **Laundry:** 30 kroner [<harbour|Washing>]",
        "++",
        "harbour",
    ),
    Case("According to [<harbour|knots>], the speed limit is 3 knots.", "+", "harbour"),
    Case("As <harbour|knots> says, the limit is 3 knots.", "+", "harbour"),
    Case(
        "Bread comes at 7:30.[^1] The kiosk rents bicycles for 75 kroner.[^1]\n\n[^1]: <harbour|bread>", "+", "harbour"
    ),
    # --- right: other languages ---
    Case("Der Jahresbeitrag liegt bei 1250,50 € für Boote bis acht Meter [<german|1.250>].", "+", "german"),
    Case("Wer unter 27 ist, zahlt die Hälfte [<german|27>].", "+", "german"),
    Case("Die Rechnung muss binnen zwei Wochen bezahlt werden [<german|14 Tagen>].", "+", "german"),
    Case("Die Slipanlage ist von 9:00 bis 18:00 Uhr offen (<german|Slipanlage>).", "+", "german"),
    Case("The annual fee is 1,250.50 euros for boats up to 8 m [<german|1.250>].", "+", "german"),
    Case(
        "Ein Boot von zehn Metern kostet 1.440,50 Euro: 1.250,50 + 2 × 95 [<german|1.250+1>].",
        "+",
        "german",
        "Was kostet ein Boot von 10 Metern im Jahr?",
    ),
    Case("Il faut détartrer la machine tous les 3 mois [<french|vinaigre>].", "+", "french"),
    Case("The warranty lasts 2 years from the purchase [<french|garantie>].", "+", "french"),
    Case("Le réservoir fait 1,8 l [<french|réservoir>].", "+", "french"),
    Case("Una revisión completa son 35 € y dos días de espera [<spanish|35>].", "+", "spanish"),
    Case("Mit dem Rabatt von 20 % zahlen Mitglieder 28 Euro [<spanish|35+1>].", "+", "spanish"),
    Case("Lucía Ferrer lleva el taller [<spanish|Lucía>].", "+", "spanish"),
    Case("图书馆九点开门【<chinese|九点>】。", "+", "chinese"),
    Case("You can borrow 10 books for 30 days [<chinese|十本>].", "+", "chinese"),
    # --- right: read through the shell in ways that name no whole path ---
    Case(
        "Power is 3.50 kroner [<harbour|kilowatt>].",
        "+",
        commands=[("cd docs/guide && cat harbour.md", "harbour", "harbour")],
    ),
    Case(
        "Power is 3.50 kroner [<harbour|kilowatt>].",
        "+",
        commands=[("find docs -name harbour.md -exec cat {} +", "docs/", "harbour")],
    ),
    Case(
        "Power is 3.50 kroner [<harbour|kilowatt>].",
        "+",
        commands=[("find . -name 'har*' | xargs cat", "harbour", "harbour")],
    ),
    Case("Power is 3.50 kroner [<harbour|kilowatt>].", "+", commands=[("grep -rh kroner .", "/", "harbour")]),
    Case(
        "A book stays 28 days [<loans|28>] and a card costs 3 euros [<membership|lost>].",
        "++",
        commands=[("cd docs/handbook && cat {loans,membership}.md", "loans membership", "loans\0membership")],
    ),
    Case(
        "Children under 12 wear a life jacket [<harbour|Children>].",
        "+",
        commands=[
            (
                "grep -oh 'Children under 12 wear a life jacket' docs/guide/*",
                "harbour about",
                "Children under 12 wear a life jacket",
            )
        ],
    ),
    Case(
        "The spare key lies under the third flowerpot [<notes|flowerpot>].",
        "+",
        commands=[("cd own; cat notes.md", "notes", "notes")],
    ),
    Case("Power is 3.50 kroner [guide/harbour.md:15].", "+", "harbour"),
    Case("Power is 3.50 kroner [harbour.md:15].", "+", "harbour"),
    # --- wrong: a number ---
    Case("A berth costs 200 kroner a night [<harbour|180>].", "-", "harbour"),
    Case("A membership is 24 euros, and 12 euros for students [<membership|24>].", "-", "membership"),
    Case("Books can be renewed three times [<loans|28>].", "-", "loans"),
    Case("The reading room closes at 9 pm on Thursdays [<opening|Thursdays>].", "-", "opening"),
    Case("The Magnolia room seats 40 people [<rooms|Magnolia>].", "-", "rooms"),
    Case("Yes, a berth costs 25 kroner [<harbour|180>].", "-", "harbour", "A berth is 25 kroner, right?"),
    Case("The speed limit is 5 knots [<harbour|knots>].", "-", "harbour"),
    Case("Each upload may have 250 MB [<reference|25 MB>].", "-", "reference"),
    Case("Tokens expire after 3,000 seconds [<reference|HMAC>].", "-", "reference"),
    Case("The default of `max_retries` is 3 [<reference|max_retries>].", "-", "reference"),
    Case("Der Jahresbeitrag beträgt 1.520,50 Euro [<german|1.250>].", "-", "german"),
    Case("Die Mahngebühr ist fünfzehn Euro [<german|Mahn>].", "-", "german"),
    Case("Il faut chauffer l'eau à 98 °C [<french|93>].", "-", "french"),
    Case("La revisión cuesta 45 euros [<spanish|35>].", "-", "spanish"),
    Case("You can borrow 20 books [<chinese|十本>].", "-", "chinese"),
    Case("The kiosk was opened in 1978 [<harbour|1987>].", "-", "harbour"),
    Case("According to [<harbour|knots>], the speed limit is 6 knots.", "-", "harbour"),
    Case("<harbour|knots> sets the limit at 6 knots.", "-", "harbour"),
    Case("Water costs 10 kroner a day [<harbour|Drinking>].", "-", "harbour"),
    Case("Quiet hours begin at 23:00 [<rules|Quiet>].", "-", "rules"),
    Case("Members get 30 % off [<spanish|descuento>].", "-", "spanish"),
    # --- wrong: words ---
    Case('It says "Drinking water costs one euro a litre" [<harbour|Drinking>].', "-", "harbour"),
    Case("“Books can be borrowed for as long as you like” [<loans|28>].", "-", "loans"),
    Case('The guide states that "dogs are not allowed in the showers" [<harbour|showers stand>].', "-", "harbour"),
    Case("Rooms are booked with Gustav, at least two days ahead [<rooms|Odile>].", "-", "rooms"),
    Case("New volunteers are shown around by our Miranda [<volunteers|Tadeusz>].", "-", "volunteers"),
    Case("The nearest hospital is in Odense, 14 kilometres away [<harbour|hospital>].", "-", "harbour"),
    # --- wrong: other lines of a file that was read ---
    Case("Bicycles can be rented for a day at the kiosk [<harbour|Drinking>].", "-", "harbour"),
    Case("The showers are behind the harbour office [<harbour|regatta>].", "-", "harbour"),
    Case("Toilet tanks are emptied at the pump on jetty C [<harbour|180>].", "-", "harbour"),
    Case("Live music is played in the sail loft [<harbour|Birgitte>].", "-", "harbour"),
    Case("A deposit is taken for the harbour card [<harbour|bread>].", "-", "harbour"),
    Case("The chandler sells rope and charts [<harbour|Oil>].", "-", "harbour"),
    # --- wrong: not read, echoed, made up ---
    Case("The board meets on 3 May [<board|3 May>].", "-", "harbour"),
    Case("The budget is 90,000 kroner (<board|budget>).", "-", "harbour"),
    Case("The budget is 90,000 kroner, see `<board|budget>`.", "-", "harbour"),
    Case("The budget is 90,000 kroner. Source: <board|budget>", "-", "harbour"),
    Case("See <board> for the budget of 90,000 kroner.", "-", "harbour"),
    Case("Details are in the [minutes](<board>#L4).", "-", "harbour"),
    Case(
        "The board meets on 3 May [<board|3 May>].",
        "-",
        commands=[
            (
                'echo "<board>:3: The board meets on 3 May"',
                "",
                "docs/board/minutes.md:3: The board meets on 3 May in June.",
            )
        ],
    ),
    Case(
        "The budget is 90,000 kroner [<board|budget>].", "-", commands=[("ls docs/board", "", "docs/board/minutes.md")]
    ),
    Case(
        "The budget is 90,000 kroner [<board|budget>].",
        "-",
        commands=[("cat docs/guide/harbour.md # docs/board/minutes.md", "harbour", "harbour")],
    ),
    Case("The sauna is free [docs/guide/sauna.md:3].", "-", "harbour"),
    Case("The sauna is free [docs/guide/harbour.md:300].", "-", "harbour"),
    Case("A berth is 180 kroner [<harbour|180>], a sauna is free [docs/guide/sauna.md:3].", "+-", "harbour"),
    Case("Bicycles are 75 kroner a day [<harbour|75>].", "-", "harbour@1-10"),
    # --- no citations at all ---
    Case("Put the handler into src/main.py:14 and run `python src/main.py`.", "", "harbour"),
    Case("Your stack trace points to app/models/user.rb:88 (see lib/auth.py:3).", "", "harbour"),
    Case("```sh\ncat docs/board/minutes.md | head -3\n```\nprints the beginning of a file.", "", "harbour"),
    Case("Run `grep -n budget docs/board/minutes.md` yourself.", "", "harbour"),
    Case("```yaml\nfiles: [docs/board/minutes.md]\n```", "", "harbour"),
    Case("It is on https://example.org/docs/board/minutes.md#L4 in the web.", "", "harbour"),
    Case("Create docs/index.md and docs/setup.md in your project.", "", "harbour"),
    Case(
        "There are these files:\n- docs/guide/harbour.md\n- docs/board/minutes.md",
        "+",
        commands=[
            (
                "ls docs/*; head -1 docs/guide/harbour.md",
                "harbour",
                "docs/guide/harbour.md\ndocs/board/minutes.md\nThis guide is for guests of the harbour of Sønderby.",
            )
        ],
    ),
    Case("I have not read docs/board/minutes.md yet.", "", "harbour", "What is in docs/board/minutes.md?"),
    Case("Use either/or, TCP/IP or and/or; 3/4 of it [1], [2], [x].", "", "harbour"),
    # --- of all kinds ---
    Case("Nope, glass isn't allowed on the jetties [<rules|glass>].", "+", "rules"),
    Case(
        "Sure! You'd pay 480 kroner for two nights with your 14 m boat (<harbour|240>).",
        "+",
        "harbour",
        "We come with a 14 m boat for two nights. What will we pay?",
    ),
    Case(
        "Since you arrive on 5 November, the winter rate applies: 90 kroner a night [<harbour|180+2>].",
        "+",
        "harbour",
        "I arrive on 5 November with an 8 m boat",
    ),
    Case("There are 16 sockets on every jetty, 16 A each [<harbour|sockets>].", "+", "harbour"),
    Case("Ring the office on +45 5550 1234 if it's closed [<harbour|5550>].", "+", "harbour"),
    Case("Ring the office on +45 5550 4321 if it's closed [<harbour|5550>].", "-", "harbour"),
    Case("You'll get your deposit of 50 kroner back [<harbour|deposit>].", "+", "harbour"),
    Case("It's a fiver for four minutes under the shower [<harbour|shower takes>].", "+", "harbour"),
    Case("Emergencies: dial 112 [<harbour|112>]", "+", "harbour"),
    Case("Emergencies: dial 911 [<harbour|112>]", "-", "harbour"),
    Case("The crew of the Havfruen won in 2024 [<harbour|2024>].", "+", "harbour"),
    Case("The crew of the Poseidon won the regatta in 2024 [<harbour|2024>].", "-", "harbour"),
    Case("Every Friday at 8 pm there's live music in the sail loft [<harbour|Fridays>].", "+", "harbour"),
    Case("In July and August the baker comes at half past seven [<harbour|bread>].", "+", "harbour"),
    Case("You get fresh bread from 9:30 at jetty A [<harbour|bread>].", "-", "harbour"),
    Case("The chandler closes at 5 pm [<harbour|chandler>].", "+", "harbour"),
    Case("The chandler closes at 6 pm [<harbour|chandler>].", "-", "harbour"),
    Case(
        "Today is Tuesday, 24 November, so the library is open until 19:00 [<opening|Tuesday>].",
        "+",
        "opening",
        "Is the library open now?",
    ),
    Case(
        "On Sundays and Mondays it's closed, since it only opens Tuesday to Saturday [<opening|Tuesday>].",
        "+",
        "opening",
    ),
    Case("The library has been closed for 10 years [<opening|Tuesday>].", "-", "opening"),
    Case("Students save 15 euros compared with the full price of 24 euros [<membership|24>].", "+", "membership"),
    Case(
        "At 25 you still pay the reduced 9 euros, since you're under 26 [<membership|24>].",
        "+",
        "membership",
        "I'm 25. What do I pay?",
    ),
    Case("Two things are needed: a photo and a letter with your address [<membership|photo>].", "+", "membership"),
    Case("Bring a photo, a letter and 5 euros [<membership|photo>].", "-", "membership"),
    Case("After 40 days you have reached the maximum of 8 euros [<loans|20 cents>].", "+", "loans"),
    Case("**Late fees**\n\n- 20 cents a day [<loans|20 cents>]\n- capped at 8 euros [<loans|20 cents>]", "++", "loans"),
    Case("**Late fees**\n\n- 30 cents a day [<loans|20 cents>]\n- capped at 8 euros [<loans|20 cents>]", "-+", "loans"),
    Case("The Juniper room has no window, see [the list of rooms](<rooms>).", "+", "rooms"),
    Case("Book by e-mail: rooms@library.example [<rooms|Odile>].", "+", "rooms"),
    Case("The laser cutter must never run unattended [<workshop|laser>].", "+", "workshop"),
    Case("Introductions start at half past five in the afternoon [<workshop|17:30>].", "+", "workshop"),
    Case("A 250 g spool would be €15 of filament [<workshop|Filament>].", "+", "workshop", "How much for 250 g?"),
    Case("A 250 g print would be €25 of filament [<workshop|Filament>].", "-", "workshop", "How much for 250 g?"),
    Case("Only two people know the alarm code, Odile and Tadeusz [<safety|alarm>].", "+", "safety"),
    Case("The alarm code is 4711 [<safety|alarm>].", "-", "safety"),
    Case("Set `timeout_s: 60` to wait longer; the default is 30 [<reference|timeout_s>].", "+", "reference"),
    Case("Failed requests are retried 5 times by default.【<reference|max_retries>】", "+", "reference"),
    Case("Failed requests are retried 8 times by default.【<reference|max_retries>】", "-", "reference"),
    Case("It answers with HTTP status 413 [<reference|413>].", "+", "reference"),
    Case("It answers with HTTP status 431 [<reference|413>].", "-", "reference"),
    Case("El 20 % de descuento es solo para socios [<spanish|descuento>].", "+", "spanish"),
    Case("El taller abre dos días por semana, de 5 a 8 y media de la tarde [<spanish|20:30>].", "+", "spanish"),
    Case("La garantie est de 2 ans [<french|garantie>].", "+", "french"),
    Case("La garantie est de cinq ans [<french|garantie>].", "-", "french"),
    Case("Alle 60 Tassen wird der Filter gewechselt [<french|60>].", "+", "french"),
    Case("Frau Yıldız ist zuständig [<german|Yıldız>].", "+", "german"),
    Case("Nach zwei Wochen ohne Zahlung kommen 12 € Mahngebühr dazu [<german|14 Tagen+1>].", "+", "german"),
    Case("Die Slipanlage ist montags geschlossen [<german|Slipanlage>].", "+", "german"),
    Case("Der Beitrag ist binnen 30 Tagen fällig [<german|14 Tagen>].", "-", "german"),
    Case("超期每天0.5元【<chinese|0.5>】。", "+", "chinese"),
    Case("超期每天5元【<chinese|0.5>】。", "-", "chinese"),
    Case("Ada answers mail on Mondays, she likes tea [<notes|Ada>].", "+", "notes"),
    Case("Quiet hours: 10 pm – 6 am (<rules|Quiet>)", "+", "rules"),
    Case("The club turned 100 in 2011 [<about|1911>].", "+", "about"),
    Case("There were 9 founders, all fishermen [<about|1911>].", "+", "about"),
    Case("See docs/board/minutes.md:3 and <harbour|knots>.", "-+", "harbour"),
    Case("I looked at <harbour> and <rules>, neither says anything about saunas.", "++", "harbour rules"),
    Case("The minutes (docs/board/minutes.md) say that the budget is large.", "-", "harbour"),
    Case("`docs/board/minutes.md` says the board meets in room 7.", "-", "harbour"),
    Case("[docs/board/minutes.md](https://example.org/minutes) has it.", "-", "harbour"),
    Case('As stated in "docs/board/minutes.md", Ole Krag keeps the minutes.', "-", "harbour"),
    Case("Sources: <harbour|knots>, docs/board/minutes.md:4", "+-", "harbour"),
    Case("```\ndocs/board/minutes.md:4: The budget is 90,000 kroner.\n```", "-", "harbour"),
    Case("Add `import x` to utils/date.ts:12 and README.md:3, then run docs/build.sh.", "", "harbour"),
    Case("The price (180 kr., see <harbour|180>) is per night.", "+", "harbour"),
    Case("What the guide says [<harbour|knots>]: not more than 3 knots.", "+", "harbour"),
    Case("It's 3 knots, not 5 [<harbour|knots>].", "+", "harbour", "Is it 5 knots?"),
    Case("Opening hours: Tue–Sat 10–19, Thu reading room till 22 [<opening|Tuesday+1>].", "+", "opening"),
    Case("A year costs twenty-four euros [<membership|24>].", "+", "membership"),
    Case("Yep — kids under 12 have to wear life jackets on the jetties [<harbour|Children>].", "+", "harbour"),
    Case("Power points: 16 per jetty [<harbour|sockets>].", "+", "harbour"),
    Case("The dryer is 10 kroner cheaper than the washing machine [<harbour|Washing>].", "+", "harbour"),
    Case(
        "Winter price for a 12 m boat: 120 kroner [<harbour|240+1>].",
        "+",
        "harbour",
        "What is the price of my 12 m boat in winter?",
    ),
    Case("Between 11:00 and 16:00 the office is closed [<harbour|8:00>].", "+", "harbour"),
    Case("In the morning the office is open for three hours [<harbour|8:00>].", "+", "harbour"),
    Case("Ring buoys are placed at intervals of 25 m [<harbour|buoys>].", "+", "harbour"),
    Case("Hospital: Middelfart (14 km) [<harbour|hospital>]; emergency number: 112 [<harbour|112>]", "++", "harbour"),
    Case("It's on the second weekend of June, so probably 13 June [<harbour|regatta>].", "-", "harbour"),
    Case("The kiosk, opened by Jonas Friis, rents bikes at 75 kr/day [<harbour|75+1>].", "+", "harbour"),
    Case(
        "You can empty toilet tanks on jetty C [<harbour|jetty C>] and leave oil at the office [<harbour|Oil>].",
        "++",
        "harbour",
    ),
    Case("You can empty toilet tanks on jetty D, pump 4 [<harbour|jetty C>].", "-", "harbour"),
    Case(
        "A shower of eight minutes is 10 kroner [<harbour|shower takes>].",
        "+",
        "harbour",
        "How much is a shower of 8 minutes?",
    ),
    Case("A shower costs 15 kroner [<harbour|shower takes>].", "-", "harbour"),
    Case("You'll pay a deposit of 500 kroner for the card [<harbour|deposit>].", "-", "harbour"),
    Case("The library's late fee maxes out at eight euros per book [<loans|20 cents>].", "+", "loans"),
    Case("Renewing is possible two times, so 84 days in total [<loans|28 days>].", "+", "loans"),
    Case("A book can be kept for 12 weeks if you renew it twice [<loans|28 days>].", "+", "loans"),
    Case("That's 2 € per month [<membership|24 euros>].", "+", "membership", "What is the membership per month?"),
    Case("Both students and people under 26 pay nine euros [<membership|24 euros>].", "+", "membership"),
    Case("Students get 50 % off [<membership|24 euros>].", "-", "membership"),
    Case("Opens at 10, closes at 7 [<opening|Tuesday>].", "+", "opening"),
    Case("Opens at 11, closes at 7 [<opening|Tuesday>].", "-", "opening"),
    Case("Die Bibliothek hat dienstags bis samstags von 10 bis 19 Uhr geöffnet [<opening|Tuesday>].", "+", "opening"),
    Case("La bibliothèque ferme à 19 h [<opening|Tuesday>].", "+", "opening"),
    Case("La bibliothèque ferme à 21 h [<opening|Tuesday>].", "-", "opening"),
    Case("Biblioteka jest otwarta do 19:00 [<opening|Tuesday>].", "+", "opening"),
    Case("図書館は19時に閉まります【<opening|Tuesday>】。", "+", "opening"),
    Case("В четверг читальный зал открыт до 22:00 [<opening|Thursdays>].", "+", "opening"),
    Case("В четверг читальный зал открыт до 23:00 [<opening|Thursdays>].", "-", "opening"),
    Case(
        "Für ein 9-Meter-Boot zahlt man 1.345,50 Euro [<german|1.250+1>].",
        "+",
        "german",
        "Was zahlt ein Boot mit 9 Metern?",
    ),
    Case("Mitglieder unter 27 zahlen 625,25 Euro [<german|1.250+2>].", "+", "german"),
    Case("Mitglieder unter 27 zahlen 500 Euro [<german|1.250+2>].", "-", "german"),
    Case("Die Mahngebühr beträgt zwölf Euro [<german|Mahn>].", "+", "german"),
    Case("Dienstag bis Sonntag, 9–18 Uhr [<german|Slipanlage>]", "+", "german"),
    Case("Use 1 dl of vinegar every quarter [<french|vinaigre>].", "+", "french"),
    Case("Détartrez-la quatre fois par an [<french|vinaigre>].", "+", "french"),
    Case("Retries: 5; timeout: 30 s; port: 8650 [<reference|timeout_s+3>].", "+", "reference"),
    Case("Retries: 5; timeout: 60 s; port: 8650 [<reference|timeout_s+3>].", "-", "reference"),
    Case("> Logs are kept for 90 days and then deleted. [<reference|Logs>]", "+", "reference"),
    Case("Signatures use HMAC-SHA256 and last 300 s, i.e. five minutes [<reference|HMAC>].", "+", "reference"),
    Case("Signatures use HMAC-SHA512 [<reference|HMAC>].", "-", "reference"),
    Case("Since 2.4 there is no `legacy_mode` any more [<reference|legacy_mode>].", "+", "reference"),
    Case("Since 3.1 there is no `legacy_mode` any more [<reference|legacy_mode>].", "-", "reference"),
    Case('He says "quiet hours are from 22:00 to 6:00" [<rules|Quiet>]', "+", "rules"),
    Case('He says "quiet hours are from 21:00 to 7:00" [<rules|Quiet>]', "-", "rules"),
    Case("The club is 115 years old in 2026 [<about|1911>].", "+", "about"),
    Case("The key? Third flowerpot. [<notes|flowerpot>]", "+", "notes"),
    Case(
        "See the [rules](<rules|Dogs>), [harbour guide](<harbour|knots>) and [board minutes](<board|budget>).",
        "++-",
        "rules harbour",
    ),
    Case("(Source: docs/board/minutes.md, line 4)", "-", "harbour"),
    Case("docs/board/minutes.md, lines 3–5: budget and meeting", "-", "harbour"),
    Case("Per minutes.md:4 the budget is 90,000 kroner.", "", "harbour"),
    Case("- `docs/board/minutes.md:4` budget\n- `docs/guide/harbour.md:7` berths", "-+", "harbour"),
    Case("From docs\\board\\minutes.md:4 we know the budget.", "-", "harbour"),
    Case("[[docs/board/minutes.md#L4|minutes]]", "-", "harbour"),
    Case('<a href="docs/board/minutes.md#L4">minutes</a>', "-", "harbour"),
    Case("^[docs/board/minutes.md:4]", "-", "harbour"),
    Case("{docs/board/minutes.md:4}", "-", "harbour"),
    Case("cite: docs/board/minutes.md:L4-L5", "-", "harbour"),
    Case("docs/board/minutes.md@4", "-", "harbour"),
    Case("file://docs/board/minutes.md:4", "-", "harbour"),
    Case("See _docs/board/minutes.md_ and __docs/board/minutes.md:4__.", "--", "harbour"),
    Case(
        "The harbour office opens at 8 in the morning and closes at 18:30 in the evening, with a break from "
        "11 to 4 [<harbour|8:00>].",
        "+",
        "harbour",
    ),
    Case("You can wash for 30 kroner and dry for another 20 [<harbour|Washing>].", "+", "harbour"),
    Case("If nobody is there, call +45 5550 1234 [<harbour|5550>].", "+", "harbour"),
    Case(
        "Yes. Glass, paper and metal are collected at the slipway [<harbour|Glass>].",
        "+",
        "harbour",
        "Can I leave glass somewhere?",
    ),
    Case("Long boats (over 15 metres) are charged 320 kroner a night [<harbour|240>].", "+", "harbour"),
    Case(
        "No, the winter discount ends on 31 March [<harbour|halved>].", "+", "harbour", "Is it still cheaper in April?"
    ),
    Case(
        "Your membership would be 9 euros because you are a student [<membership|24 euros>].",
        "+",
        "membership",
        "I am a student, what do I pay?",
    ),
    Case("Cards are made at the front desk [<membership|photo>].", "+", "membership"),
    Case("Board games have to be back after a week and can't be renewed [<loans|Board>].", "+", "loans"),
    Case("The most you can pay for a late book is 8 euros [<loans|20 cents>].", "+", "loans"),
    Case("It's lent in the Magnolia room, which has a projector and space for 14 [<rooms|Magnolia>].", "+", "rooms"),
    Case("Introductions to the 3D printer: every other Monday at 5:30 pm [<workshop|3D>].", "+", "workshop"),
    Case(
        "The volunteers meet every last Wednesday of the month in the Juniper room [<volunteers|Wednesday>].",
        "+",
        "volunteers",
    ),
    Case("The first-aid box is behind the front desk [<safety|first-aid>].", "+", "safety"),
    Case("Set `cache_mb` to 1024 if 512 MB is too little [<reference|cache_mb>].", "-", "reference"),
    Case("Uploads bigger than 25 MB are rejected (413) [<reference|413>].", "+", "reference"),
    Case("Tokens can have three scopes [<reference|scopes>].", "+", "reference"),
    Case("Der Beitrag für ein Boot bis 8 m liegt bei 1.250,50 € im Jahr [<german|1.250>].", "+", "german"),
    Case("Ab dem neunten Meter kommen je Meter 95 € dazu [<german|95>].", "+", "german"),
    Case("Rechnungen sind in 14 Tagen zu zahlen [<german|14 Tagen>].", "+", "german"),
    Case("Le filtre doit être changé après 60 tasses [<french|60>].", "+", "french"),
    Case("Chauffez l'eau à 93 degrés [<french|93>].", "+", "french"),
    Case("La revisión tarda dos días [<spanish|35>].", "+", "spanish"),
    Case("El taller abre lunes y miércoles a las cinco de la tarde [<spanish|20:30>].", "+", "spanish"),
    Case("借书期限是30天【<chinese|十本>】。", "+", "chinese"),
    Case("Nine fishermen started the club in 1911 [<about|1911>].", "+", "about"),
    Case("Ada reads her mail on Mondays [<notes|Ada>].", "+", "notes"),
    Case("Keep your dog on a lead (2 m at most) [<rules|Dogs>].", "+", "rules"),
    Case("Long boats are charged 360 kroner a night [<harbour|240>].", "-", "harbour"),
    Case("Call +45 5550 1235 [<harbour|5550>].", "-", "harbour"),
    Case("The office opens at 9:00 [<harbour|8:00>].", "-", "harbour"),
    Case("You'd pay 19 euros as a student [<membership|24 euros>].", "-", "membership"),
    Case("Board games have to be back after three weeks [<loans|Board>].", "-", "loans"),
    Case("The Magnolia room has space for 41 people [<rooms|Magnolia>].", "-", "rooms"),
    Case("Introductions are at 6:30 pm [<workshop|3D>].", "-", "workshop"),
    Case("The volunteers get up to 50 euros a month [<volunteers|travel>].", "-", "volunteers"),
    Case("Uploads bigger than 52 MB are rejected [<reference|413>].", "-", "reference"),
    Case("Rechnungen sind in 40 Tagen zu zahlen [<german|14 Tagen>].", "-", "german"),
    Case("Le filtre doit être changé après 80 tasses [<french|60>].", "-", "french"),
    Case("The regatta is held in September [<harbour|regatta>].", "-", "harbour"),
    Case("The harbour master is Kirsten Holm [<harbour|Birgitte>].", "-", "harbour"),
    Case('The guide says "showers are free for members of the club" [<harbour|shower takes>].', "-", "harbour"),
    Case("Fresh bread comes in summer [<harbour|Power>].", "-", "harbour"),
    Case("The chandler sells paint [<harbour|Toilet>].", "-", "harbour"),
    Case("The hospital is in Middelfart [<harbour|dryers>].", "-", "harbour"),
)

BEYOND: Sequence[Case] = (
    Case("The club was started by Erik Madsen in 1911 [<about|1911>].", "-", "about"),
    Case("A book can be kept for 20 weeks if you renew it twice [<loans|28 days>].", "-", "loans"),
    Case("The key is under the doormat by the harbour office [<notes|Ada>].", "-", "notes harbour"),
    Case("A year costs twenty-six euros [<membership|24>].", "-", "membership"),
    Case("Students pay 26 euros [<membership|24 euros>].", "-", "membership"),
    Case("Tadeusz books the rooms for you [<volunteers|Tadeusz>].", "-", "volunteers"),
    Case("The showers are closed at night [<harbour|showers stand>].", "-", "harbour"),
)
"""Wrong ones that the rule cannot tell: the figure or the name stands there, but for something else; or the words are
there, and turned round. They count in no rate.
"""


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence that a line says, and one with a figure that does not stand there."""

    name: str
    words: str
    said: str
    false: str


FACTS: Sequence[Fact] = (
    Fact("opening", "Thursdays", "On Thursdays the reading room is open until 22:00", "It is open until 23:30"),
    Fact("membership", "lost", "A lost card costs 3 euros", "A lost card costs 17 euros"),
    Fact("loans", "Board games", "Board games are lent for 7 days", "Board games are lent for 19 days"),
    Fact("rooms", "Juniper", "The Juniper room seats 6 people", "The Juniper room seats 60 people"),
    Fact("workshop", "Filament", "Filament costs 6 cents a gram", "Filament costs 66 cents a gram"),
    Fact("volunteers", "travel", "Travel is paid back up to 15 euros", "Travel is paid back up to 51 euros"),
    Fact("harbour", "dryers", "A dryer costs 20 kroner", "A dryer costs 45 kroner"),
    Fact("harbour", "buoys", "Life buoys hang every 25 metres", "Life buoys hang every 52 metres"),
    Fact("german", "95", "Jeder weitere Meter kostet 95 Euro", "Jeder weitere Meter kostet 59 Euro"),
    Fact("french", "60", "Changez le filtre toutes les 60 tasses", "Changez le filtre toutes les 90 tasses"),
    Fact("spanish", "20:30", "El taller cierra a las 20:30", "El taller cierra a las 21:45"),
    Fact("reference", "Logs", "Logs are kept for 90 days", "Logs are kept for 400 days"),
    Fact("about", "412", "The club has 412 members", "The club has 700 members"),
    Fact("rules", "Dogs", "Dogs are kept on a lead of 2 metres", "Dogs are kept on a lead of 9 metres"),
)
FORMS: Sequence[str] = (
    "{said} [{path}:{n}].",
    "{said}. [{path}:{n}]",
    "{said} [`{path}:{n}`].",
    "{said} [{path}#L{n}].",
    "{said} [{path}:L{n}-L{n}].",
    "{said} [{path}, line {n}].",
    "{said} [{path} lines {n}-{n}].",
    "{said} [Source: {path}:{n}].",
    "{said} [see {path}:{n}].",
    "{said} [{path}:{n},{n}].",
    "{said} ({path}:{n}).",
    "{said} (see {path}:{n}).",
    "{said} (`{path}:{n}`).",
    "{said} ({path}, lines {n}\u2013{n}).",
    "{said}\u3010{path}:{n}\u3011.",
    "{said}\u3010{path}\u2020L{n}-L{n}\u3011.",
    "{said} \uff08{path}:{n}\uff09.",
    "{said} \uff3b{path}:{n}\uff3d.",
    "{said}, [source]({path}#L{n}).",
    "{said}, [source](<{path}#L{n}>).",
    "{said}, as [the document]({path}:{n}) tells.",
    "{said} [[{path}:{n}]].",
    "{said} [\\[{path}:{n}\\]].",
    "{said}, says the file [{path}] line {n}.",
    "{said} *({path}:{n})*",
    "{said} **[{path}:{n}]**",
    "- {said} \u2014 [{path}:{n}]",
    "> {said} [{path}:{n}]",
    "{said} [1: {path}:{n}].",
    "{said} [^{path}:{n}].",
    "{said} <sup>[{path}:{n}]</sup>.",
    "[{path}:{n}] {said}.",
    "According to [{path}:{n}], {said}.",
    "{said} [Quelle: {path}, Zeile {n}].",
    "{said} [voir {path}, ligne {n}].",
    "{said} [./{path}:{n}].",
)
"""Ways to write a place behind or in front of what it says. Of those that hold the path alone, with no brackets:"""
BARE_FORMS: Sequence[str] = (
    "{said}, see {path}:{n}.",
    "{said} - {path}:{n}",
    "{said}. Source: {path}#L{n}",
    "{said}. `{path}:{n}`",
    "{said}. `{path}`, line {n}.",
    "{path}:{n} says: {said}.",
    "{said}. <{path}:{n}>",
    "{said}.\n\nSources:\n1. {path}:{n}",
    '{said} "{path}:{n}".',
)


def list_generated() -> Iterator[Case]:
    """Yields each form with a fact that was read, with the same that was not, and with a figure that is wrong."""
    plain = [fact for fact in FACTS if fact.name != "about"]  # a path with a blank needs brackets
    for form, fact in [*zip(FORMS, cycle(FACTS)), *zip(BARE_FORMS, cycle(plain))]:
        place = write_place(fact.name, fact.words)
        path, _, line = place.rpartition(":")
        other = "opening" if fact.name != "opening" else "loans"
        yield Case(form.format(said=fact.said, path=path, n=line), "+", fact.name)
        yield Case(form.format(said=fact.said, path=path, n=line), "-", other)
        if form != "{said}.\n\nSources:\n1. {path}:{n}":
            yield Case(form.format(said=fact.false, path=path, n=line), "-", fact.name)


def list_cases() -> list[Case]:
    return [*HAND_WRITTEN, *list_generated()]
