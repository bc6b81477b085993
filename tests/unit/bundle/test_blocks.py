"""Blocks: one ordinary gzip stream, each part of which can be read alone."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isal import isal_zlib

from jostler.format.blocks import AHEAD, BLOCK_BYTES, BlockWriter, inflated, read_block
from jostler.format.compression import (
    FAST,
    LEVELS,
    SMALL,
    Compression,
    CompressionChoice,
    Method,
    compression_choice,
)
from jostler.storage import new_upload_id, upload_id

lines = st.lists(
    st.one_of(
        st.binary(max_size=200),
        st.integers(0, 5).map(lambda seed: random.Random(seed).randbytes(100_000 + seed)),
    ).map(lambda line: line.replace(b"\n", b"") + b"\n"),
    max_size=30,
)


EVERY = [Compression(method, level) for method, levels in LEVELS.items() for level in levels]


def written(rows: list[bytes], compression: Compression) -> tuple[BlockWriter, bytes]:
    writer = BlockWriter(compression)
    for row in rows:
        writer.add(row)
    return writer, writer.finish()


@settings(max_examples=50, deadline=None)
@given(lines.filter(bool), st.sets(st.integers(0, 30)))
def test_a_block_may_end_early(rows: list[bytes], ends: set[int]) -> None:
    """Nothing is left uncompressed then, and each block still is the rows that it says."""
    writer = BlockWriter(FAST)
    for number, row in enumerate(rows, 1):
        writer.add(row)
        if number in ends:
            writer.end_block()
            assert writer.loose_bytes == 0
    data = writer.finish()

    assert gzip.decompress(data) == b"".join(rows)
    begins = [block.line for block in writer.blocks]
    assert {end + 1 for end in ends if end < len(rows)} - {1} <= set(begins)
    for block, end in zip(writer.blocks, [*begins, len(rows) + 1][1:], strict=True):
        packed = data[block.offset : block.offset + block.length]
        assert read_block(packed) == b"".join(rows[block.line - 1 : end - 1])


@settings(max_examples=50, deadline=None)
@given(lines, st.lists(st.integers(0, 8)))
def test_rows_that_come_together_make_the_same_blocks(rows: list[bytes], cuts: list[int]) -> None:
    """So a bundle that is made again from its files, one by one, has equal bytes."""
    writer = BlockWriter(FAST)
    left = rows
    for cut in cuts:
        writer.add_rows(left[:cut])
        left = left[cut:]
    writer.add_rows(left)
    one_by_one, data = written(rows, FAST)

    assert writer.finish() == data
    assert writer.blocks == one_by_one.blocks
    assert (writer.lines, writer.plain_bytes) == (one_by_one.lines, one_by_one.plain_bytes)


@settings(max_examples=50, deadline=None)
@given(lines, st.sampled_from([FAST, SMALL]))
def test_every_line_is_there_once_and_in_its_block(
    rows: list[bytes], compression: Compression
) -> None:
    """No line is lost or moved, and each block inflates alone to whole lines."""
    writer, data = written(rows, compression)

    assert gzip.decompress(data) == b"".join(rows)
    assert writer.lines == len(rows)
    assert writer.plain_bytes == sum(map(len, rows))
    at = 0
    for block in writer.blocks:
        plain = read_block(data[block.offset : block.offset + block.length])
        assert block.line == at + 1
        count = plain.count(b"\n")
        assert plain == b"".join(rows[at : at + count])
        at += count
    assert at == len(rows)


@pytest.mark.parametrize("compression", [FAST, SMALL])
def test_a_full_flush_comes_after_at_most_256_kib_even_within_a_row(
    compression: Compression,
) -> None:
    """A reader may start at any flush; a row larger than a block holds several."""
    row = random.Random(1).randbytes(1_000_000).replace(b"\n", b"") + b"\n"
    _, data = written([row, row], compression)
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    flush = b"\x00\x00\xff\xff"
    sizes = [len(inflate.decompress(part + flush)) for part in data[10:-10].split(flush)]
    assert max(sizes) <= BLOCK_BYTES
    assert sum(sizes) == 2 * len(row)


@pytest.mark.parametrize("compression", EVERY)
def test_equal_rows_give_equal_bytes(compression: Compression) -> None:
    """The header has no time, so a bundle can be built again after a crash."""
    rows = [b"%d\n" % number for number in range(1000)]
    assert written(rows, compression)[1] == written(rows, compression)[1]


def test_the_digest_is_that_of_the_whole_stream_though_writers_share_a_thread() -> None:
    """It is updated while the stream grows, by the thread that compresses all writers' blocks."""
    digests = [new_upload_id(), new_upload_id()]
    writers = [BlockWriter(FAST, digests[0]), BlockWriter(SMALL, digests[1])]
    for number in range(40_000):
        for writer in writers:
            writer.add(b"%d %d\n" % (number, id(writer)) * 3)
    for writer, digest in zip(writers, digests, strict=True):
        assert upload_id(writer.finish()) == digest.hexdigest()
        assert len(writer.blocks) > 1


def test_the_small_way_is_smaller() -> None:
    """Than the fast one, by more than a tenth, on rows of measurements."""
    rng = random.Random(1)
    names = ("ElapsedTime", "RTT", "RTTVar", "MinRTT", "BytesAcked")
    counts = [0] * len(names)
    rows = []
    for _ in range(20_000):
        counts = [count + rng.randrange(3000) for count in counts]
        rows.append(json.dumps(dict(zip(names, counts, strict=True))).encode() + b"\n")
    assert len(written(rows, SMALL)[1]) < 0.9 * len(written(rows, FAST)[1])


@pytest.mark.parametrize(
    ("text", "idle", "backlog"),
    [
        ("auto", SMALL, FAST),
        ("fast", FAST, FAST),
        ("small", SMALL, SMALL),
        ("1", Compression(Method.ZLIB_NG, 1), Compression(Method.ZLIB_NG, 1)),
        ("9", Compression(Method.ZLIB_NG, 9), Compression(Method.ZLIB_NG, 9)),
    ],
)
def test_compression_is_chosen_by_what_waits(
    text: str, idle: Compression, backlog: Compression
) -> None:
    """Storage is paid for years, so only a backlog is worth larger objects."""
    assert compression_choice(text) == CompressionChoice(idle, backlog)


@pytest.mark.parametrize("text", ["", "0", "10", "-1", "1.0", "FAST", "zstd"])
def test_what_is_no_compression_is_refused(text: str) -> None:
    """And the message says what there is."""
    with pytest.raises(ValueError, match="auto, fast, small, or a level 1 to 9"):
        compression_choice(text)


def test_the_stream_is_read_by_other_readers() -> None:
    """The gzip program of this system reads it and finds its check sum right."""
    _, data = written([b"a\n", b"b\n"], SMALL)
    done = subprocess.run(["gzip", "-dc"], input=data, capture_output=True, check=True)
    assert done.stdout == b"a\nb\n"


def test_what_is_no_block_is_refused() -> None:
    """With a clear error."""
    with pytest.raises(ValueError, match="not a block"):
        read_block(b"\xff\xff\xff")


@pytest.mark.parametrize("compression", [FAST, SMALL])
def test_memory_counts_what_is_held(compression: Compression) -> None:
    """Held bytes are compressed ones and few blocks of plain ones, however fast rows come."""
    writer = BlockWriter(compression)
    for _ in range(100_000):
        writer.add(b"x" * 99 + b"\n")
        assert writer.held_bytes < (AHEAD + 2) * BLOCK_BYTES + 100_000
    assert writer.plain_bytes == 10_000_000
    assert writer.held_bytes >= len(writer.finish()) - 10


@pytest.mark.parametrize("change", ["whole", "cut", "end", "flip", "empty", "dense"])
def test_a_stream_inflates_at_once_as_gzip_has_it(change: str) -> None:
    """Whatever size its end names, and however much smaller than its rows it is."""
    plain = b"x" * 3_000_000 if change == "dense" else random.Random(1).randbytes(9_000) * 9
    packed = {
        "cut": gzip.compress(plain)[:-100],
        "end": gzip.compress(plain)[:-4] + b"\xff\xff\xff\x7f",
        "flip": gzip.compress(plain)[:-8] + bytes(8),
        "empty": b"",
    }.get(change, gzip.compress(plain))
    if change in {"whole", "dense"}:
        assert inflated(packed) == plain
    else:
        with pytest.raises(isal_zlib.error):  # type: ignore[misc] # the stub says value for class
            inflated(packed)
