"""The composition root: settings, building, reloading, supervising. Only `app`, `cli` and `testing` see settings."""
