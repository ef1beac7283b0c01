"""Sandbox, sources, sync, snapshots and bots of Savoir (inventory 2.5, 2.6, 2.8).

Rows are read by `tests.requirements`; `python -m tests.requirements --sync` sets their status.
"""

from tests.promises.requirement import Requirement

SAVOIR_SOURCES: tuple[Requirement, ...] = (
    # 2.5 Sandbox and shell
    Requirement(
        "S16",
        "2.5",
        "The sandbox runs those of find, ls, tree, grep, cat, head, tail, wc, sort, uniq, diff, echo, stat, file, du, "
        "basename, dirname, realpath and xargs that the host has, and says which of them is missing.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S17",
        "2.5",
        "The sandbox refuses every program not on its list, command substitution and redirects that write, has no "
        "network, and sees a read-only file system.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S18",
        "2.5",
        "Of the further text programs (cut, tr, column, sed, awk and their like) the sandbox offers only those, and "
        "only in those forms, that can neither write nor start another program.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S19",
        "2.5",
        "A command is parsed with its quoting into pieces, and the program, options and paths of each piece are "
        "checked against what is allowed.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S20",
        "2.5",
        "The shell route takes one `command`, or 1 to 10 `commands`, of 1 to 2000 characters, answers 400 to a "
        "refused one, and cuts each stream at 50 000 characters with a note of its length.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S21",
        "2.5",
        "A sandbox session (`sess_...`) lives 30 minutes and an idle sandbox 5; the given session is reused, else a "
        "warm sandbox of the same snapshot, else a new one is made.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S22",
        "2.5",
        "The tools `bash` and `bash_batch` report loading while they run, then done with success, duration in "
        "milliseconds and the output of every command.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S23",
        "2.5",
        "Agents on platforms use the sandbox inside the process, without HTTP.",
        status="covered",
        issue="knowledge",
    ),
    # 2.6 Sources, sync, snapshots
    Requirement(
        "S24",
        "2.6",
        "A sync reads the configured sources, fetches their content, pushes it to the git remote where one is set, "
        "and publishes a snapshot that is kept for 7 days.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S25",
        "2.6",
        "A sync is a durable workflow that fetches sources in parallel, four at a time, with 5 retries (waiting "
        "attempt times 2 s after a reset), pushes with 5 and publishes with 3.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S25-limits",
        "2.6",
        "A sync without sources, or with a missing repository, fails at once; an unchanged state is not pushed; "
        "YouTube is skipped without an API key.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S26",
        "2.6",
        "A GitHub source is a shallow sparse clone of its branch and content path that keeps only document files and "
        "no empty folders and counts what it kept.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S26-readme",
        "2.6",
        "A GitHub source marked README only fetches just the README.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S27",
        "2.6",
        "A YouTube source writes, newest first, in pages of 50 up to its maximum, one `<videoId>-<slug>.md` "
        "transcript with front matter a video, and an index file.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S28",
        "2.6",
        "In a snapshot a repository's documents lie below `docs/<output path>/` and a channel's transcripts below "
        "`youtube/<channel>/`.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S29",
        "2.6",
        "The snapshot status gives current id, latest id, whether a sync is needed and the latest time, and the page "
        "that shows it asks every 5 minutes and syncs when needed.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S30",
        "2.6",
        "An empty snapshot remote gets a marker file, and is created first where a path has none; an unmarked one with "
        "content needs confirmation (409); a change clears current snapshot, status and sessions.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S31",
        "2.6",
        "A sync asked for through the SDK takes reset (off by default), push (on by default) and a source filter, and "
        "is answered as started.",
        status="covered",
        issue="knowledge",
    ),
    # 2.8 Bots
    Requirement(
        "S32",
        "2.8",
        "On GitHub an agent answers mentions in issues and pull requests, and new issues when `reply_to_new_issues` "
        "is on.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S33",
        "2.8",
        "A GitHub webhook is verified by HMAC-SHA256 in constant time (401 otherwise), a ping is answered, and only "
        "what people newly write, in issues, pull requests, reviews and discussions, starts a turn.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S33-context",
        "2.8",
        "A GitHub conversation is known by owner, repository and number; the model gets up to 1000 characters of the "
        "body, the last 10 comments as context, and the question without @mentions.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S33-token",
        "2.8",
        "An installation token of a GitHub App is reused for 50 minutes.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S34",
        "2.8",
        "On Discord an agent answers a mention and then goes on in the thread.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "S35",
        "2.8",
        "A mention subscribes the agent to its thread, where later messages of people need no mention, and a mention "
        "of a configured role triggers as well.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "S35-signals",
        "2.8",
        "The agent reacts with eyes when it starts and types while it works; at the end the eyes are removed and a "
        "thumbs-up is added.",
        status="covered",
        issue="discord",
    ),
)
