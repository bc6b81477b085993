"""Question and answer of `jostler why` (where is my file?), as values."""
