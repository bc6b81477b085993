"""Which language a question is written in.

Pure.
"""

from __future__ import annotations

from enum import StrEnum

from loader.query.logs import is_log_query


class Language(StrEnum):
    """What a question is written in; pipe syntax is GoogleSQL."""

    AUTO = "auto"
    SQL = "sql"
    LOGS = "logs"

    def is_logs(self, text: str) -> bool:
        """Return whether a text is a log query."""
        if self is Language.AUTO:
            return is_log_query(text)
        return self is Language.LOGS
