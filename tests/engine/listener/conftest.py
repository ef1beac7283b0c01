"""What tests of listeners may switch."""

import pytest

from denizen.engine.listener import turn_display


@pytest.fixture
def immediate_previews(monkeypatch: pytest.MonkeyPatch) -> None:
    """Previews are shown at once and renewed with each change."""
    monkeypatch.setattr(turn_display, "PREVIEW_AFTER_S", 0.0)
    monkeypatch.setattr(turn_display, "PREVIEW_EVERY_S", 0.0)
