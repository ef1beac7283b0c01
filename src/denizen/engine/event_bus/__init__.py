"""Events from anywhere: they are kept once, and what listeners do about them happens once."""
