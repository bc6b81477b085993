"""`python -m jostler` is the command `jostler`."""

import sys

from jostler.entry import main

if __name__ == "__main__":
    sys.exit(main())
