"""The command line: every problem at once, Go's spelling, the environment behind."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostler.bundle import SEALED
from jostler.cli import command_line as cli
from jostler.cli import flags, status, verify, why_options
from jostler.cli.archive_flags import COMMON
from jostler.cli.main import main
from jostler.config import BadFiles, Config, Mode
from jostler.errors import ConfigError
from jostler.format.compression import AUTO, FAST, Compression, CompressionChoice, Method
from jostler.format.names import BundleName, Day, Kind

GOOD = ["-gcs-bucket", "bkt", "-node-name", "n1", "-experiment", "exp", "-datatype", "foo1"]


def configure(argv: list[str], environ: dict[str, str] | None = None) -> Config:
    return cli.configure(
        cli.parse_flags(argv, environ or {}), lambda path: Path(path).read_text(encoding="utf-8")
    )


def problems(argv: list[str], environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        configure(argv, environ)
    return caught.value.problems


def test_a_small_command_line_gets_the_defaults() -> None:
    """What is not given is as the table of flags says."""
    config = configure(GOOD)

    assert config.bucket == "gs://bkt"
    assert config.mode is Mode.RUN
    assert config.limits.max_bytes == 20 * 1024 * 1024
    assert config.limits.max_age_s == 3600
    assert config.extensions == (".json",)
    assert (config.missed_age_s, config.missed_interval_s) == (3 * 3600, 1800)
    assert config.memory_max == 32 * 1024 * 1024
    assert config.state_dir == Path("/var/spool/.jostler-exp")
    assert config.datatypes[0].schema_file == Path("/var/spool/datatypes/foo1.json")
    assert config.bad_files is BadFiles.UPLOAD
    assert config.listen == ("localhost", 9990)  # names and paths are shown to this machine alone
    assert (config.allowed_hosts, config.runbook_url) == ((), "")


@pytest.mark.parametrize(
    "argv",
    [
        ["-bundle-size-max", "30MB"],
        ["--bundle-size-max", "30MB"],
        ["-bundle-size-max=30MB"],
        ["--bundle-size-max=30000000"],
    ],
)
def test_flags_take_one_dash_or_two_and_a_space_or_an_equals_sign(argv: list[str]) -> None:
    """As Go's flag package reads them."""
    assert configure([*GOOD, *argv]).limits.max_bytes == 30_000_000


def test_the_command_line_wins_over_the_environment() -> None:
    """The environment fills what the command line leaves open."""
    environ = {"BUNDLE_SIZE_MAX": "30MB", "BUNDLE_AGE_MAX": "250ms", "FLUSHTIMEOUT": "7s"}
    config = configure([*GOOD, "-bundle-size-max", "1MiB"], environ)

    assert config.limits.max_bytes == 1 << 20
    assert config.limits.max_age_s == 0.25
    assert config.flush_timeout_s == 7


def test_the_whole_configuration_can_come_from_the_environment() -> None:
    """As in a manifest that only sets env."""
    environ = {"GCS_BUCKET": "b", "NODE_NAME": "n", "EXPERIMENT": "e", "DATATYPE": "a1,b1"}
    assert [d.name for d in configure([], environ).datatypes] == ["a1", "b1"]


def test_lists_grow_by_repetition_and_by_commas() -> None:
    """-datatype a -datatype b,c names three."""
    config = configure([*GOOD, "-datatype", "bar1,baz1", "-datatype-file", "bar1:/x/bar1.json"])
    assert [d.name for d in config.datatypes] == ["foo1", "bar1", "baz1"]
    assert config.datatypes[1].schema_file == Path("/x/bar1.json")


def test_the_older_flag_for_the_level_still_works() -> None:
    """-compression-level is ISA-L's, and an argument outranks the variable of the other flag."""
    level_3 = Compression(Method.ISAL, 3)
    config = configure([*GOOD, "-compression-level", "3"], {"COMPRESSION": "small"})
    assert config.compression == CompressionChoice(level_3, level_3)
    assert config.overruled == (("-compression-level", "COMPRESSION"),)
    assert configure(GOOD).compression == AUTO
    assert configure([*GOOD, "-compression", "fast"]).compression.idle == FAST


def test_a_switch_can_be_switched_off() -> None:
    """-x=false is Go's way, and a word behind a switch is no value of it."""
    assert configure([*GOOD, "-upload-schema=false"]).upload_schema is False
    assert "unexpected argument" in problems([*GOOD, "-upload-schema", "false"])[0]


def test_all_problems_are_reported_at_once_each_with_its_flag() -> None:
    """Nobody should mend one problem only to be told of the next."""
    found = problems(
        [
            *("-nonsense", "x", "-bundle-age-max", "soon", "-gcs-data-dir", "autoload/v2"),
            *("-datatype", "a-b", "-memory-max", "1", "-mlab-node-name", "nowhere"),
            *("-node-name", "n", "-datatype-schema-file", "zzz", "-extensions", "json"),
            *("-compression-level", "9"),
        ],
        {"VERBOSE": "perhaps"},
    )
    for flag in (
        *("-nonsense", "-bundle-age-max", "-gcs-bucket", "-experiment", "-datatype"),
        *("-memory-max", "-node-name", "-datatype-schema-file", "-extensions"),
        *("-compression-level", "VERBOSE"),
    ):
        assert any(problem.startswith(f"{flag}: ") for problem in found), flag


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["-compression", "zstd"], "none of auto, fast, small, or a level 1 to 9"),
        (["-compression", "0"], "none of"),
        (["-compression", "small", "-compression-level", "2"], "excludes -compression"),
        (["-gcs-data-dir", "autoload/v2"], "organization"),
        (["-organization", "org"], "organization"),
        (["-gcs-data-dir", "autoload/v2", "-organization", "Org-1"], "organization"),
        (["-datatype", "index1"], "jostler's own"),
        (["-once", "-check"], "excludes"),
        (["-mlab-node-name", "third-party"], "excludes"),
        (["-upload-concurrency", "0"], "not 1 to 64"),
        (["-gcs-bucket", "file://dir"], "absolute"),
        (["-bundle-age-max", "0s"], "more than 0"),
        (["-from-samples", "x"], "goes with -schema"),
        (["-verbose=2"], "not a boolean"),
        (["-state-dir"], "needs a value"),
        (["-bad-files", "eat"], "upload, keep, delete"),
        (["-memory-max", "1MiB"], "hold no bundle"),
        (["-allow-empty"], "goes with -check"),
        (["-datatypes", "x1"], "no such flag; did you mean -datatype?"),
        (["-experiment", "schemas"], "not 'tables' or 'schemas'"),
        (["-index-field", "foo2:Start=A"], "'foo2' is none of the datatypes"),
        (["-index-field", "foo1:Begin=A"], "none of the columns"),
        (["-index-field", "foo1:End=A", "-index-field", "foo1:End=B"], "End has two sources"),
        (["-index-field", "foo1:End=(?P<a>x~{a}"], "is not a regular expression"),
    ],
)
def test_each_mistake_has_its_own_words(argv: list[str], reason: str) -> None:
    """The reason says what is wrong with the value."""
    found = problems([*GOOD, *argv])
    assert len(found) == 1
    assert reason in found[0]


def test_index_fields_are_read_one_by_one() -> None:
    """An expression may have commas; in the variable each has a line."""
    start, job = "foo1:Start=T.S", r"foo1:WorkID=.*/(?P<j>\w{1,9})-~{j}"
    by_flag = configure([*GOOD, "-index-field", start, "-index-field", job])
    by_variable = configure(GOOD, {"INDEX_FIELD": f"{start}\n{job}\n"})
    assert by_flag.index_fields == by_variable.index_fields
    assert [field.column for field in by_flag.index_fields] == ["Start", "WorkID"]


def test_translate_shows_what_an_expression_makes(capsys: pytest.CaptureFixture[str]) -> None:
    """Or why it makes nothing, with status 2."""
    assert main(["translate", "(?P<y>[^/]+)~<{y}>", "2026/01/02/a.json"]) == 0
    assert capsys.readouterr().out == "<2026>\n"
    assert main(["translate", "--", "-(?P<y>.)~{y}", "-\x1b"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    for argv, told in (
        (["(?P<y>x)~{y}", "2026"], "does not match the beginning of '2026'"),
        (["(?P<y>x)~{z}", "x"], "is not a format"),
        (["x"], "PATH: required"),
        (["a", "b", "c"], "c: unexpected argument"),
    ):
        assert main(["translate", *argv]) == 2
        assert told in capsys.readouterr().err
    assert main(["translate", "-help"]) == 0


def test_schema_mode_needs_neither_bucket_nor_node() -> None:
    """An operator at a desk has neither."""
    config = configure(["-schema", "-experiment", "e", "-datatype", "foo1", "-datatype", "bar1"])
    assert config.mode is Mode.SCHEMA
    assert config.bucket == ""


def test_a_node_name_can_be_read_from_a_file(tmp_path: Path) -> None:
    """White space around it is stripped; a missing file is a problem of the flag."""
    file = tmp_path / "hostname"
    file.write_text(" mlab1-lga01.mlab-oti.measurement-lab.org\n")
    argv = [*GOOD[:2], *GOOD[4:]]

    assert configure([*argv, "-mlab-node-name", f"@{file}"]).node == "mlab1-lga01"
    assert problems([*argv, "-mlab-node-name", f"@{file}.not"])[0].startswith("-mlab-node-name: ")


def test_an_argument_wins_over_the_variable_of_a_flag_that_it_excludes() -> None:
    """NODE_NAME is in the environment of many pods, for somebody else."""
    mlab = "mlab1-lga01.mlab-oti.measurement-lab.org"
    config = configure([*GOOD[:2], *GOOD[4:], f"-mlab-node-name={mlab}"], {"NODE_NAME": "gke-7"})
    assert config.node == "mlab1-lga01"
    assert config.overruled == (("-mlab-node-name", "NODE_NAME"),)

    config = configure([*GOOD, "-once"], {"MLAB_NODE_NAME": mlab, "CHECK": "1"})
    assert (config.node, config.mode) == ("n1", Mode.ONCE)
    assert {variable for _, variable in config.overruled} == {"MLAB_NODE_NAME", "CHECK"}

    assert configure(GOOD, {"ALLOW_EMPTY": "1"}).mode is Mode.RUN

    both = {"NODE_NAME": "n", "MLAB_NODE_NAME": mlab}
    assert "excludes" in problems([*GOOD[:2], *GOOD[4:]], both)[0]


def test_memory_is_raised_for_bundles_that_its_default_does_not_hold() -> None:
    """A manifest of the Go agent with large bundles goes on working."""
    config = configure([*GOOD, "-bundle-size-max", "100MiB"])
    assert config.memory_max == 100 << 20
    assert config.memory_raised_from == 32 << 20
    assert configure(GOOD).memory_raised_from == 0


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("/a/./b//c/", "/a/b/c"),
        ("//a", "/a"),
        ("{tmp}/link/../spool", "{tmp}/real/spool"),
        ("{tmp}/link/spool", "{tmp}/link/spool"),
        ("{tmp}/none/../spool", "{tmp}/spool"),
    ],
)
def test_a_directory_has_one_spelling(tmp_path: Path, given: str, meant: str) -> None:
    """Where `..` leads is found as the kernel does; other links stay as they were given."""
    (tmp_path / "real/below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real/below")
    config = configure([*GOOD, "-local-data-dir", given.format(tmp=tmp_path)])
    assert str(config.local_data_dir) == meant.format(tmp=tmp_path)
    assert config.state_dir.is_relative_to(config.local_data_dir)


def test_version_and_help_are_not_set_by_the_environment() -> None:
    """VERSION=1.2 stands in many images and means something else."""
    configure(GOOD, {"VERSION": "1.2", "HELP": "yes"})


@pytest.mark.parametrize("table", [status.FLAGS, why_options.FLAGS, verify.FLAGS, COMMON])
def test_no_command_takes_the_variable_help_for_its_flag(table: tuple[flags.Flag, ...]) -> None:
    """HELP=1 in the environment of a container must not end `jostler status -health` well."""
    assert flags.parse(table, [], {"HELP": "1", "H": "1"}).values["help"] is False


def test_help_names_every_flag_and_its_default() -> None:
    """-help is the reference of the command line."""
    text = cli.help_text()
    for flag in cli.TABLE:
        assert f"-{flag.name}" in text
    assert "(default 20971520)" in text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h30m", 5400),
        ("250ms", 0.25),
        ("1.5s", 1.5),
        ("0", 0),
        ("2us", 2e-6),
        ("1h0m0.5s", 3600.5),
    ],
)
def test_durations_are_read_as_go_writes_them(text: str, seconds: float) -> None:
    """Sums of numbers with units."""
    assert flags.duration(text) == pytest.approx(seconds)
    with pytest.raises(ValueError, match="longer than 292 years"):
        flags.duration("2562048h")


@given(st.text(max_size=12))
def test_no_text_breaks_the_readers(text: str) -> None:
    """Any text is a value or a ValueError."""
    for read in (flags.duration, flags.size, flags.boolean, flags.whole):
        try:
            value = read(text)
        except ValueError:
            continue
        assert value >= 0


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0x1400000", 20 << 20),
        ("20_971_520", 20 << 20),
        ("0X_1F", 31),
        ("0b101", 5),
        ("0o17", 15),
        ("017", 15),
        ("0", 0),
    ],
)
def test_sizes_are_read_as_go_reads_integers(text: str, number: int) -> None:
    """Manifests of the Go agent have them."""
    assert flags.size(text) == number


@pytest.mark.parametrize("text", ["08", "0x", "1__0", "_1", "1_", "0x1MiB", "-1", "1.5", "017MB"])
def test_what_go_takes_for_no_integer_is_no_size(text: str) -> None:
    """A mistake is not read as something else."""
    with pytest.raises(ValueError, match="is not a size"):
        flags.size(text)


@given(st.integers(0, 10**12))
def test_sizes_are_read_with_and_without_a_unit(number: int) -> None:
    """MB is a million, MiB is 2**20, a bare number is bytes."""
    assert flags.size(str(number)) == number
    assert flags.size(f"{number}MB") == number * 10**6
    assert flags.size(f"{number}MiB") == number << 20
    assert flags.size(f"{number}k") == number * 1000


def test_a_missing_organization_is_told_beside_a_missing_experiment() -> None:
    """One problem hides no other."""
    found = problems(["-gcs-data-dir", "autoload/v2", "-datatype", "a", "-gcs-bucket", "b"])
    assert any(problem.startswith("-experiment") for problem in found)
    assert any("rganization" in problem for problem in found)


def test_a_directory_bucket_has_one_spelling() -> None:
    """The URL in rows is the one by which the bucket is read again."""
    argv = ["-node-name", "n1", "-experiment", "exp", "-datatype", "foo1", "-gcs-bucket"]
    assert configure([*argv, "file:///my bucket/"]).bucket == "file:///my%20bucket"
    assert configure([*argv, "file:///my%20bucket"]).bucket == "file:///my%20bucket"
    assert "absolute" in problems([*argv, "file:///"])[0]


def test_no_name_is_longer_than_a_files_may_be(tmp_path: Path) -> None:
    """The longest that is accepted makes a journal's file; one byte more is refused at once."""

    def argv(size: int) -> list[str]:
        return [*GOOD, "-node-name", "n" * size]

    longest = max(size for size in range(100, 256) if not _problems_or_none(argv(size)))
    name = BundleName(
        place=configure(argv(longest)).place,
        datatype="rejected1",
        day=Day(date(2026, 1, 2)),
        created=datetime(2026, 1, 2, tzinfo=UTC),
        node="n" * longest,
        kind=Kind.DATA,
    )
    (tmp_path / (str(name).rpartition("/")[2] + SEALED)).touch()
    (problem,) = problems(argv(longest + 1))
    assert problem.startswith("-node-name: with experiment 'exp' and datatype 'rejected1'")
    assert "256 bytes, of 255" in problem


def _problems_or_none(argv: list[str]) -> list[str]:
    try:
        configure(argv)
    except ConfigError as exc:
        return exc.problems
    return []
