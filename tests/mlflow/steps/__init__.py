"""The chapters of the surface, one file a group of nouns. Each has `steps(book, at)`."""
