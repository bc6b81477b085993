"""Tell receivers of days while a run goes on, and of what earlier runs could not tell.

**Invariant:** nothing here can fail, delay or change a load.  It works in daemon threads of its
own, the end of the run waits for them for `END_S` at most, and whatever fails is an event in the
log and is sent by the next run.  An event counts as told only after an answer 2xx.

Every pass asks the ledger what is due, so an event is sent only after its row is durable.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import requests

from jostler.format.urls import masked
from loader.bigquery.notifications import DELIVERED, EXPIRED, SUBSCRIBED, WAITING, Known, day_key
from loader.errors import LoaderError
from loader.notify.events import Event, event_id, event_of
from loader.notify.receivers import Receiver, Secrets, receiver
from loader.notify.sending import Answer, send

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

    from loader.bigquery.notifications import Notifications
    from loader.bigquery.record import Run
    from loader.bigquery.warehouse import Json
    from loader.cli.console import Console

KEEP = timedelta(days=7)
"""An event that a receiver has not taken for so long is not sent any more."""
LOOK_BACK = 2 * KEEP
"""So far back a pass looks for what was never told; longer, so that what expires is recorded."""
GAP_S = 30.0
"""Between two passes of a run: each is two queries of the ledger."""
END_S = 20.0
"""So long the end of a run waits for receivers."""
PASS_S = 10.0
"""So long one pass sends; what is left then waits for the next pass or run."""
GRACE_S = 5.0
"""So long it waits beyond that for the answers to what was sent."""
FAILURES_MAX = 3
"""After so many failures in a row a receiver is left alone until the next run."""
THREADS = 8

Delivery = tuple[Event, Answer, int]


@dataclass(slots=True)
class Told:
    """What came of a run's notifications, for the log and the metrics."""

    delivered: int = 0
    waiting: int = 0
    expired: int = 0


@dataclass(slots=True)
class _Line:
    """The connection to one receiver within a run."""

    receiver: Receiver
    session: requests.Session = field(default_factory=requests.Session)
    busy: threading.Lock = field(default_factory=threading.Lock)
    failures: int = 0

    def is_down(self) -> bool:
        return self.failures >= FAILURES_MAX


class Outbox:
    """Sends the events of a run; `with` starts and ends it.

    Args:
        notifications: the table, which only the outbox's thread uses.
        everywhere: receivers of all days (--notify).
        secrets: sign what is sent.
        run: the values that all days of the run share.
        console: shows events.
        gap_s: seconds between two passes.
        end_s: seconds that the end waits.

    Attributes:
        told: counts of what was sent and what was not, valid after the end.
    """

    def __init__(
        self,
        notifications: Notifications,
        everywhere: Sequence[Receiver],
        secrets: Secrets,
        run: Run,
        console: Console,
        *,
        gap_s: float = GAP_S,
        end_s: float = END_S,
    ) -> None:
        self._notifications = notifications
        self._everywhere = tuple(everywhere)
        self._of_table: dict[str, tuple[Receiver, ...]] = {}
        self._refused: set[str] = set()
        self._secrets = secrets
        self._run = run
        self._console = console
        self._gap_s, self._end_s = gap_s, end_s
        self._began = datetime.now(UTC)
        self._lines: dict[str, _Line] = {}
        self._news = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="notify", daemon=True)
        self.told = Told()

    def subscribe(self, table: str, urls: Iterable[str]) -> None:
        """Tell further URLs of a table's days: those of its asset.  Call it before the start.

        A wrong URL is reported and left out.
        """
        found = []
        for url in urls:
            try:
                found.append(receiver(url))
            except ValueError as exc:
                if url not in self._refused:  # an experiment's asset is that of several tables
                    self._refused.add(url)
                    self._console.event("notify.refused", "warning", table=table, error=str(exc))
        self._of_table[table] = tuple(found)

    @property
    def receivers(self) -> dict[str, Receiver]:
        """All receivers by their ids."""
        of_tables = (one for found in self._of_table.values() for one in found)
        return {one.id: one for one in (*self._everywhere, *of_tables)}

    def __enter__(self) -> Self:
        if self.receivers:
            self._thread.start()
        return self

    def wake(self) -> None:
        """Say that the ledger has new rows."""
        self._news.set()

    def __exit__(self, *_: object) -> None:
        """Send what is left, for a bounded time; the ledger's rows must be durable by now."""
        self._ending.set()
        self._news.set()
        if self._thread.is_alive():
            self._thread.join(self._end_s)
            if self._thread.is_alive():
                self._failed("the run ended before all was sent; the next run goes on")

    def _work(self) -> None:
        try:
            self._notifications.prepare()
            known = self._subscribed()
            while True:
                last = self._ending.is_set()
                self._news.clear()
                known = self._pass(known)
                if last:
                    return
                # Woken by the first row after a pass, then patient, so that many days that end
                # together are one pass.
                self._news.wait()
                self._ending.wait(self._gap_s)
        except LoaderError as exc:
            self._failed(str(exc))
        except Exception as exc:  # noqa: BLE001 - what nobody foresaw must not end in a lost thread
            self._failed(f"a mistake in the loader, please report it: {type(exc).__name__}: {exc}")
        finally:
            for line in self._lines.values():
                line.session.close()

    def _failed(self, why: str) -> None:
        self._console.event("notify.failed", "warning", error=why)

    def _subscribed(self) -> Known:
        """Record from when on new receivers are told; return what the table knows.

        That is the beginning of the run: the first rows may be in the ledger by now.
        """
        now = self._began
        known = self._notifications.known(now - LOOK_BACK)
        new = [one for key, one in self.receivers.items() if key not in known.since]
        self._notifications.append(
            [self._row(one, SUBSCRIBED, written=now, tries=0) for one in new]
        )
        known.since.update({one.id: now for one in new})
        return known

    def _pass(self, known: Known) -> Known:
        """Send what is due to each receiver once; record what came of it."""
        now = datetime.now(UTC)
        since = min(known.since[key] for key in self.receivers)
        rows = self._notifications.due(max(since, now - LOOK_BACK))
        waiting = self._waiting(rows, known)
        old = {
            key: [row for row in rows_of if row["Finished"] < now - KEEP]
            for key, rows_of in waiting.items()
        }
        fresh = {
            key: [row for row in rows_of if row["Finished"] >= now - KEEP]
            for key, rows_of in waiting.items()
        }
        flaws = self._notifications.flaws(row for some in fresh.values() for row in some)
        source = self._notifications.source
        events = {
            event_id(row): event_of(row, source, flaws.get(day_key(row)))
            for some in fresh.values()
            for row in some
        }
        lines = {
            key: [events[event_id(row)] for row in some] for key, some in fresh.items() if some
        }
        written = self._send(lines, known)
        for key, some in old.items():
            for row in some:
                event = event_of(row, source)
                written.append(self._row(self.receivers[key], EXPIRED, event=event, written=now))
        self._notifications.append(written)
        return self._after(known, written)

    def _waiting(self, rows: Sequence[Json], known: Known) -> dict[str, list[Json]]:
        """Return by receiver the ledger's rows that it is yet to be told of."""
        found: dict[str, dict[str, Json]] = defaultdict(dict)
        for row in rows:
            of_table = self._of_table.get(row["table"], ())
            for key in {one.id for one in (*self._everywhere, *of_table)}:
                told = (event_id(row), key) in known.done
                if not told and row["Finished"] >= known.since[key]:
                    found[key].setdefault(event_id(row), row)
        return {key: list(rows_of.values()) for key, rows_of in found.items()}

    def _send(self, waiting: Mapping[str, Sequence[Event]], known: Known) -> list[Json]:
        """Send to all receivers at once, so that a slow one holds up no other."""
        until_s = time.monotonic() + PASS_S
        written: list[Json] = []
        if not waiting:
            return written
        results: dict[str, list[Delivery]] = {key: [] for key in waiting}
        todo = deque(waiting)
        # Daemons, and none of a pool, which the interpreter would wait for at its exit: a receiver
        # may send a byte of its answer now and then, for ever.
        threads = [
            threading.Thread(
                target=self._work_off, args=(todo, waiting, results, until_s), daemon=True
            )
            for _ in range(min(THREADS, len(todo)))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, until_s + GRACE_S - time.monotonic()))
        for key, found in results.items():
            for event, answer, tries in list(found):
                before = known.tries.get((event.id, key), 0)
                if not tries and (event.id, key) in known.tries:
                    continue  # it waits as it did before
                state = WAITING if answer.error else DELIVERED
                written.append(
                    self._row(
                        self.receivers[key], state, event=event, answer=answer, tries=before + tries
                    )
                )
        return written

    def _work_off(
        self,
        todo: deque[str],
        waiting: Mapping[str, Sequence[Event]],
        results: Mapping[str, list[Delivery]],
        until_s: float,
    ) -> None:
        while True:
            try:
                key = todo.popleft()
            except IndexError:
                return
            line = self._lines.setdefault(key, _Line(self.receivers[key]))
            if line.busy.acquire(blocking=False):  # else an earlier pass still waits for an answer
                try:
                    self._send_to(line, waiting[key], results[key], until_s)
                finally:
                    line.busy.release()

    def _send_to(
        self, line: _Line, events: Sequence[Event], results: list[Delivery], until_s: float
    ) -> None:
        """Send events to one receiver in their order; each gets a result."""
        for event in events:
            if line.is_down() or time.monotonic() > until_s:
                results.append((event, Answer(0, "not sent yet: the receiver is slow or down"), 0))
                continue
            keys = self._secrets.of(line.receiver)
            answer = send(line.session, line.receiver, event, keys, int(time.time()))
            results.append((event, answer, 1))
            line.failures = line.failures + 1 if answer.error else 0
            if line.is_down():
                self._console.event(
                    "notify.left", "warning", what=str(line.receiver), error=answer.error
                )

    def _after(self, known: Known, written: Iterable[Json]) -> Known:
        """Return what is known once rows are written."""
        done, tries = set(known.done), dict(known.tries)
        count: Counter[str] = Counter()
        for row in written:
            pair = (row["EventID"], row["Receiver"])
            count[row["State"]] += 1
            if row["State"] == WAITING:
                tries[pair] = row["Tries"]
            else:
                done.add(pair)
                tries.pop(pair, None)
        self.told.delivered += count[DELIVERED]
        self.told.expired += count[EXPIRED]
        self.told.waiting = len(tries)
        return Known(since=known.since, done=frozenset(done), tries=tries)

    def _row(
        self,
        one: Receiver,
        state: str,
        *,
        event: Event | None = None,
        answer: Answer | None = None,
        tries: int | None = None,
        written: datetime | None = None,
    ) -> Json:
        row: Json = {
            "Receiver": one.id,
            "Address": masked(one.url),
            "State": state,
            "Tries": tries or 0,
            "Answer": (answer.status or None) if answer else None,
            "Error": (answer.error or None) if answer else None,
            "Written": (written or datetime.now(UTC)).isoformat(),
            "RunID": self._run.id,
            "Host": self._run.host,
            "Version": self._run.version,
        }
        if event:
            row |= {
                "table": event.table,
                "date": event.day.isoformat() if event.day else None,
                "EventID": event.id,
                "Type": event.type,
                "Recorded": event.finished.isoformat(),
            }
        return row
