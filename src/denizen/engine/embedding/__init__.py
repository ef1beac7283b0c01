"""Embeddings of texts and questions, made by the configured embedder and paid from the budget."""
