"""The running system: the configuration in force, connected accounts, live events and the audit log."""
