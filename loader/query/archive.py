"""An archive that can be asked: open it, ask, and get rows as Arrow, pandas or Spark's DataFrame.

**Invariant:** Spark starts with the first question that it must run, and ends with `close` if it
was started here; a question for BigQuery starts none.
"""

from __future__ import annotations

import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from jostler.format.bigquery_names import Naming
from loader.bucket import open_bucket
from loader.query.googlesql.python import register
from loader.query.googlesql.reading import read
from loader.query.googlesql.translating import to_spark
from loader.query.language import Language
from loader.query.lookups import Lookups
from loader.query.tables import Selection, tables
from loader.query.text.needed import texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import date

    from google.cloud import bigquery
    from pyspark.sql import DataFrame, SparkSession

    from loader.query.answer import Answer
    from loader.query.googlesql.reads import Read, SparkText
    from loader.query.on_spark import Reading, SparkRunner
    from loader.query.question import Question
    from loader.query.scan import Scan
    from loader.query.tables import Tables

PATIENCE_S = 30.0
"""How long a failing request is retried; short, because a person is waiting."""
READERS = 8
"""How many objects of the text index are read at once to explain a question."""


class Engine(StrEnum):
    """What runs a question."""

    SPARK = "spark"
    BIGQUERY = "bigquery"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What a question reads of one table.

    Attributes:
        table: its name.
        columns: the named columns, as paths.
        days: those that have bundles.
        bundles: their number.
        size_bytes: of the bundles; blocks and bundles without a row of the asked times or words
            are not read, so it may be less.
        nodes: those that are asked for; None for all.
        others: bundles of other nodes, which are not read.
        words: that a row must have, for people; empty if none are asked for.
        blocks: of the bundles that have a text index, if words are asked for.
        skipped: blocks of these that are not read.
        unfiltered: bundles without text index, if words are asked for.
    """

    table: str
    columns: tuple[str, ...]
    days: tuple[date, ...]
    bundles: int
    size_bytes: int
    nodes: tuple[str, ...] | None = None
    others: int = 0
    words: str = ""
    blocks: int = 0
    skipped: int = 0
    unfiltered: int = 0


class Archive:
    """The archive in some buckets.

    Args:
        buckets: `gs://NAME` or `file:///DIR`, at least one.
        experiments: only these; none for all.
        lookups: files of tables for lookups, by name.
        project: of BigQuery's tables; empty for the client's own.
        location: where BigQuery's datasets are; empty for anywhere.
        naming: the rule for names of BigQuery's tables.
        master: of Spark; empty for that of spark-submit, else all cores of this machine.
        patience_s: how long a failing request is retried.
        collapse_repeats: whether consecutive equal bodies of a feed count once; on Spark alone.
        on_line: gets each line that Spark's JVM writes, if it is started here.
    """

    def __init__(
        self,
        buckets: str | Sequence[str],
        *,
        experiments: Iterable[str] = (),
        lookups: Mapping[str, str | Path] | None = None,
        project: str = "",
        location: str = "",
        naming: Naming = Naming.MLAB,
        master: str = "",
        patience_s: float = PATIENCE_S,
        collapse_repeats: bool = False,
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        urls = [buckets] if isinstance(buckets, str) else list(buckets)
        self._buckets = [open_bucket(url.rstrip("/"), patience_s) for url in urls]
        given = {name: Path(path) for name, path in (lookups or {}).items()}
        self._lookups = Lookups(self._buckets, given)
        self._selection = Selection(experiment=frozenset(experiments), naming=naming)
        self._project, self._location = project, location
        self._master, self._on_line = master, on_line
        self._patience_s = patience_s
        self._collapse = collapse_repeats
        self._tables: Tables | None = None
        self._spark: SparkSession | None = None
        self._open = ExitStack()
        # Not left to the interpreter: at its end Spark waits for threads that have ended by then.
        weakref.finalize(self, self._open.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End Spark, if it was started here."""
        self._spark = None
        self._open.close()

    @property
    def tables(self) -> Tables:
        """The tables that a question may name.

        Raises:
            BucketError: a bucket cannot be listed, or does not exist.
        """
        if self._tables is None:
            self._tables = tables(self._buckets, self._selection, self._lookups)
        return self._tables

    def question(
        self, text: str, language: Language = Language.AUTO, now: datetime | None = None
    ) -> Question:
        """Read a question.

        Args:
            text: the question.
            language: what it is written in; by default its first word says it.
            now: the instant that `duration=1d` and the like count from; the current one if None.

        Raises:
            QueryError: it cannot be understood; says where.
        """
        if language.is_logs(text):
            from loader.query import logs  # noqa: PLC0415 - most questions are SQL

            return logs.compile(text, self.tables, now or datetime.now(UTC))
        return read(text, self.tables)

    def query(
        self,
        text: str,
        *,
        language: Language | str = Language.AUTO,
        engine: Engine | str = Engine.SPARK,
        limit: int = 0,
        now: datetime | None = None,
    ) -> Answer:
        """Ask.

        Args:
            text: the question: GoogleSQL, with pipes or without, or a log query.
            language: see `question`.
            engine: what runs it.
            limit: how many rows to return at the most; 0 for all.
            now: see `question`.

        Raises:
            QueryError: the question cannot be understood; says where.
            LoaderError: bucket, Spark or BigQuery refuse something, or cannot be reached.
        """
        question = self.question(text, Language(language), now)
        return self.answer(question, engine=engine, limit=limit, now=now)

    def answer(
        self,
        question: Question,
        *,
        engine: Engine | str = Engine.SPARK,
        limit: int = 0,
        now: datetime | None = None,
    ) -> Answer:
        """Answer a question that is understood; see `query`.

        Raises:
            QueryError: Spark cannot run it; says where.
            LoaderError: bucket, Spark or BigQuery refuse something, or cannot be reached.
        """
        if Engine(engine) is Engine.BIGQUERY:
            answer = self._on_bigquery(question, limit, now)
        else:
            text = to_spark(question, self.tables, now)
            readings = self._plan(text)
            answer = self._runner().answer(text, readings, _registrar(text), limit)
        answer.pivot = question.pivot
        return answer

    def frame(
        self, text: str, *, language: Language | str = Language.AUTO, now: datetime | None = None
    ) -> DataFrame:
        """Return the answer as a DataFrame of Spark; its first action reads.

        Raises:
            QueryError: the question cannot be understood; says where.
            LoaderError: the bucket cannot be reached, or Spark refuses something.
        """
        spark_text = to_spark(self.question(text, Language(language), now), self.tables, now)
        readings = self._plan(spark_text)
        return self._runner().frame(spark_text, readings, _registrar(spark_text))

    def explain(
        self, text: str, *, language: Language | str = Language.AUTO, now: datetime | None = None
    ) -> list[Explained]:
        """Say what a question would read on Spark, from names, and of words the text index.

        Raises:
            QueryError: the question cannot be understood; says where.
            BucketError: a bucket cannot be listed.
        """
        spark_text = to_spark(self.question(text, Language(language), now), self.tables, now)
        return [self._explained(one.read, one.scan) for one in self._plan(spark_text) if one.scan]

    def _explained(self, read: Read, scan: Scan) -> Explained:
        made = Explained(
            table=read.table,
            columns=tuple(".".join(path) for path in read.paths),
            days=tuple(scan.days),
            bundles=len(scan.bundles),
            size_bytes=scan.size_bytes,
            nodes=None if scan.nodes is None else tuple(sorted(scan.nodes)),
            others=scan.others,
        )
        if scan.need is None:
            return made
        from loader.query.fetching import blocks_left_out  # noqa: PLC0415 - as for Spark

        look = partial(blocks_left_out, need=scan.need, patience_s=self._patience_s)
        with ThreadPoolExecutor(READERS, thread_name_prefix="filters") as pool:
            found = list(pool.map(look, scan.bundles))
        return replace(
            made,
            words=texts(scan.need),
            skipped=sum(skipped for skipped, _ in found),
            blocks=sum(blocks for _, blocks in found),
            unfiltered=sum(not blocks for _, blocks in found),
        )

    def bigquery_text(self, question: Question, now: datetime | None = None) -> str:
        """Return the text that BigQuery runs.

        Raises:
            LoaderError: there are no credentials or no project.
        """
        from loader.query.on_bigquery import Sources  # noqa: PLC0415 - Spark needs no client

        sources = Sources(
            tables=self.tables,
            lookups=self._lookups,
            project=self._client().project,
            naming=self._selection.naming,
        )
        return sources.text(question.sql, to_spark(question, self.tables, now).reads)

    def _on_bigquery(self, question: Question, limit: int, now: datetime | None) -> Answer:
        from loader.query.on_bigquery import BigQueryRunner  # noqa: PLC0415 - as above

        sql = self.bigquery_text(question, now)
        return BigQueryRunner(self._client()).answer(sql, self._patience_s, limit)

    def _client(self) -> bigquery.Client:
        from loader.bigquery.ask import connect  # noqa: PLC0415 - as above

        return connect(self._project, self._location)

    def _plan(self, text: SparkText) -> list[Reading]:
        from loader.query.on_spark import plan  # noqa: PLC0415 - BigQuery needs no Spark

        return plan(text, self.tables, self._patience_s, collapse=self._collapse)

    def _runner(self) -> SparkRunner:
        from loader.query.on_spark import SparkRunner  # noqa: PLC0415 - as above
        from loader.spark.session import session  # noqa: PLC0415 - as above

        if self._spark is None:
            self._spark = self._open.enter_context(session(self._master, self._on_line))
        return SparkRunner(self._spark, self._lookups)


def _registrar(text: SparkText) -> Callable[[SparkSession], None]:
    """Return what makes the functions of a text known in a session."""
    return lambda spark: register(spark, text.functions)
