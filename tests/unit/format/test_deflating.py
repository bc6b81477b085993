"""The thread that compresses blocks."""

from __future__ import annotations

import os
import threading

import pytest

from jostler.format.deflating import Deflating


def test_blocks_are_compressed_in_their_order_beside_the_caller() -> None:
    made: list[tuple[str, bytes]] = []
    held = threading.Event()

    def pack(plain: bytes) -> bytes:
        assert held.wait(60)
        made.append((threading.current_thread().name, plain))
        return plain.upper()

    deflating = Deflating()
    packed = [deflating.put(pack, plain) for plain in (b"a", b"b", b"c")]
    assert not packed[0].is_done
    held.set()
    assert [one.take() for one in packed] == [b"A", b"B", b"C"]
    assert made == [("deflate", b"a"), ("deflate", b"b"), ("deflate", b"c")]


def test_an_error_is_raised_by_its_own_block_and_the_next_goes_on() -> None:
    def pack(plain: bytes) -> bytes:
        if plain == b"bad":
            raise MemoryError
        return plain

    deflating = Deflating()
    bad, good = deflating.put(pack, b"bad"), deflating.put(pack, b"good")
    assert good.take() == b"good"
    with pytest.raises(MemoryError):
        bad.take()


def test_a_process_that_was_forked_has_a_thread_of_its_own() -> None:
    """As a worker of Spark is, after the process that forks has compressed something."""
    deflating = Deflating()
    assert deflating.put(bytes.upper, b"here").take() == b"HERE"
    child = os.fork()
    if not child:
        os._exit(deflating.put(bytes.upper, b"there").take() != b"THERE")
    assert os.waitpid(child, 0)[1] == 0
