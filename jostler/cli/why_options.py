"""The flags of `jostler why`: its own, and the agent's flags that locate spool and journal.

**Invariant:** a flag shared with the agent has the same meaning and the same variable, so that in
the agent's container the file's name is the only argument needed.
"""

from __future__ import annotations

from jostler.cli.flags import HELP, Flag, boolean, whole
from jostler.cli.options import TABLE

ABOUT = """usage: jostler why PATH-OR-NAME [flags]

Says where one file is: waiting, open, sealed, stored, loaded; or rejected, kept, ignored, missing.
PATH-OR-NAME is a path of the spool, a path below the experiment (ndt7/2026/11/21/x.json), a
Filename as rows have it (2026/11/21/x.json), or a bare file name.
It asks the running agent; if none answers, it searches journal and spool.  It also searches the
bucket if one is known, and BigQuery if a project is given.  The last lines name what was searched
and what was not.
Exit status: 0 found, safe or on its way; 1 found, but rejected, kept, ignored or missing;
2 wrong use; 3 unknown.

flags:
"""
_OF_THE_AGENT = (
    *("experiment", "datatype", "local-data-dir", "state-dir", "extensions"),
    *("settle-age", "missed-age", "gcs-bucket", "gcs-data-dir", "organization"),
)
FLAGS = (
    Flag(
        name="address",
        help="where the agent answers, HOST:PORT; empty: do not ask it"
        " (default $PROMETHEUSX_LISTEN_ADDRESS or localhost:9990)",
        variable=False,
    ),
    Flag(name="bucket", help="the same as -gcs-bucket", variable=False),
    Flag(name="node", default="", help="read only this node's indexes", variable=False),
    Flag(
        name="days",
        read=whole,
        default="0",
        help="days to search in the bucket and BigQuery: so many from the day of the file on;"
        " if that is not known, the last ones",
        variable=False,
    ),
    Flag(
        name="most",
        read=whole,
        default="2000",
        help="greatest number of index objects to read, the newest first",
        variable=False,
    ),
    Flag(
        name="show",
        read=boolean,
        default="false",
        help="write the newest stored row's raw to standard output, the rest to standard error",
        variable=False,
    ),
    Flag(
        name="project",
        default="",
        help="project whose BigQuery tables are searched",
        variable=False,
    ),
    Flag(name="meta-dataset", default="jostler", help="the loader's dataset", variable=False),
    Flag(
        name="location", default="US", help="location of the datasets in BigQuery", variable=False
    ),
    Flag(
        name="naming",
        default="mlab",
        help="names of v1 tables: mlab or third-party",
        variable=False,
    ),
    Flag(name="json", read=boolean, default="false", help="write JSON", variable=False),
    HELP,
    *(flag for flag in TABLE if flag.name in _OF_THE_AGENT),
)
