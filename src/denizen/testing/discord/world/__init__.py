"""The world from a person's side: who exists, and what people say and do."""
