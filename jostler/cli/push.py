"""The command `jostler push`: put documents and files of rows into the spool.

**Invariant:** each file is judged as the agent judges, before anything of it is written; what is
wrong is reported with file, line and field, and the exit status is 1.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from jostler import log
from jostler.cli import messages
from jostler.cli.flags import HELP, Flag, Parsed, boolean, day, parse, usage
from jostler.cli.messages import DONE, FAILED, run, say_error
from jostler.cli.producer_flags import FLAGS as OF_THE_AGENT
from jostler.cli.producer_flags import Setting, checks, setting
from jostler.config import Mode
from jostler.errors import JostlerError
from jostler.format.names import display
from jostler.producer.lines import Splitter, ending, lines, opened
from jostler.producer.naming import safe_name, timed_name
from jostler.producer.outbox import Outbox, Outcome
from jostler.producer.pushing import Pusher, RowsRefusedError, Where
from jostler.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jostler.producer.outbox import Published

COMMAND = "push"
say = partial(messages.say, COMMAND)
STDIN = "-"
FILES_MOST = 1_000_000
READ_BYTES = 1 << 20
ABOUT = """usage: jostler push -datatype D [flags] FILE|DIR|-...

Puts files into the spool, from where an agent archives them.  Each is judged first, as the agent
judges; if anything in a file is wrong, nothing of it is written, and file, line, field and reason
are reported.  A .jsonl, .ndjson, .jsonl.gz or .ndjson.gz file becomes one file for each row,
<name>.<line>.json; any other file is one document.  Of a DIR the files with these extensions and
the agent's are taken, also below.  - is standard input: rows if -name ends like those, else one
document.  -follow takes rows from standard input as they come, without end.
Exit status: 0 all is in the spool (with -now and -wait: stored); 1 something is not; 2 wrong use.

flags:
"""


def _switch(name: str, help_: str) -> Flag:
    return Flag(name=name, read=boolean, default="false", help=help_, variable=False)


FLAGS = (
    Flag(
        name="day",
        read=day,
        help="day of the folder, 2026-01-31; by default that of the Start which -index-field gives,"
        " else today in UTC",
        variable=False,
    ),
    Flag(
        name="name",
        default="",
        help="name for standard input; with -follow the beginning of names"
        " (default <time>_<hash>.json)",
        variable=False,
    ),
    _switch("follow", "take rows from standard input as they come; bad ones go to standard output"),
    _switch("rename", "choose another name for a file whose name another content has"),
    _switch("dry-run", "judge, and write nothing"),
    _switch("now", "archive at once, without an agent, and print the addresses"),
    _switch("wait", "wait until the agent that runs has stored the files, and print the addresses"),
    *OF_THE_AGENT,
    HELP,
)


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    parsed = parse(FLAGS, argv, os.environ, most_words=FILES_MOST)
    if parsed.values["help"]:
        sys.stdout.write(ABOUT + usage(FLAGS) + "\n")
        return DONE
    return run(COMMAND, lambda: _run(parsed))


def _run(parsed: Parsed) -> int:
    """Push everything.

    Raises:
        ConfigError: wrong use.
        JostlerError: there is no schema to judge by.
        OSError: the spool cannot be written.
    """
    values = parsed.values
    stores = values["now"] or values["wait"]
    _check_use(parsed)
    log.start(verbose=values["verbose"], text=True, stream=sys.stderr)
    if not values["verbose"]:
        logging.getLogger("jostler").setLevel(logging.WARNING)
    given = setting(parsed, Mode.ONCE if stores else Mode.SCHEMA)
    where = Where(
        fields=given.fields,
        day=values["day"],
        extensions=given.config.extensions,
        rename=values["rename"],
    )
    outbox = None if values["dry-run"] else Outbox(given.top, given.config.extensions)
    with outbox or nullcontext():
        push = Push(Pusher(checks(given, say), outbox, where), given, values["name"])
        if values["follow"]:
            push.follow(sys.stdin.buffer)
        for word in parsed.words:
            push.word(word)
    push.report()
    if stores and push.filenames:
        stored = _store(push.filenames, given, now=values["now"])
        return DONE if stored and not push.failed else FAILED
    return FAILED if push.failed else DONE


def _check_use(parsed: Parsed) -> None:
    """Check the flags that are the command's own.

    Raises:
        ConfigError: they do not go together.
    """
    values, problems = parsed.values, parsed.problems
    if values["follow"] and parsed.words:
        problems.append("-follow: reads standard input and takes no FILE")
    if not values["follow"] and not parsed.words:
        problems.append("FILE: required: files, directories, or - for standard input")
    if parsed.words.count(STDIN) > 1:
        problems.append("-: standard input can be read once")
    if values["name"] and STDIN not in parsed.words and not values["follow"]:
        problems.append("-name: goes with - or -follow")
    for one, other in (("now", "wait"), ("now", "dry-run"), ("wait", "dry-run")):
        if values[one] and values[other]:
            problems.append(f"-{other}: excludes -{one}")
    if values["follow"]:
        problems += [f"-follow: excludes -{name}" for name in ("now", "wait") if values[name]]


@dataclass
class Push:
    """What one run of the command has done so far.

    Attributes:
        pusher: writes into the spool.
        given: the agent's configuration.
        name: what `-name` says.
        filenames: what is in the spool now, or was there already.
        failed: whether something was not written.
    """

    pusher: Pusher
    given: Setting
    name: str
    filenames: list[str] = field(default_factory=list)
    failed: bool = False
    _counts: dict[Outcome, int] = field(default_factory=dict)

    def word(self, word: str) -> None:
        """Push what an argument names; report what is wrong with it."""
        if word == STDIN:
            self._guarded(word, partial(self._stream, sys.stdin.buffer, "standard input"))
        elif os.path.isdir(word):  # noqa: PTH112 - arguments are texts
            found = 0
            for path in self._files(word):
                found += 1
                self._guarded(path, partial(self._file, path))
            if not found:
                ends = ", ".join((*self.given.config.extensions, ".jsonl", ".ndjson"))
                self._fail(f"{word}: has no file with one of the extensions {ends}")
        else:
            self._guarded(word, partial(self._file, word))

    def follow(self, stream: BinaryIO) -> None:
        """Push rows as they come, until the end; bad ones go to standard output."""
        out = sys.stdout.buffer
        splitter = Splitter(self.given.config.limits.max_bytes, out.write)
        fd = stream.fileno()
        with suppress(KeyboardInterrupt):
            while True:
                select.select([fd], [], [])
                data = os.read(fd, READ_BYTES)
                rows = list(splitter.feed(data) if data else splitter.end())
                if rows:
                    good, bad = self.pusher.good_rows(rows, self._stem(), source="standard input")
                    self._wrote(good)
                    for line, error in bad:
                        out.write(line.content + b"\n" if line.content else b"")
                        self._fail(str(error))
                    out.flush()
                if not data:
                    return

    def report(self) -> None:
        """Report how many files were written."""
        counts = self._counts.items()
        parts = [f"{counted(number, 'file')} {outcome.value}" for outcome, number in counts]
        say(f"{', '.join(parts) or 'nothing was written'}: {self.given.top}")

    def _files(self, top: str) -> Iterator[str]:
        """Yield the files of a directory and below that have one of the extensions."""
        for folder, folders, names in os.walk(top):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                wanted = name.endswith(self.given.config.extensions) or ending(name)
                if wanted and not name.startswith("."):
                    yield f"{folder}/{name}"

    def _stem(self) -> str:
        """Return the beginning of names that no earlier run has used."""
        return f"{self.name}{timed_name(datetime.now(UTC), os.urandom(8), postfix='')}"

    def _file(self, path: str) -> None:
        with Path(path).open("rb") as file:
            self._stream(file, path)

    def _stream(self, stream: BinaryIO, source: str) -> None:
        """Push a file or standard input."""
        is_stdin = stream is sys.stdin.buffer
        name = self.name if is_stdin else os.path.basename(source)  # noqa: PTH119 - text
        mtime_ns = None if is_stdin else os.fstat(stream.fileno()).st_mtime_ns
        most = self.given.config.limits.max_bytes
        if end := ending(name):
            stem = name[: -len(end)]
            rows = lines(opened(stream, name), most, source)
            self._wrote(self.pusher.rows(rows, stem, source=display(source), mtime_ns=mtime_ns))
            self._tell_renamed(f"{stem}.1.json", source)
            return
        # One byte more than the most says that it is too big, without reading all of it.
        content = stream.read(most + 1)
        name = name or timed_name(datetime.now(UTC), content)
        published = self.pusher.document(content, name, source=display(source), mtime_ns=mtime_ns)
        self._wrote([published])
        self._tell_renamed(name, source)

    def _tell_renamed(self, name: str, source: str) -> None:
        safe = safe_name(name, self.given.config.extensions)
        if safe != name:
            say(f"{display(source)}: the agent takes no file of this name; it is {safe} now")

    def _guarded(self, source: str, push: Callable[[], None]) -> None:
        """Push one file; what is wrong with it does not keep the others waiting."""
        try:
            push()
        except RowsRefusedError as exc:
            for error in exc.refused:
                self._fail(str(error))
            self._fail(str(exc))
        except JostlerError as exc:
            self.failed = True
            say_error(COMMAND, exc)
        except OSError as exc:
            self._fail(f"{display(source)}: {exc.strerror or exc}")

    def _fail(self, text: str) -> None:
        self.failed = True
        say(text)

    def _wrote(self, published: Sequence[Published]) -> None:
        for filename, outcome in published:
            self.filenames.append(filename)
            self._counts[outcome] = self._counts.get(outcome, 0) + 1
            if outcome is Outcome.RENAMED:
                say(f"another content has the name; written as {filename}")


def _store(filenames: Sequence[str], given: Setting, *, now: bool) -> bool:
    """Store files or wait for it; print the addresses; return whether all are stored."""
    from jostler.cli.storing import Storing  # noqa: PLC0415 - the agent is loaded only to archive

    storing = Storing(given, filenames, say)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: storing.stop())
    stored = storing.now() if now else storing.wait()
    for address in stored.addresses.values():
        sys.stdout.write(f"{address}\n")
    for filename, why in stored.rejected.items():
        say(f"{filename}: the agent rejected it: {why}")
    if stored.missing:
        first, more = stored.missing[0], len(stored.missing) - 1
        rest = f" and {counted(more, 'more file')}" if more else ""
        say(f"{first}{rest}: not stored yet as far as is known; `jostler why` tells more")
    return not (stored.rejected or stored.missing)
