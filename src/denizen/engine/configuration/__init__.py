"""The configuration in force: its generations, the policy about tools, and what assistants and people choose."""
