"""The routes that answer with JSON: a module for each topic, with its handlers and their descriptions."""
