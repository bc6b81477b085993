"""The table of the agent's flags: names, defaults and help texts.

**Invariant:** every flag is defined here.  `-help` prints this table, and a test compares it with
docs/agent.md.
"""

from __future__ import annotations

from jostler.cli.commands import listed
from jostler.cli.flags import (
    HELP,
    Flag,
    boolean,
    directory,
    duration,
    free_space,
    lines,
    one_of,
    size,
    usage,
    whole,
    words,
)
from jostler.config import BadFiles, DiskLackAction, LogFormat, Validate
from jostler.format.compression import compression_choice
from jostler.schema import Use
from jostler.watchdir import Watch

ABOUT = f"""jostler moves JSON files from a spool directory to bundles in a bucket, exactly once.

usage: jostler -gcs-bucket B -experiment E -datatype D {{-mlab-node-name H | -node-name N}} [flags]
       jostler -schema -experiment E -datatype D [flags]
       jostler -schema -from-samples DIR
       jostler COMMAND [flags]; jostler help COMMAND shows its flags

commands:
{listed()}

Flags take one dash or two, `-flag value` or `-flag=value`.  Every flag but -help and -version can
be set by the environment: -bundle-size-max by BUNDLE_SIZE_MAX, and so on.
Durations are written as 1h30m or 250ms, sizes as 20971520, 0x1400000, 20_971_520, 30MB or 20MiB.

flags:
"""


TABLE = (
    Flag(
        name="gcs-bucket",
        help="required: name of the bucket, or file:///dir for a local directory used as one",
    ),
    Flag(
        name="gcs-local-disk",
        read=boolean,
        default="false",
        help="interpret the bucket's name as a local directory",
    ),
    Flag(
        name="gcs-data-dir",
        default="autoload/v1",
        help="directory in the bucket: autoload/v1, or autoload/v2 with -organization",
    ),
    Flag(name="organization", default="", help="organization of autoload/v2: [a-z0-9]+"),
    Flag(
        name="upload-schema",
        read=boolean,
        default="true",
        help="upload table schemas; if false, a schema with new fields is an error",
    ),
    Flag(
        name="mlab-node-name",
        help="M-Lab host name of this node, @file to read it from a file, or third-party",
    ),
    Flag(name="node-name", help="name of a node that is not M-Lab's"),
    Flag(name="experiment", help="required: name of the experiment"),
    Flag(
        name="datatype",
        read=words,
        help="required: datatypes, repeated or with commas",
    ),
    Flag(
        name="datatype-schema-file",
        aliases=("datatype-file",),
        read=words,
        help="schema as <datatype>:<path>; default <local-data-dir>/datatypes/<datatype>.json",
    ),
    Flag(
        name="bundle-size-max",
        read=size,
        default="20971520",
        help="bytes of uncompressed rows at which a bundle is uploaded",
    ),
    Flag(
        name="bundle-age-max",
        read=duration,
        default="1h",
        help="time from a bundle's first file to its upload",
    ),
    Flag(
        name="local-data-dir",
        read=directory,
        default="/var/spool",
        help="directory below which experiments write",
    ),
    Flag(
        name="extensions",
        read=words,
        help="extensions of measurement files, repeated or with commas (default .json)",
    ),
    Flag(
        name="watch",
        read=one_of(Watch),
        default="auto",
        help="where events of files come from: auto, inotify, watchdog, or scan for none",
    ),
    Flag(
        name="missed-age",
        read=duration,
        default="3h",
        help="age at which a file that no event announced is taken, good or bad",
    ),
    Flag(
        name="missed-interval",
        read=duration,
        default="30m",
        help="time between scans for missed files, spread randomly by a quarter",
    ),
    Flag(
        name="settle-age",
        read=duration,
        default="10s",
        help="age at which a good file that no event announced is taken, if the kernel cannot say"
        " that nobody writes it",
    ),
    Flag(
        name="schema",
        aliases=("local",),
        read=boolean,
        default="false",
        help="write table schemas to the current directory, show them and exit",
    ),
    Flag(
        name="from-samples",
        default="",
        help="with -schema: directory of sample files to infer a datatype schema from",
    ),
    Flag(
        name="flush-timeout",
        aliases=("flushTimeout",),
        read=duration,
        default="20s",
        help="time for the whole shutdown",
    ),
    Flag(
        name="bad-files",
        read=one_of(BadFiles),
        default="upload",
        help="files that cannot be archived: upload as rejected1 and delete, keep, or delete",
    ),
    Flag(
        name="min-free-disk",
        read=free_space,
        default="5%",
        help="space of the spool's disk, in per cent or bytes, below which -disk-lack-action"
        " begins; 0 never",
    ),
    Flag(
        name="disk-lack-action",
        read=one_of(DiskLackAction),
        default="flush",
        help="while the disk lacks space: flush seals bundles early; stop also tells services by"
        " the file .jostler/FULL and opens no bundle while others are on their way; remove-oldest"
        " also gives up the oldest unsent files, each listed in rejected1, while uploads fail or"
        " lag",
    ),
    Flag(
        name="validate",
        read=one_of(Validate),
        default="schema",
        help="schema: a BigQuery load would accept the file; json: it is one JSON object",
    ),
    Flag(
        name="native",
        read=one_of(Use),
        default="auto",
        help="jostler-native, which accepts good files fast: auto (if installed), off, or require",
    ),
    Flag(
        name="index-field",
        read=lines,
        help="source of Start, End or WorkID in a datatype's index rows, repeated, as"
        " <datatype>:<column>=<source>: a path such as Download.StartTime, or REGEX~FORMAT of the"
        " file's name",
    ),
    Flag(
        name="state-dir",
        read=lambda text: directory(text) if text else "",
        default="",
        help="directory of the journal (default <local-data-dir>/.jostler-<experiment>)",
    ),
    Flag(
        name="compression",
        read=compression_choice,
        default="auto",
        help="auto: small, or fast for a bundle opened while many files wait; fast; small; or a"
        " level of zlib-ng, 1 to 9",
    ),
    Flag(
        name="compression-level",
        read=whole,
        help="in place of -compression: a level of ISA-L, 0 (fastest) to 3 (smallest)",
    ),
    Flag(
        name="upload-concurrency", read=whole, default="4", help="bundles uploaded at once, 1 to 64"
    ),
    Flag(
        name="memory-max",
        read=size,
        default="32MiB",
        help="bytes of bundles held in memory at once; the default rises to -bundle-size-max if"
        " that is more",
    ),
    Flag(
        name="once",
        read=boolean,
        default="false",
        help="take what is in the spool now, upload it and exit",
    ),
    Flag(
        name="check",
        read=boolean,
        default="false",
        help="check flags, spool, schemas and bucket, and exit",
    ),
    Flag(
        name="allow-empty",
        read=boolean,
        default="false",
        help="with -check: a datatype without a directory in the spool is no error",
    ),
    Flag(
        name="prometheusx.listen-address",
        default="localhost:9990",
        help="address of metrics, status page and probes; :9990 for all interfaces, empty for none;"
        " with -once, -check and -schema only if given",
    ),
    Flag(
        name="allowed-hosts",
        read=words,
        help="host names, beside this machine's own, that requests to the status server may use",
    ),
    Flag(
        name="runbook-url",
        default="",
        help="address of the runbook, to which the status page links each problem",
    ),
    Flag(name="verbose", read=boolean, default="false", help="log each file"),
    Flag(
        name="log-format",
        read=one_of(LogFormat),
        default="auto",
        help="json, text, or auto: text on a terminal",
    ),
    Flag(
        name="test-interval",
        read=duration,
        default="0s",
        help="stop after this time, for tests; 0 never",
    ),
    Flag(
        name="version",
        read=boolean,
        default="false",
        help="show version and commit and exit",
        variable=False,  # VERSION means something else in many images
    ),
    HELP,
)


def help_text() -> str:
    """Return what `-help` shows."""
    return ABOUT + usage(TABLE)
