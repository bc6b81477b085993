"""`python -m loader` is the command `jostler-load`."""

import sys

from loader.entry import load

if __name__ == "__main__":
    sys.exit(load())
