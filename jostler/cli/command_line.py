"""Turn argv and environment into one frozen Config, or a list of all problems.

**Invariant:** no bucket and no file is read, with two exceptions: the file that `-mlab-node-name
@file` names, through a function that the caller passes in, and the symbolic links of the spool's
path.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from jostler.bundle import SEALED, Limits, state_dir
from jostler.bundle.index_fields import IndexField
from jostler.cli.flags import Parsed, host_port, parse
from jostler.cli.options import TABLE, help_text
from jostler.config import Config, Datatype, Mode
from jostler.errors import ConfigError
from jostler.format import names, nodes
from jostler.format.compression import AUTO, LEVELS, Compression, CompressionChoice, Method

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FILE_NAME_MAX = 255
"""The longest file name in bytes: NAME_MAX of Linux and of each file system in use there."""

__all__ = ["TABLE", "configure", "help_text", "parse_flags"]


def parse_flags(argv: Sequence[str], environ: Mapping[str, str]) -> Parsed:
    """Read argv and environment by the table of flags."""
    return parse(TABLE, argv, environ)


def configure(parsed: Parsed, read_text: Callable[[str], str]) -> Config:
    """Check all values and return the configuration.

    Args:
        parsed: what `parse_flags` returned.
        read_text: returns the text of the file that `-mlab-node-name @file` names.

    Raises:
        ConfigError: some values are wrong; it lists every problem of reading and checking.
    """
    checks = _Checks(parsed)
    config = checks.config(read_text)
    if checks.problems or config is None:
        raise ConfigError(checks.problems)
    return config


_MODES = (Mode.SCHEMA, Mode.CHECK, Mode.ONCE)


class _Checks:
    """Checks all values once and collects the problems."""

    def __init__(self, parsed: Parsed) -> None:
        self.problems = list(parsed.problems)
        self.overruled: list[tuple[str, str]] = []
        self._values = parsed.values
        self._set_by = parsed.set_by

    def config(self, read_text: Callable[[str], str]) -> Config | None:
        value = self._value
        mode = self._mode()
        bucket = self._bucket(mode)
        place = self._place(mode)
        node = self._node(mode, read_text)
        local_data_dir = Path(value("local-data-dir"))
        datatypes = self._datatypes(mode, local_data_dir)
        index_fields = self._index_fields([datatype.name for datatype in datatypes])
        if node and place:
            self._file_names(place, node, datatypes)
        self._sizes(mode)
        compression = self._compression()
        listen = self._listen(mode)
        if self.problems or place is None:
            return None
        given = value("state-dir")
        usual = state_dir.default(local_data_dir, place.experiment)
        return Config(
            mode=mode,
            bucket=bucket,
            place=place,
            upload_schema=value("upload-schema"),
            index_fields=index_fields,
            node=node,
            datatypes=datatypes,
            limits=Limits(max_bytes=value("bundle-size-max"), max_age_s=value("bundle-age-max")),
            local_data_dir=local_data_dir,
            extensions=tuple(value("extensions") or [".json"]),
            watch=value("watch"),
            missed_age_s=value("missed-age"),
            missed_interval_s=value("missed-interval"),
            settle_age_s=value("settle-age"),
            flush_timeout_s=value("flush-timeout"),
            bad_files=value("bad-files"),
            min_free_disk=value("min-free-disk"),
            disk_lack_action=value("disk-lack-action"),
            validate=value("validate"),
            native=value("native"),
            state_dir=Path(given or usual),
            old_state_dir=None if given else state_dir.earlier(local_data_dir, place.experiment),
            compression=compression,
            upload_concurrency=value("upload-concurrency"),
            memory_max=max(value("memory-max"), value("bundle-size-max")),
            memory_raised_from=self._memory_raised_from(mode),
            overruled=tuple(self.overruled),
            allow_empty=value("allow-empty"),
            from_samples=Path(value("from-samples")) if value("from-samples") else None,
            verbose=value("verbose"),
            log_format=value("log-format"),
            test_interval_s=value("test-interval"),
            listen=listen,
            allowed_hosts=tuple(value("allowed-hosts")),
            runbook_url=self._runbook_url(),
        )

    def _value(self, name: str) -> Any:  # noqa: ANN401 - each flag has a type of its own
        return self._values.get(name)

    def _say(self, name: str, reason: str) -> None:
        self.problems.append(f"{self._set_by.get(name, f'-{name}')}: {reason}")

    def _one_of(self, names: list[str]) -> list[str]:
        """Return which of these exclusive flags are set; an argument outranks all variables.

        Variables such as NODE_NAME are often set for another program.
        """
        by_argument = [name for name in names if self._set_by.get(name, "").startswith("-")]
        if not by_argument:
            return names
        self.overruled += [
            (self._set_by[by_argument[0]], self._set_by[name])
            for name in names
            if name not in by_argument
        ]
        return by_argument

    def _mode(self) -> Mode:
        chosen = self._one_of([mode for mode in _MODES if self._value(mode)])
        if len(chosen) > 1:
            self._say(chosen[1], f"excludes -{chosen[0]}")
        mode = Mode(chosen[0]) if chosen else Mode.RUN
        if self._value("from-samples") and mode is not Mode.SCHEMA:
            self._say("from-samples", "goes with -schema")
        by_argument = self._set_by.get("allow-empty", "").startswith("-")
        if self._value("allow-empty") and mode is not Mode.CHECK and by_argument:
            self._say("allow-empty", "goes with -check")
        return mode

    def _bucket(self, mode: Mode) -> str:
        bucket: str = self._value("gcs-bucket") or ""
        if not bucket:
            if mode is not Mode.SCHEMA:
                self._say("gcs-bucket", "required: a bucket's name, or file:///dir")
            return ""
        if self._value("gcs-local-disk") and "://" not in bucket:
            return Path(bucket).absolute().as_uri()
        if bucket.startswith("file://"):
            if not bucket.startswith("file:///") or not bucket.removeprefix("file:").strip("/"):
                self._say("gcs-bucket", f"{bucket!r} names no absolute directory: file:///dir")
                return ""
            return Path(unquote(bucket.removeprefix("file://"))).as_uri()
        name = bucket.removeprefix("gs://").rstrip("/")
        if "/" in name or ":" in name:
            self._say("gcs-bucket", f"{bucket!r} is neither a bucket's name nor file:///dir")
        return f"gs://{name}"

    def _place(self, mode: Mode) -> names.Place | None:
        experiment = self._value("experiment") or ""
        if not experiment and mode is Mode.SCHEMA and self._value("from-samples"):
            experiment = "samples"
        if not experiment:
            self._say("experiment", "required: the experiment's name")
        elif not self._check("experiment", names.check_experiment, experiment):
            experiment = ""
        data_dir, organization = self._value("gcs-data-dir"), self._value("organization") or ""
        if mode is Mode.SCHEMA and not organization and data_dir.endswith("v2"):
            organization = "any"  # table schemas are all organizations'
        try:
            place = names.Place(
                data_dir=data_dir, organization=organization, experiment=experiment or "x"
            )
        except ValueError as exc:
            self._say("organization" if "rganization" in str(exc) else "gcs-data-dir", str(exc))
            return None
        return place if experiment else None

    def _node(self, mode: Mode, read_text: Callable[[str], str]) -> str:
        flags = [name for name in ("mlab-node-name", "node-name") if self._value(name)]
        given = {name: str(self._value(name)) for name in self._one_of(flags)}
        mlab, other = given.get("mlab-node-name", ""), given.get("node-name", "")
        if mlab and other:
            self._say("node-name", "excludes -mlab-node-name")
        if not mlab and not other:
            if mode is not Mode.SCHEMA:
                self._say("mlab-node-name", "required, or -node-name for other nodes than M-Lab's")
            return ""
        if other:
            return self._check("node-name", nodes.safe_node, other)
        if mlab.startswith("@"):
            try:
                mlab = read_text(mlab[1:]).strip()
            except (OSError, UnicodeDecodeError) as exc:
                self._say("mlab-node-name", f"cannot read the node's name: {exc}")
                return ""
        return self._check("mlab-node-name", nodes.mlab_node, mlab)

    def _file_names(self, place: names.Place, node: str, datatypes: tuple[Datatype, ...]) -> None:
        """Check that journal and object names made of these fit the file name limit."""
        known = [*(datatype.name for datatype in datatypes), *names.OWN_DATATYPES]
        longest = max(known, key=len)
        name = f"yyyymmddThhmmss.ffffffZ-{longest}-{node}-{place.experiment}-data.jsonl.gz"
        size = len(name + SEALED)
        if size > FILE_NAME_MAX:
            flag = "mlab-node-name" if self._value("mlab-node-name") else "node-name"
            why = f"with experiment {place.experiment!r} and datatype {longest!r} it makes"
            self._say(flag, f"{why} file names of {size} bytes, of {FILE_NAME_MAX} at the most")

    def _datatypes(self, mode: Mode, local_data_dir: Path) -> tuple[Datatype, ...]:
        wanted: list[str] = list(dict.fromkeys(self._value("datatype") or []))
        if not wanted and not (mode is Mode.SCHEMA and self._value("from-samples")):
            self._say("datatype", "required: one or more datatypes")
        for name in wanted:
            self._check("datatype", names.check_datatype, name)
            if name in names.OWN_DATATYPES:
                self._say("datatype", f"{name!r} is jostler's own")
        files: dict[str, str] = {}
        for text in self._value("datatype-schema-file") or []:
            name, colon, path = text.partition(":")
            if not colon or not path:
                self._say("datatype-schema-file", f"{text!r} is not <datatype>:<path>")
            elif name not in wanted:
                self._say("datatype-schema-file", f"{name!r} is none of the datatypes")
            elif files.setdefault(name, path) != path:
                self._say("datatype-schema-file", f"{name!r} has two files")
        default = local_data_dir / "datatypes"
        return tuple(
            Datatype(name=name, schema_file=Path(files.get(name, default / f"{name}.json")))
            for name in wanted
        )

    def _index_fields(self, datatypes: list[str]) -> tuple[IndexField, ...]:
        found: dict[tuple[str, str], IndexField] = {}
        for text in self._value("index-field") or []:
            try:
                field = IndexField.parse(text)
            except ValueError as exc:
                self._say("index-field", str(exc))
                continue
            if field.datatype not in datatypes:
                self._say("index-field", f"{field.datatype!r} is none of the datatypes")
            elif found.setdefault((field.datatype, field.column), field) is not field:
                self._say("index-field", f"{field.datatype}:{field.column} has two sources")
        return tuple(found.values())

    def _listen(self, mode: Mode) -> tuple[str, int] | None:
        flag = "prometheusx.listen-address"
        text: str = self._value(flag) or ""
        if not text or (mode is not Mode.RUN and flag not in self._set_by):
            return None
        try:
            return host_port(text)
        except ValueError as exc:
            self._say(flag, str(exc))
            return None

    def _runbook_url(self) -> str:
        url: str = self._value("runbook-url") or ""
        if url and not url.startswith("https://"):
            self._say("runbook-url", f"{url!r} is not an address that begins with https://")
        return url

    def _compression(self) -> CompressionChoice:
        """Return what -compression says, or the older -compression-level where it is set."""
        choice: CompressionChoice = self._value("compression") or AUTO
        level = self._value("compression-level")
        flags: list[str] = [n for n in ("compression", "compression-level") if n in self._set_by]
        given = self._one_of(flags)
        if level is None or "compression-level" not in given:
            return choice
        if len(given) > 1:
            self._say("compression-level", "excludes -compression")
        levels = LEVELS[Method.ISAL]
        if level not in levels:
            self._say("compression-level", f"{level} is not {levels[0]} to {levels[-1]}")
        one = Compression(Method.ISAL, level)
        return CompressionChoice(one, one)

    def _sizes(self, mode: Mode) -> None:
        if (bundle := self._value("bundle-size-max")) is not None and bundle < 1:
            self._say("bundle-size-max", "must be at least 1 byte")
        memory = self._value("memory-max")
        if (
            None not in (bundle, memory)
            and memory < bundle
            and mode is not Mode.SCHEMA
            and "memory-max" in self._set_by
        ):
            self._say("memory-max", f"{memory} bytes hold no bundle of {bundle}")
        if self._value("bundle-age-max") == 0:
            self._say("bundle-age-max", "must be more than 0")
        if self._value("missed-interval") == 0:
            self._say("missed-interval", "must be more than 0")
        threads = self._value("upload-concurrency")
        if threads is not None and not 1 <= threads <= 64:  # noqa: PLR2004 - stated in the help
            self._say("upload-concurrency", f"{threads} is not 1 to 64")
        for extension in self._value("extensions") or []:
            if not extension.startswith(".") or "/" in extension or extension == ".":
                self._say("extensions", f"{extension!r} is not an extension such as .json")

    def _memory_raised_from(self, mode: Mode) -> int:
        """Return the default of -memory-max if it holds no bundle and nobody chose it; else 0."""
        default: int = self._value("memory-max")
        return (
            default if mode is not Mode.SCHEMA and default < self._value("bundle-size-max") else 0
        )

    def _check(self, name: str, check: Callable[[str], str], text: str) -> str:
        try:
            return check(text)
        except ValueError as exc:
            self._say(name, str(exc))
            return ""
