"""The loader for spark-submit: `spark-submit --py-files jostler.zip loader/job.py --bucket …`.

**Invariant:** this is only an entry point; docs/loader.md says how executors get the packages.
"""

import sys

from loader.entry import load

if __name__ == "__main__":
    sys.exit(load())
