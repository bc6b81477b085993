"""What the commands that read an archive have in common: flags, catalogue, progress, the end.

**Invariant:** Ctrl-C ends the program at once; what it was writing has no final name yet.  A search
that could not read everything ends with status 1 and says what is missing.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

from jostler.archive.address import find_moved
from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.cache import IndexCache
from jostler.archive.catalogue import Query, Tally
from jostler.archive.repeats import without_repeats
from jostler.cli.archive_flags import COMMON, WHERE, Kind
from jostler.cli.config_file import parse_with_file
from jostler.cli.flags import usage
from jostler.cli.messages import DONE, FAILED, MISUSED, say, say_error
from jostler.cli.places import places
from jostler.cli.progress import Progress
from jostler.errors import JostlerError
from jostler.format.bigquery_names import Naming
from jostler.format.names import BundleName
from jostler.storage import open_storage
from jostler.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jostler.archive.catalogue import Catalogue
    from jostler.archive.files import File
    from jostler.cli.flags import Flag
    from jostler.format.names import Place
    from jostler.storage import Storage

PATIENCE_S = 30.0
PROBLEMS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command that reads an archive.

    Attributes:
        name: as it is typed.
        about: the text before the flags.
        flags: those of the command alone; `where` and COMMON are added.
        most_words: how many arguments without a dash it takes.
        run: does the work and returns the exit status; raises ValueError for wrong use.
        where: the flags that say where the archive is.
    """

    name: str
    about: str
    flags: tuple[Flag, ...]
    most_words: int
    run: Callable[[Archive, list[str]], int]
    where: tuple[Flag, ...] = WHERE

    def main(self, argv: Sequence[str]) -> int:
        """Run the command; return its exit status."""
        table = (*self.where, *self.flags, *COMMON)
        parsed = parse_with_file(table, WHERE, argv, os.environ, most_words=self.most_words)
        if parsed.values["help"]:
            sys.stdout.write(f"{self.about}\n{usage(table)}\n")
            return DONE
        if parsed.problems:
            return self._misused(parsed.problems)
        try:
            with Archive(self.name, parsed.values) as archive:
                status = self.run(archive, parsed.words)
                return archive.report_problems(status)
        except ValueError as exc:
            return self._misused([str(exc)])
        except JostlerError as exc:
            say_error(self.name, exc)
            return FAILED

    def _misused(self, problems: Sequence[str]) -> int:
        for problem in problems:
            say(self.name, problem)
        say(self.name, "-help shows the usage")
        return MISUSED


class Archive:
    """The archive that the flags name; what was opened is closed at the end.

    Attributes:
        values: of all flags, by name.
        tally: what the search does.
        progress: what is shown of it.
    """

    def __init__(self, command: str, values: Mapping[str, Any]) -> None:
        self.values = values
        self.tally = Tally()
        self.progress = Progress(self.tally)
        self._command = command
        self._open = ExitStack()
        self._buckets: dict[str, Storage] = {}
        self._moved: dict[tuple[str, Place], Catalogue] = {}

    def __enter__(self) -> Self:
        self._open.enter_context(self.progress)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @cached_property
    def catalogue(self) -> Catalogue:
        """The catalogue of the experiment.

        Raises:
            ValueError: a flag that it needs is missing or wrong.
            JostlerError: it cannot be opened.
        """
        values = self.values
        if values["catalogue"] is Kind.BIGQUERY:
            return self._bigquery()
        if not values["bucket"]:
            raise ValueError("-bucket: required: the bucket to search")
        return self.catalogue_of(values["bucket"], self.places())

    def catalogue_of(self, bucket: str, places: Sequence[Place]) -> Catalogue:
        """Return the catalogue of a bucket.

        Raises:
            ValueError: the bucket's URL has a wrong form.
            JostlerError: it cannot be opened.
        """
        cache = IndexCache(self._cache_dir(), self.values["cache-max"])
        made = BucketCatalogue(self.bucket(bucket), places, cache)
        return self._open.enter_context(closing(made))

    def _bigquery(self) -> Catalogue:
        values = self.values
        if not values["project"]:
            raise ValueError("-project: required with -catalogue bigquery")
        try:
            from jostler.archive.bigquery_catalogue import (  # noqa: PLC0415 - an extra
                BigQueryCatalogue,
            )
        except ImportError as exc:
            hint = "pip install 'jostler[bigquery]'"
            raise JostlerError("google-cloud-bigquery is not installed", hint=hint) from exc
        made = BigQueryCatalogue(
            project=values["project"],
            places=self.places(),
            location=values["location"],
            naming=Naming(values["naming"]),
            patience_s=PATIENCE_S,
        )
        return self._open.enter_context(closing(made))

    def moved(self, file: File) -> File | None:
        """Find a file again whose bundle went away: compaction merges bundles.

        Raises:
            JostlerError: the bucket cannot be searched.
        """
        key = file.origin.bucket, BundleName.parse(file.origin.data).place
        if key not in self._moved:
            self._moved[key] = self.catalogue_of(key[0], [key[1]])
        return find_moved(file, self._moved[key])

    def bucket(self, url: str) -> Storage:
        """Open a bucket once.

        Raises:
            ValueError: the URL has a wrong form.
            JostlerError: there are no credentials, or there is no such directory.
        """
        if url not in self._buckets:
            opened = open_storage(url, PATIENCE_S)
            # It would be made when something is stored first, and here look like an empty archive.
            parts = urlsplit(opened.url)
            if parts.scheme == "file" and not Path(unquote(parts.path)).is_dir():
                raise JostlerError(f"{opened.url}: there is no such directory")
            self._buckets[url] = opened
        return self._buckets[url]

    def closing(self, opened: Any) -> Any:  # noqa: ANN401 - returns what it is given
        """Close something at the end."""
        return self._open.enter_context(closing(opened))

    def places(self) -> tuple[Place, ...]:
        """Return the experiment's places.

        Raises:
            ValueError: a name is missing or not allowed.
        """
        values = self.values
        if not values["experiment"]:
            raise ValueError("-experiment: required: the experiment to search")
        return places(values["gcs-data-dir"], values["organization"], values["experiment"])

    def query(self, datatypes: Sequence[str] = ()) -> Query:
        """Return the query of the flags.

        Args:
            datatypes: those named as arguments; they win over the flag.

        Raises:
            ValueError: the flags make no sense together.
        """
        values = self.values
        first_day, last_day = values.get("first-day"), values.get("last-day")
        if first_day and last_day and last_day < first_day:
            raise ValueError(f"-last-day: {last_day} is before -first-day {first_day}")
        return Query(
            datatypes=tuple(datatypes or values["datatype"]),
            nodes=tuple(values.get("node") or ()),
            start=values.get("start"),
            end=values.get("end"),
            first_day=first_day,
            last_day=last_day,
            work_id=values.get("work-id") or "",
            filename=values.get("name") or "",
            hash=values.get("hash") or "",
            limit=values.get("limit") or 0,
            newest_first=values.get("newest-first") or False,
        )

    def files(self, query: Query) -> Iterator[File]:
        """Search the files of a query, without repeats if `-collapse-repeats` says so.

        Raises:
            ValueError: the flags make no sense together.
            JostlerError: the archive cannot be searched.
        """
        if not self.values["collapse-repeats"]:
            return self.catalogue.files(query, self.tally)
        if query.newest_first:
            raise ValueError("-collapse-repeats and -newest-first: give one of them")
        found = self.catalogue.files(replace(query, limit=0), self.tally)
        return islice(without_repeats(found), query.limit or None)

    def say(self, text: str) -> None:
        """Write a line to standard error."""
        self.progress.clear()
        say(self._command, text)

    def say_nothing_matches(self) -> None:
        """Say that a search has found nothing, and what may be the reason."""
        text, values = "nothing matches", self.values
        if self.tally.rows:
            text += f" of {counted(self.tally.rows, 'file')}"
            if values["start"] or values["end"]:
                text += (
                    " in the folders of these days; -first-day and -last-day ask for folders,"
                    " whatever the times of their files"
                )
        self.say(text)

    def report_problems(self, status: int) -> int:
        """Say what could not be read, and what is not there; return the exit status."""
        problems = self.tally.problems
        for text in self.tally.absent:
            self.say(text)
        for problem in problems[:PROBLEMS_SHOWN]:
            self.say(problem)
        if len(problems) > PROBLEMS_SHOWN:
            self.say(f"and {counted(len(problems) - PROBLEMS_SHOWN, 'problem')} more")
        return FAILED if problems and status == DONE else status

    def _cache_dir(self) -> Path | None:
        given = self.values["cache-dir"]
        if given:
            return None if given == "-" else Path(given)
        base = os.environ.get("XDG_CACHE_HOME", "")
        if base.startswith("/"):
            return Path(base) / "jostler"
        home = os.environ.get("HOME", "")
        return Path(home) / ".cache/jostler" if home else None
