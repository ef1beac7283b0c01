"""Test doubles that ship: a scripted model, a model server, a Discord simulator, and a store and a durable log that
need no set-up. Each is a real implementation of a port; none is a mock.

The package imports nothing itself, so that a test pays for what it uses only.
"""
