"""The text index: which blocks of a bundle can have a word at all."""
