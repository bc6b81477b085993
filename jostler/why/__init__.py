"""The question `where is my file?` and its answer, as values."""
