"""The loader's command line: options, console, metrics, exit status."""
