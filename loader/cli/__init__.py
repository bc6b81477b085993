"""The command lines of the loader: options, progress, exit status."""
