"""The command line: reads flags and environment into a Config, and runs the commands."""
