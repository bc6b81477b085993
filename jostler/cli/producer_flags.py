"""The agent's flags and configuration, as `jostler push` and `jostler requeue` use them.

**Invariant:** a flag that the agent has too means the same and has the same variable, so that in
the agent's container both commands find spool, schema and bucket by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jostler.agent.schema_sync import compare_stored, judged_by, read_schemas
from jostler.agent.start import index_fields, raw_fields
from jostler.bundle.index_fields import IndexFields
from jostler.cli.command_line import configure
from jostler.cli.flags import Parsed, parse
from jostler.cli.options import TABLE
from jostler.config import Config, Mode, Validate
from jostler.errors import ConfigError, SchemaError, TransientError
from jostler.producer.checking import Checks
from jostler.schema import native
from jostler.storage import open_storage

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.schema import Fields

OF_THE_AGENT = (
    *("gcs-bucket", "gcs-local-disk", "gcs-data-dir", "organization", "upload-schema"),
    *("mlab-node-name", "node-name", "experiment", "datatype", "datatype-schema-file"),
    *("bundle-size-max", "local-data-dir", "extensions", "validate", "native", "index-field"),
    *("state-dir", "compression", "flush-timeout", "verbose"),
)
FLAGS = tuple(flag for flag in TABLE if flag.name in OF_THE_AGENT)
PATIENCE_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The agent's configuration, for one datatype.

    Attributes:
        config: as the agent would have it, with the one datatype.
        fields: what fills the index columns.
    """

    config: Config
    fields: IndexFields

    @property
    def datatype(self) -> str:
        """The datatype."""
        return self.config.datatypes[0].name

    @property
    def top(self) -> Path:
        """The directory of the datatype's days."""
        return self.config.spool / self.datatype


def setting(parsed: Parsed, mode: Mode) -> Setting:
    """Return the configuration that the flags give.

    Args:
        parsed: the flags; those of the agent that the command does not have keep their defaults.
        mode: SCHEMA if neither bucket nor node are needed, ONCE if they are.

    Raises:
        ConfigError: flags are missing or wrong.
    """
    values = parse(TABLE, [], {}).values | parsed.values | {str(mode): True}
    names = list(dict.fromkeys(values["datatype"]))
    if len(names) > 1:
        problem = f"-datatype: which of {', '.join(names)}? give one of them"
        raise ConfigError([*parsed.problems, problem])
    for flag in ("datatype-schema-file", "index-field"):
        # The agent's environment names all its datatypes.
        if not parsed.set_by.get(flag, "").startswith("-"):
            values[flag] = [text for text in values[flag] if text.partition(":")[0] in names]
    flags = Parsed(values, parsed.set_by, parsed.problems, parsed.words)
    config = configure(flags, lambda path: Path(path).read_text(encoding="utf-8"))
    fields = index_fields(config).get(names[0], IndexFields(()))
    return Setting(config=config, fields=fields)


def checks(setting: Setting, say: Callable[[str], None]) -> Checks:
    """Return what the agent would judge by: the datatype's schema, or the stored one.

    Args:
        setting: with a bucket, its table schema is asked for, as the agent does at its start.
        say: called with a message if the bucket cannot be asked.

    Raises:
        SchemaError: there is no schema, it is wrong, or it conflicts with the stored one.
        ConfigError: `-native` requires a module that cannot be used.
    """
    config = setting.config
    fields = None if config.validate is Validate.JSON else raw_fields(_table(setting, say))
    return Checks.of(
        setting.datatype,
        fields,
        max_bytes=config.limits.max_bytes,
        native=native.find(config.native),
    )


def _table(setting: Setting, say: Callable[[str], None]) -> Fields:
    config = setting.config
    ours: Fields | None = None
    missing: SchemaError | None = None
    try:
        ours = read_schemas(config.datatypes)[setting.datatype]
    except SchemaError as exc:
        if config.datatypes[0].schema_file.exists() or not config.bucket:
            raise
        missing = exc
    if not config.bucket:
        assert ours
        return ours
    try:
        storage = open_storage(config.bucket, PATIENCE_S)
        pair = compare_stored(storage, config.place, setting.datatype, ours or ())
    except TransientError as exc:
        if ours is None:
            raise
        schema_file = config.datatypes[0].schema_file
        say(f"{config.bucket} gives no table schema ({exc.cause}): judged by {schema_file}")
        return ours
    if ours is None:
        if pair.stored is None:
            assert missing
            raise missing
        return pair.stored
    return judged_by(pair)
