"""Which days are due, and why."""
