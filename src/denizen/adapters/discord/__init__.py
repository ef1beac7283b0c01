"""The Discord adapter: accounts of agents, and what they read, send and offer there. Implements `ports.channel`.

Read `account` first. Events arrive at `gateway.client`, pass `gateway.events` or `interactions`, wait in
`gateway.room_queues`, and reach the listener; `messages` converts them to and from our records. `guild` knows the
members and who may see what. `actions` does what an agent's tools ask for. `commands` registers slash commands.
`client` holds the settings, the HTTP client and the errors that the rest share. `check` is for `denizen doctor`.

Importing this package loads discord.py, which takes a third of a second: import it only where an account is made.
"""
