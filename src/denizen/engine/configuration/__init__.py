"""The configuration in force: its generations, settings that assistants change, and choices that people make."""
