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
        return self.query(text(name))

    def count(self, sql: str) -> int:
        """Return the one number that a query answers."""
        return int(self.query(sql).rows[0][0])

    def query(self, sql: str) -> Answer:
        """Ask in SQL.

        Raises:
            DemoError: there is no answer.
        """
        try:
            return ask(self._client, sql)
        except AskError as exc:
            raise DemoError(f"BigQuery did not answer: {exc}") from exc


def text(name: str) -> str:
    """Return the SQL of an example."""
    return (EXAMPLES / f"{name}.sql").read_text(encoding="utf-8").strip()


def program(name: str) -> str:
    """Return how to start a program of this Python's environment from the current directory."""
    path = Path(sys.executable).parent / name
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def archive_commands(bucket: Path, experiment: str) -> list[str]:
    """Say how to look into a kept bucket.

    The server of the demo kept each object as a file of its name, so the directory is a bucket,
    and no server is needed to read it.
    """
    where = f"-bucket {bucket.as_uri()} -experiment {experiment}"
    return [f"{program('jostler')} {command} {where}" for command in ("serve", "list -days")]


def commands(home: Path) -> list[str]:
    """Say how to ask again of a kept directory."""
    python = program(Path(sys.executable).name)
    return [
        f"{python} -m embedded --data-dir {home}/bigquery --port 9050 &",
        "export BIGQUERY_EMULATOR_HOST=http://127.0.0.1:9050",
        f"{program('jostler-sql')} - < examples/speed_samples.sql",
        f"{program('jostler-sql')} --format json - < examples/ledger.sql",
    ]
