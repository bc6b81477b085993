"""The functions that a question may call, by their names in GoogleSQL."""
