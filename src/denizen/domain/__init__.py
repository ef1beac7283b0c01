"""Records, enums and pure decisions. Standard library only; nothing here does I/O or knows who calls it."""
