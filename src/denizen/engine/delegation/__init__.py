"""Delegation: one agent hands a task to another, and waits for the result or goes on (`domain/delegation`).

`delegations` opens the turns and knows what became of them, `tools` offers that to models.
"""
