"""The audit log: writing what belongs to no other record, reading it in pages, and verifying its chain."""
