"""The parts that all routes share: who may come in, reading requests, errors, event streams, and their description."""
