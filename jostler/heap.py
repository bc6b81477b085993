"""The heap of the C library.

**Invariant:** without glibc nothing happens.
"""

from __future__ import annotations


def trim() -> None:
    """Give memory that was freed in the middle of the heap back to the kernel; takes milliseconds.

    The library by itself gives back only what is free at the heap's end.
    """
    import ctypes  # noqa: PLC0415 - few agents need it

    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):  # another C library
        return
