"""One folder per outside thing. Adapters implement the ports and do not know each other."""
