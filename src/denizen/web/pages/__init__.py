"""HTML for people: the chat and the sign-in. Templates are in `web/templates`, scripts and styles in `web/static`."""
