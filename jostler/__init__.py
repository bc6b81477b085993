"""The agent: moves JSON files from a spool directory to bundles in a bucket, exactly once."""

from jostler.asking import open_archive as open  # noqa: A004 - read as jostler.open

__all__ = ["open"]
