"""Blocks: one ordinary gzip stream, each part of which can be read alone."""

from __future__ import annotations

import gzip
import random
import subprocess
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostler.format.blocks import AHEAD, BLOCK_BYTES, LEVELS, BlockWriter, read_block

lines = st.lists(
    st.one_of(
        st.binary(max_size=200),
        st.integers(0, 5).map(lambda seed: random.Random(seed).randbytes(100_000 + seed)),
    ).map(lambda line: line.replace(b"\n", b"") + b"\n"),
    max_size=30,
)


def written(rows: list[bytes], level: int) -> tuple[BlockWriter, bytes]:
    writer = BlockWriter(level)
    for row in rows:
        writer.add(row)
    return writer, writer.finish()


@given(lines, st.sampled_from(LEVELS))
def test_every_line_is_there_once_and_in_its_block(rows: list[bytes], level: int) -> None:
    """No line is lost or moved, and each block inflates alone to whole lines."""
    writer, data = written(rows, level)

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


def test_a_full_flush_comes_after_at_most_256_kib_even_within_a_row() -> None:
    """A reader may start at any flush; a row larger than a block holds several."""
    row = random.Random(1).randbytes(1_000_000).replace(b"\n", b"") + b"\n"
    _, data = written([row, row], 1)
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    flush = b"\x00\x00\xff\xff"
    sizes = [len(inflate.decompress(part + flush)) for part in data[10:-10].split(flush)]
    assert max(sizes) <= BLOCK_BYTES
    assert sum(sizes) == 2 * len(row)


def test_equal_rows_give_equal_bytes() -> None:
    """The header has no time, so a bundle can be built again after a crash."""
    rows = [b"%d\n" % number for number in range(1000)]
    assert written(rows, 2)[1] == written(rows, 2)[1]


def test_the_stream_is_read_by_other_readers() -> None:
    """The gzip program of this system reads it and finds its check sum right."""
    _, data = written([b"a\n", b"b\n"], 2)
    done = subprocess.run(["gzip", "-dc"], input=data, capture_output=True, check=True)
    assert done.stdout == b"a\nb\n"


def test_what_is_no_block_is_refused() -> None:
    """With a clear error."""
    with pytest.raises(ValueError, match="not a block"):
        read_block(b"\xff\xff\xff")


def test_memory_counts_what_is_held() -> None:
    """Held bytes are compressed ones and few blocks of plain ones, however fast rows come."""
    writer = BlockWriter(2)
    for _ in range(100_000):
        writer.add(b"x" * 99 + b"\n")
        assert writer.held_bytes < (AHEAD + 2) * BLOCK_BYTES + 100_000
    assert writer.plain_bytes == 10_000_000
    assert writer.held_bytes >= len(writer.finish()) - 10
