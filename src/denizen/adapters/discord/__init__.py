"""Discord: accounts of agents, what they read, send and offer there. Implements `ports.channel`.

Read `account` first. What arrives: `client` (the gateway), `events` and `interactions`, `readiness` and `room_queues`,
and `hearing`, from where the listener is called; `intake`, `wording` and `attachments` turn it into our records. What
goes out: `sending`, `content`, `buttons`, `tickets` with `interaction_webhook`, `typing`. What is offered: `commands`,
`command_sync`. Who may see what: `audience` and what it imports. What is wrong: `faults`, `application`, `permissions`,
`check`.

Loads discord.py, which takes a third of a second: import it where an account is made.
"""
