"""The native module: what happens without it, and that it accepts only what the exact judge does.

The tests that need it are skipped where it is not installed; `make setup` builds it where cargo is.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import subprocess
import sys
import tomllib
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.files import KINDS, SCHEMA, documents
from bench.judge import flat, ndt7
from jostler.errors import ConfigError
from jostler.schema import (
    Field,
    Judge,
    Mode,
    Native,
    Use,
    fields_from_api,
    json_object_flaw,
    object_judge,
)
from jostler.schema.native import VERSION, find
from jostler.schema.slow import SlowJudge
from tests.unit.schema import documents as shapes
from tests.unit.schema.pairs import Pairs

if TYPE_CHECKING:
    from jostler.schema import Fields

ROOT = Path(__file__).parents[3]
PAIRS = int(os.environ.get("JOSTLER_NATIVE_PAIRS", "20000"))
SEED = int(os.environ.get("JOSTLER_JUDGE_SEED", "") or Random().randrange(10**9))
NATIVE = find(Use.AUTO)
ONE = (Field(name="a", type="INTEGER"),)

needs_native = pytest.mark.skipif(not NATIVE.module, reason=NATIVE.why_not)


# Without it


def test_it_may_be_absent() -> None:
    """Then it is not used, and one line says so."""

    def load(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    found = find(Use.AUTO, load)

    assert (found.module, found.version, found.is_absent) == (None, "none", True)
    assert found.description == "none: jostler-native is not installed"


def broken(_: str) -> None:
    raise ImportError("invalid ELF header")


def hollow(name: str) -> None:
    """Import a package whose compiled part is not there."""
    importlib.import_module(f"{name}_that_is_nowhere")


def stub(version: str, *, accepts: bool | None = None) -> Any:  # noqa: ANN401 - a module
    """Return a module that answers all alike, or fails."""

    class Judge:
        read_batch = take_rows = None

        def __init__(self, _: object) -> None:
            pass

        def accepts(self, _: bytes) -> bool:
            if accepts is None:
                raise RuntimeError("no such instruction")
            return accepts

    index = SimpleNamespace(of=None, take=None, name_keys=None, name_keys_of=None)
    merge = SimpleNamespace(index_text=None)
    rest = dict.fromkeys(("digests", "index_rows", "unlink_unchanged"))
    return SimpleNamespace(VERSION=version, Judge=Judge, Index=index, Merge=merge, **rest)


def without(name: str) -> Any:  # noqa: ANN401 - a module
    """Return a module that lacks a function, as one has that was built before it was written."""
    module = stub(VERSION)
    delattr(module, name)
    return module


@pytest.mark.parametrize(
    ("load", "why"),
    [
        (broken, "jostler-native cannot be imported: ImportError: invalid ELF header"),
        (hollow, "jostler-native cannot be imported: ModuleNotFoundError: No module named"),
        (lambda _: without("unlink_unchanged"), "jostler-native lacks unlink_unchanged; it was"),
        (
            lambda _: without("Judge"),
            "jostler-native lacks Judge.accepts, Judge.read_batch, Judge.take_rows; it was built",
        ),
        (lambda _: stub("0.9.0"), f"jostler-native is of version 0.9.0, and {VERSION} is needed"),
        (lambda _: object(), f"jostler-native is of version unknown, and {VERSION} is needed"),
        (
            lambda _: stub(VERSION),
            "jostler-native does not work: RuntimeError: no such instruction",
        ),
        (lambda _: stub(VERSION, accepts=True), "jostler-native does not judge as it should"),
        (lambda _: stub(VERSION, accepts=False), "jostler-native does not judge as it should"),
    ],
    ids=[
        *("broken", "hollow", "lacks one", "lacks more", "older", "another", "failing"),
        *("accepts all", "accepts nothing"),
    ],
)
def test_it_may_be_broken_or_of_another_version(load: Any, why: str) -> None:  # noqa: ANN401
    """It is not used either, and only where it is required is that an error."""
    found = find(Use.AUTO, load)

    assert (found.module, found.is_absent) == (None, False)
    assert found.why_not.startswith(why)
    assert Judge(ONE, found).native is None
    with pytest.raises(ConfigError, match="-native require: jostler-native") as raised:
        find(Use.REQUIRE, load)
    assert why in str(raised.value)


def test_it_is_not_even_looked_for_when_it_is_off() -> None:
    found = find(Use.OFF, broken)
    assert (found.module, found.description) == (None, "none")


def test_judges_without_it_answer_the_same() -> None:
    """As they do where columns are too strange for it."""
    for native in (NATIVE, find(Use.OFF)):
        strange = (Field(name="\u212a", type="STRING"), *ONE)
        for judge in (Judge(ONE, native), Judge(strange, native)):
            assert judge.flaw(b'{"a":1}') is None
            assert judge.flaw(b'{"a":1.5}') is not None
        assert object_judge(native)(b'{"a":1.5}') is None
        assert object_judge(native)(b'{"a":1.}') == json_object_flaw(b'{"a":1.}') is not None


def test_a_judge_is_pickled_without_it() -> None:
    judge = pickle.loads(pickle.dumps(Judge(ONE, NATIVE)))
    assert (judge.fields, judge.native) == (ONE, None)


def test_the_crate_has_the_version_that_is_asked_for() -> None:
    crate = tomllib.loads((ROOT / "native" / "Cargo.toml").read_text())
    assert crate["package"]["version"] == VERSION


def test_a_broken_module_is_told_by_check_and_refused_where_it_is_required(tmp_path: Path) -> None:
    """By a process that finds a file of its name that is no module."""
    (tmp_path / "jostler_native.so").write_bytes(b"no module")
    spool = tmp_path / "spool" / "exp" / "foo1"
    spool.mkdir(parents=True)
    (tmp_path / "spool" / "datatypes").mkdir()
    (tmp_path / "spool" / "datatypes" / "foo1.json").write_text('[{"name":"a","type":"STRING"}]')
    (tmp_path / "bucket").mkdir()
    flags = ["-gcs-bucket", (tmp_path / "bucket").as_uri(), "-node-name", "n", "-experiment", "exp"]
    flags += ["-datatype", "foo1", "-local-data-dir", str(tmp_path / "spool"), "-watch", "scan"]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "jostler", *flags, *more]
        environ = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
        return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)

    why = "jostler-native cannot be imported: ImportError"
    checked = run("-check", "-native", "require")
    assert f"FAIL native: -native require: {why}" in checked.stdout, checked.stderr
    started = run("-once", "-native", "require")
    assert started.returncode == 2
    assert f"jostler: -native require: {why}" in started.stderr
    once = run("-once", "-log-format", "json")
    assert once.returncode == 0, once.stdout
    events = [json.loads(line) for line in once.stdout.splitlines()]
    (told,) = [event for event in events if event["event"] == "native.unused"]
    assert told["level"] == "warning"
    assert why in told["why"]


# Agreement


def told(columns: Fields, document: bytes) -> str:
    return f"run again with JOSTLER_JUDGE_SEED={SEED}: {document!r} for {columns}"


def judges(columns: Fields) -> tuple[Any, SlowJudge]:
    native = NATIVE.judge(columns)
    assert native, f"the native module refuses {columns}"
    return native, SlowJudge(columns)


def accepts(native: Any, document: bytes) -> bool:  # noqa: ANN401 - the native judge
    """Return whether a document is accepted; white space after it must not matter.

    The judge looks ahead, so the end of a document is read in another way than its middle.
    """
    answer: bool = native.accepts(document)
    assert native.accepts(document + b" " * 16) == answer, document
    return answer


def mutated(rest: Random, document: bytes) -> bytes:
    """Return a document with a byte changed, lost or doubled, or with a part put elsewhere."""
    if not document:
        return document
    at = rest.randrange(len(document))
    end = min(len(document), at + rest.choice((1, 1, 1, 2, 8)))
    part = document[at:end]
    match rest.randrange(5):
        case 0:
            part = bytes([rest.randrange(256)])
        case 1:
            part = b""
        case 2:
            part += part
        case 3:
            part = rest.choice(
                (b'"', b"\\", b",", b"0", b"-", b".", b"e", b"[", b"}", b"\n", b"\x00")
            )
        case 4:
            to = rest.randrange(len(document))
            return document[:to] + part + document[to:]
    return document[:at] + part + document[end:]


@needs_native
@pytest.mark.timeout(3600)
def test_it_accepts_only_what_the_exact_judge_accepts() -> None:
    """Documents for all types of columns, and each once more with something changed."""
    rest = Random(SEED)
    good = accepted = changed = 0
    for columns, made in Pairs(SEED).schemas(PAIRS // 2):
        native, exact = judges(columns)
        for document in made:
            for is_changed, candidate in enumerate((document, mutated(rest, document))):
                if is_good := exact.flaw(candidate) is None:
                    good += 1
                if accepts(native, candidate):
                    assert is_good, told(columns, candidate)
                    accepted += 1
                    changed += is_changed
    counted = f"{PAIRS} pairs, {good} good, {accepted} accepted, {changed} of them changed"
    print(f"seed {SEED}: {counted}")  # noqa: T201 - `make fuzz-native` shows it
    assert accepted > good // 2, f"seed {SEED}: the pairs test little"
    # Of 20,000 pairs 310 on average, with a standard deviation of 41.
    assert changed > PAIRS // 400, f"seed {SEED}: hardly any changed document is accepted"


@needs_native
@pytest.mark.timeout(3600)
def test_it_accepts_only_what_any_object_may_be() -> None:
    """With `-validate json`."""
    rest = Random(SEED)
    native: Any = NATIVE.judge(None)
    accepted = 0
    for _, made in Pairs(SEED).schemas(PAIRS // 10):
        for document in made:
            for candidate in (document, mutated(rest, document)):
                if accepts(native, candidate):
                    assert json_object_flaw(candidate) is None, told((), candidate)
                    accepted += 1
    assert accepted > PAIRS // 20


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.datetimes().map(str),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(shapes.NAMES) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=12,
)


@needs_native
@given(
    value=VALUES, scalar=st.sampled_from(shapes.SCALARS), mode=st.sampled_from(Mode), at=st.data()
)
@settings(max_examples=int(os.environ.get("JOSTLER_NATIVE_EXAMPLES", "150")), deadline=None)
def test_no_value_of_any_type_is_accepted_alone(
    value: object, scalar: Field, mode: Mode, at: st.DataObject
) -> None:
    """In a column of each type, mode and limit; some spelled with escapes, some not."""
    column = Field(
        name="a",
        type=scalar.type,
        mode=mode,
        max_length=scalar.max_length,
        precision=scalar.precision,
        scale=scalar.scale,
        range_element=scalar.range_element,
    )
    native, exact = judges((column,))
    text = json.dumps({"a": value}, ensure_ascii=at.draw(st.booleans()))
    document = text.encode(errors="surrogatepass")
    assert not accepts(native, document) or exact.flaw(document) is None


def hosts() -> tuple[Fields, list[bytes]]:
    """Return columns and documents like those of annotations of connections."""
    schema = [
        {"name": "UUID", "type": "STRING"},
        {"name": "Timestamp", "type": "TIMESTAMP"},
        {
            "name": "Server",
            "type": "RECORD",
            "fields": [
                {"name": "Site", "type": "STRING"},
                {"name": "Machine", "type": "STRING"},
                {
                    "name": "Geo",
                    "type": "RECORD",
                    "fields": [
                        {"name": "CountryName", "type": "STRING"},
                        {"name": "Latitude", "type": "FLOAT"},
                        {"name": "Longitude", "type": "FLOAT"},
                        {"name": "Missing", "type": "BOOLEAN"},
                    ],
                },
                {
                    "name": "Network",
                    "type": "RECORD",
                    "fields": [
                        {"name": "CIDR", "type": "STRING"},
                        {"name": "ASNumber", "type": "INTEGER"},
                        {
                            "name": "Systems",
                            "type": "RECORD",
                            "mode": "REPEATED",
                            "fields": [{"name": "ASNs", "type": "INTEGER", "mode": "REPEATED"}],
                        },
                    ],
                },
            ],
        },
    ]
    rest = Random(3)

    def one() -> object:
        place = {
            "CountryName": rest.choice(("Côte d'Ivoire", "España")),
            "Latitude": rest.uniform(-90, 90),
        }
        place |= (
            {"Longitude": rest.uniform(-180, 180)} if rest.random() < 0.9 else {"Missing": True}
        )
        systems = [{"ASNs": [rest.randrange(2**32)]} for _ in range(rest.randrange(3))]
        network = {"CIDR": "2001:db8::/32", "ASNumber": rest.randrange(2**32), "Systems": systems}
        return {
            "UUID": "ndt-knwp4_1583603744_0000000000005907",
            "Timestamp": "2020-03-18T00:06:56.613263144Z",
            "Server": {"Site": "lga03", "Machine": "mlab1", "Geo": place, "Network": network},
            "Client": None,
        }

    spaced = (None, 2)
    made = [json.dumps(one(), ensure_ascii=False, indent=rest.choice(spaced)) for _ in range(500)]
    return fields_from_api(schema), [text.encode() for text in made]


@needs_native
@pytest.mark.parametrize(
    "made",
    [ndt7, flat, hosts, lambda: (fields_from_api(SCHEMA), documents(KINDS[2], 100))],
    ids=["ndt7", "flat", "annotations", "samples"],
)
def test_it_leaves_hardly_any_good_document_undecided(made: Any) -> None:  # noqa: ANN401
    """Fewer than one in a hundred; and none with a mistake is accepted."""
    columns, given_ = made()
    native, exact = judges(columns)
    assert all(exact.flaw(document) is None for document in given_[:50])
    assert sum(map(native.accepts, given_)) > 0.99 * len(given_)
    wrong = [document.replace(b'":', b'x":', 1) for document in given_]
    assert not any(map(native.accepts, wrong))


@needs_native
def test_a_hostile_document_takes_neither_stack_nor_memory() -> None:
    """Nesting, one object with very many members, very many empty objects."""
    inner = (Field(name="b", type="JSON"),)
    columns = (
        Field(name="a", type="JSON"),
        Field(name="many", type="RECORD", mode=Mode.REPEATED, fields=inner),
    )
    native, exact = judges(columns)
    million = 10**6
    for document in (
        b'{"a":' + b"[" * million,
        b'{"a":' + b'{"a":' * million,
        b'{"a":' + b"[" * million + b"]" * million + b"}",
        b'{"a":' + b"[" * 501 + b"]" * 501 + b"}",  # one more than BigQuery takes
        b"{" + b",".join(b'"x%d":null' % n for n in range(20_000)) + b"}",
        b'{"a":1' + b"," * million,
    ):
        assert not native.accepts(document)
    empty = b'{"many":[' + b",".join([b"{}"] * 100_000) + b"]}"
    assert native.accepts(empty)
    assert exact.flaw(empty) is None


def test_the_choice_is_a_value() -> None:
    """So that judges of the same columns can be cached by it."""
    assert Native(use=Use.OFF) == find(Use.OFF)
    assert hash(NATIVE) == hash(find(Use.AUTO))
