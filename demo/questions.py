"""What the demo asks BigQuery: the queries of examples/, through the official client."""

from __future__ import annotations

import sys
from pathlib import Path

from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from demo.processes import DemoError
from loader.bigquery.ask import Answer, AskError, ask

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


class Questions:
    """Asks one server.

    Args:
        url: of the server.
        project: whose tables are meant.
    """

    def __init__(self, url: str, project: str) -> None:
        self._client = bigquery.Client(
            project, AnonymousCredentials(), client_options={"api_endpoint": url}
        )

    def ask(self, name: str) -> Answer:
        """Ask an example by its name, without `.sql`.

        Raises:
            DemoError: there is no answer.
        """
        return self._query(text(name))

    def count(self, sql: str) -> int:
        """Return the one number that a query answers."""
        return int(self._query(sql).rows[0][0])

    def _query(self, sql: str) -> Answer:
        try:
            return ask(self._client, sql)
        except AskError as exc:
            raise DemoError(f"BigQuery did not answer: {exc}") from exc


def text(name: str) -> str:
    """Return the SQL of an example."""
    return (EXAMPLES / f"{name}.sql").read_text(encoding="utf-8").strip()


def commands(home: Path) -> list[str]:
    """Say how to ask again of a kept directory."""
    python = Path(sys.executable)
    shown = python.relative_to(Path.cwd()) if python.is_relative_to(Path.cwd()) else python
    return [
        f"{shown} -m embedded --data-dir {home}/bigquery --port 9050 &",
        "export BIGQUERY_EMULATOR_HOST=http://127.0.0.1:9050",
        f"{shown.parent}/jostler-sql - < examples/speed_samples.sql",
        f"{shown.parent}/jostler-sql --format json - < examples/ledger.sql",
    ]
