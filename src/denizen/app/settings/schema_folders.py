"""The shape of `folders`: where the Markdown files lie that all agents share (inventory 4.1, 4.4)."""

from __future__ import annotations

from pydantic import Field, field_validator

from denizen.app.settings.fields import Section, SomeText, refuse

CONTEXT_FOLDER = "context"
KNOWLEDGE_FOLDER = "knowledge"


class FoldersSection(Section):
    """Folders that all agents share, relative to the home folder. An agent's own lie below `agents/<name>/`, under the
    names `context` and `knowledge`.
    """

    context: SomeText = Field(
        default=CONTEXT_FOLDER,
        description="Its Markdown files, sorted by name, stand in the system prompt of every agent that does not skip "
        "them (`skip_global_context`). A change holds from the next message on.",
    )
    knowledge: SomeText = Field(
        default=KNOWLEDGE_FOLDER,
        description="Its text files, folders below it included, can be listed, searched and read by every agent that "
        "may use the tools of the skill `knowledge`.",
    )

    @field_validator("context", "knowledge")
    @classmethod
    def _is_path(cls, value: str) -> str:
        if "\0" in value:
            raise refuse("this cannot be a folder.", "Write a path, such as context or /srv/denizen/context.")
        return value
