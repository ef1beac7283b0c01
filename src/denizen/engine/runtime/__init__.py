"""The running system: the current generation of the configuration, settings over it, connected accounts, live events and the audit log."""
