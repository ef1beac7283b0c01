"""Runtime, loop, hooks, schedules and commands of Tailored AI (inventory 4.1, 4.3, 4.5, 4.6, 4.10).

Rows are read by `tests.requirements`; `python -m tests.requirements --sync` sets their status.
"""

from tests.promises.requirement import Requirement

TAILORED: tuple[Requirement, ...] = (
    # 4.1 Runtime
    Requirement(
        "T1",
        "4.1",
        "One runtime holds the configuration, tools and models, and web, terminals and platforms read it when a turn "
        "starts.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T1-automation",
        "4.1 T1",
        "Schedules and delegation read the runtime when their turn starts, like web, terminals and platforms.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T2",
        "4.1",
        "A reload reads the configuration and builds tools and models anew; any failure keeps the old state whole, "
        "and only a success raises the generation by one.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T3",
        "4.1",
        "Changes of the configuration are noticed with 500 ms of debounce, or by polling every 2 seconds where "
        "watching fails.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T4",
        "4.1",
        "After a reload old tools are closed, listeners run (a failing one undoes nothing), and platform commands "
        "follow.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T5",
        "4.1",
        "The hooks of a turn are the agent's own first and then those of its trigger.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T6",
        "4.1",
        "Tools and models are built from the configuration in one place.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T6-meta",
        "4.1 T6",
        "The meta tools (delegate, task_status, admin) are built from the configuration in the place where all tools "
        "are.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T7",
        "4.1",
        "Edits of the configuration wait for each other, and a shutdown leaves running turns to the next process and "
        "tells so in a stock text who waits for them.",
        status="covered",
        issue="foundation",
    ),
    # 4.3 Agent loop
    Requirement(
        "T8",
        "4.3",
        "A turn stores the message, looks up tools and model again, trims, asks the model, runs its tools and stores "
        "the results, until there is text or the limit is reached.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T9",
        "4.3",
        "When the tools differ from those of the last iteration, a note that is not stored tells the model which ones "
        "there are now.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T10",
        "4.3",
        "History is trimmed oldest first at 4 characters a token, without leaving a tool result whose call is gone, "
        "and the last message always stays.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "T11",
        "4.3",
        "The tokens of system prompt and tools are taken off what the model can read, and history gets at most the "
        "rest; `max_history_tokens` itself stays whole, however long a prompt is.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "T12",
        "4.3",
        "With summaries on, the dropped part is summed up in a few sentences, in a note in front of what is left, and "
        "when that fails it is dropped silently.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "T13",
        "4.3",
        "The tool calls of one step run in parallel, and their results are stored in the order of the calls.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T14",
        "4.3",
        "Arguments are checked before a tool runs, the error names the expected ones, and the error for an unknown "
        "tool names the tools.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T15",
        "4.3",
        "Three rounds in a row with the same calls stop a turn, and a turn at its limit says so in brackets.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T16",
        "4.3",
        "With `limits.nudges` set to N, text in place of a call is asked about up to N times, with the custom text "
        "(`nudge_text`) only the last time.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T17",
        "4.3",
        "A tool's result tells its run time from 100 ms on, and how long an approval took.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "T18",
        "4.3",
        "A failed model request is tried again by the one retry rule.",
        status="covered",
        issue="foundation",
        same_as=("X-retry",),
    ),
    Requirement(
        "T19",
        "4.3",
        "The preset for small models keeps the prompt under 500 tokens, offers about 5 tools, samples at low "
        "temperature, and asks for no conditional answer words.",
        status="covered",
        issue="foundation",
    ),
    # 4.5 Hooks
    Requirement(
        "T20",
        "4.5",
        "A hook is a tool, its arguments and `skipIf`; before and after a turn there may be one or a list, run in "
        "order.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T21", "4.5", "Hooks may use every tool, not only those of the agent.", status="covered", issue="automation"
    ),
    Requirement(
        "T22",
        "4.5",
        "`{{name}}` is filled in a hook's text arguments, and a missing tool or a failing hook is logged and does not "
        "stop the next one.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T23",
        "4.5",
        "A match of `skipIf` on a hook's output skips the whole turn before it and only the remaining hooks after it.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T24",
        "4.5",
        "Hooks of a schedule know the last run, last response and next task, those of the task watcher the action and "
        "the task, and all hooks after a turn the response.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T25",
        "4.5",
        "Only a schedule puts the outputs of its hooks, where not empty and divided by a rule, in front of the prompt.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T26",
        "4.5",
        "A turn skipped by a hook answers skipped without content over HTTP, a stock text to a delegating agent, and "
        "nothing on Discord.",
        status="covered",
        issue="automation",
    ),
    # 4.6 Cron
    Requirement(
        "T27",
        "4.6",
        "A schedule has name, cron expression, prompt, session (`cron:<name>` by default), model, agent, enabled, "
        "delivery (log, discord, discord-dm), `wakeAgent`, `newSession` and hooks.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T28",
        "4.6",
        "With `wakeAgent` off a schedule only leaves its prompt in the session, counts as run, and asks no model.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T29",
        "4.6",
        "With `newSession` every run has a fresh session, and a run skipped by a hook counts as run.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T30",
        "4.6",
        "A schedule's first run takes its last run as one hour ago, and its next task comes from the agent's "
        "`next_task.md`.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T31",
        "4.6",
        "A schedule's run can end without anything being delivered.",
        status="covered",
        issue="automation",
        same_as=("X-no-action",),
    ),
    Requirement(
        "T32",
        "4.6",
        "`discord-dm` without a target goes to the owner, and `discord` without one is an error in the log.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T33",
        "4.6",
        "A schedule can be run by hand and switched over HTTP, which is written back to the configuration, and "
        "schedules start anew on a reload.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T33-command",
        "4.6",
        "Owners list, add (in words or as an expression), switch, run and remove schedules with `/schedules` on "
        "platforms, in chats and at the terminal, which is written back to the configuration.",
        status="covered",
        issue="automation",
    ),
    # 4.10 Discord and commands
    Requirement(
        "T34",
        "4.10",
        "An agent answers direct messages and mentions in allowed guilds, a session can follow its user through all "
        "channels, and a question that waits behind others has a sign that says so.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "T35",
        "4.10",
        "The slash commands /new, /agent (25 choices), /help, /compact, /context (token shares) and every configured "
        "command exist and are synced when their definitions change.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "T35-tasks",
        "4.10 T35",
        "The slash command /tasks lists tasks and creates one with a title and a status.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T35-commands",
        "4.10",
        "A configured command has a name of at most 32 and a description of at most 100 characters, and an input "
        "option only when its template uses it.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "T36",
        "4.10",
        "The same commands work as text that starts with `/`, and an unknown one is answered with a hint.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "T37",
        "4.10",
        "A configured command is shell, prompt, or shell and then prompt with its output, within 30 s; output of "
        "shell alone comes as a code block cut to fit.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "T38",
        "4.10",
        "`/compact` needs 4 messages, puts one summary in their place, and reports the counts before and after.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "T39",
        "4.10",
        "A text is split at a line end past the middle, else at the end of a sentence, else at a space, else hard.",
        status="covered",
        issue="discord",
    ),
)
