"""The command lines: argv and environment become a frozen Config, or one of the commands."""
