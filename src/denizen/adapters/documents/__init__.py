"""Reads the text of documents. Implements `ports.pdf`."""
