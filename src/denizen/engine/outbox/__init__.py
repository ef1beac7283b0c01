"""The outbox: deliveries that agents owe on platforms, planned when a turn ends, and sent once each."""
