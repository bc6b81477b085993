"""The plan of a run: tables, their days, and which days are due and why."""
