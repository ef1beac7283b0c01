"""Messages: from Discord's form to ours and back, posting them, and the answers to commands."""
