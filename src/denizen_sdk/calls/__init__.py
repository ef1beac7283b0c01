"""The calls of `/api`, by subject. `client` puts them together."""
