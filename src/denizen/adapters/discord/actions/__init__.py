"""Actions that an account does on Discord in a member's name (`ports.channel.Channel.act`).

`registry` lists them and runs one. Each is a function that gets an `ActionContext` and the details by name.
`context` holds the checks: an action never does more than the asker and the account may both do.
"""
