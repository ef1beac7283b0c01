"""What the simulated Discord knows: records, rules of access, and the feed of changes. No HTTP and no wire format."""
