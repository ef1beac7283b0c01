"""What agents owe on platforms: planned when a turn ends, sent once each."""
