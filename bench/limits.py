"""What each part of the agent's work takes alone: how fast it could be if it did nothing else."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from bench.files import SCHEMA, document, paths, write
from bench.simple import alone
from jostler.format.blocks import BLOCK_BYTES
from jostler.format.compression import FAST, SMALL
from jostler.schema import Judge, parse_datatype_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.files import Kind
    from bench.programs import Bench, Run
    from jostler.format.compression import Compression

ROW_BYTES = 32 << 20
"""Of rows that are decoded and deflated, at the most."""


def limits(bench: Bench, kind: Kind, made: list[bytes], count: int) -> dict[str, Callable[[], Run]]:
    """Return what measures each part, by name, on so many files of a kind."""
    lines = max(1, min(count, ROW_BYTES // kind.size))
    plain = b"".join(document(made, number) + b"\n" for number in range(lines))

    def files(work: Callable[[list[str]], object]) -> Run:
        directory = bench.spool()
        total = write(directory, made, count, rename=False)
        found = paths(directory)
        return alone(lambda: work(found), count, total)

    def decode() -> Run:
        judge = Judge(parse_datatype_schema(json.dumps(SCHEMA).encode(), source="bench"))
        return alone(lambda: list(map(judge.flaw, plain.splitlines())), lines, len(plain))

    def deflate(compression: Compression) -> Run:
        blocks = [plain[at : at + BLOCK_BYTES] for at in range(0, len(plain), BLOCK_BYTES)]
        return alone(
            lambda: [compression.deflate(block, BLOCK_BYTES) for block in blocks], lines, len(plain)
        )

    return {
        "read": lambda: files(_read),
        "decode": decode,
        "deflate fast": lambda: deflate(FAST),
        "deflate small": lambda: deflate(SMALL),
        "unlink": lambda: files(_unlink),
    }


def _read(found: list[str]) -> None:
    for path in found:
        with open(path, "rb") as file:  # noqa: PTH123 - a Path for each takes longer
            file.read()


def _unlink(found: list[str]) -> None:
    for path in found:
        os.unlink(path)  # noqa: PTH108 - as above
