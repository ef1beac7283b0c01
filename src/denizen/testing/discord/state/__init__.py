"""The state of the simulated Discord: records, access rules, and the feed of changes. No HTTP and no wire format."""
