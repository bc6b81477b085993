"""Watch the free space of the spool's disk, and carry out `-disk-lack-action`.

**Invariant:** nothing is given up with another action than remove-oldest.  With each action the
files that can be sent are sent.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from jostler.agent.disk_lack import Lack, Space
from jostler.bundle import SealReason, State
from jostler.config import DiskLackAction
from jostler.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from jostler.agent.giving_up import GivingUp
    from jostler.bundle import InFlightBundles, OpenBundles
    from jostler.config import MinFree
    from jostler.full_sign import FullSign

log = Log("jostler.disk")

LOOK_EVERY_S = 1.0
NOTHING_TO_GIVE_UP_S = 10.0
"""The time until files are looked for again if there were none that could be given up."""


class DiskView(Struct, frozen=True, kw_only=True):
    """The state of the disk, for the status; times are Unix seconds, 0 for never.

    Attributes:
        lacks: whether space lacks.
        since_s: since when.
        action: what is done then.
        limit_bytes: below this, space lacks.
        limit: the same for people, as bytes or inodes.
        given_up_s: when a file was last given up.
    """

    lacks: bool = False
    since_s: float = 0.0
    action: DiskLackAction = DiskLackAction.FLUSH
    limit_bytes: int = 0
    limit: str = ""
    given_up_s: float = 0.0


def space_of(directory: Path, min_free: MinFree) -> Space:
    """Look at the disk that a directory is on.

    Raises:
        OSError: the directory cannot be looked at.
    """
    disk = os.statvfs(directory)
    size_bytes = disk.f_blocks * disk.f_frsize
    # f_bavail, not f_bfree: ext4 keeps a share of the disk for root, and services do not run as
    # root.
    free_bytes, inode_bytes = disk.f_bavail * disk.f_frsize, 0
    # ext4 has one inode for 16 KiB: small files take all of them before the bytes.  A file system
    # that makes inodes as it needs them may say that it has 0; then bytes are what counts.
    if disk.f_favail * size_bytes < free_bytes * disk.f_files:
        inode_bytes = max(1, size_bytes // disk.f_files)
        free_bytes = disk.f_favail * inode_bytes
    return Space(
        free_bytes=free_bytes,
        size_bytes=size_bytes,
        limit_bytes=min_free.of(size_bytes),
        inode_bytes=inode_bytes,
    )


class LowDisk:
    """Belongs to the agent's thread.

    Args:
        action: what to do while space lacks.
        look: returns the space of the spool's disk.
        sign: the file that asks services to write no more.
        giving_up: gives up files.
        open_bundles: are sealed early.
        in_flight: all bundles.

    Attributes:
        view: the state of the disk.
    """

    def __init__(
        self,
        action: DiskLackAction,
        look: Callable[[], Space],
        sign: FullSign,
        *,
        giving_up: GivingUp,
        open_bundles: OpenBundles,
        in_flight: InFlightBundles,
    ) -> None:
        self._action = action
        self._look = look
        self._sign = sign
        self._giving_up = giving_up
        self._open_bundles = open_bundles
        self._in_flight = in_flight
        self._lack = Lack()
        self._space = Space(free_bytes=0, size_bytes=0, limit_bytes=0)
        self._due_s = self._give_up_s = 0.0
        self.view = DiskView(action=action)

    @property
    def refuses(self) -> bool:
        """Whether no file is read until the bundles on their way are stored and cleaned up.

        The journal's reserve holds one record at a time: bundles that go one after the other can
        be recorded on a disk that has no block left.  A bundle that fails waits alone.
        """
        if not (self._lack.lacks and self._action is DiskLackAction.STOP):
            return False
        return any(
            (one.on_its_way and not one.what) or (one.state is State.STORED and one.job is not None)
            for one in self._in_flight
        )

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Remove the sign at the beginning and at the end: afterwards nothing keeps it current."""
        self._sign.clear()
        if self._action is DiskLackAction.STOP:
            self._sign.prepare()
        try:
            yield
        finally:
            self._sign.clear()

    def watch(self, now_s: float, *, held_up: bool = True) -> None:
        """Look at the disk once a second; on a change, log it and set or clear the sign.

        Args:
            now_s: monotonic seconds.
            held_up: whether files cannot be sent, or not as fast as they arrive.
        """
        if now_s < self._due_s:
            return
        self._due_s = now_s + LOOK_EVERY_S
        try:
            self._space = self._look()
        except OSError:
            return  # the spool is gone: its directories are made again
        before, self._lack = self._lack, self._lack.seen(self._space, now_s, held_up=held_up)
        if self._lack.lacks != before.lacks:
            self._say_changed()
        self._show(since_s=self.view.since_s if before.lacks else time.time())
        if self._action is DiskLackAction.STOP and self._lack.lacks:
            self._sign.show(now_s)
        elif before.lacks and not self._lack.lacks:
            self._sign.clear()

    def keep(self, now_s: float, *, fails: bool, held_up: bool) -> bool:
        """Watch the disk and do what is due; return whether files were given up.

        Args:
            now_s: monotonic seconds.
            fails: whether the bucket or the journal fails: then nothing is gained by sealing.
            held_up: as in `watch`.
        """
        self.watch(now_s, held_up=held_up)
        if not fails:
            self._giving_up.send()
            # Sealing small bundles frees hardly anything and makes many small objects: `flush_due`
            # weighs that.
            open_bytes = sum(bundle.size_bytes for bundle in self._open_bundles.open_bundles)
            if self._lack.flush_due(self._space, open_bytes, now_s):
                self._open_bundles.seal_all(SealReason.DISK_LACK)
                self._lack = self._lack.flushed(now_s)
        if not (self._lack.gives_up and self._action is DiskLackAction.REMOVE_OLDEST):
            return False
        if now_s < self._give_up_s:
            return False
        given_up = self._giving_up.give_up(self._space)
        if not given_up:
            self._give_up_s = now_s + NOTHING_TO_GIVE_UP_S
        else:
            self._due_s = now_s  # look at once whether that was enough
            self._show(since_s=self.view.since_s, given_up_s=time.time())
            log.error("disk.files_given_up", files=given_up, free=self._space.free_bytes)
        return given_up > 0

    def _show(self, since_s: float, given_up_s: float = 0.0) -> None:
        self.view = DiskView(
            lacks=self._lack.lacks,
            since_s=since_s if self._lack.lacks else 0.0,
            action=self._action,
            limit_bytes=self._space.limit_bytes,
            limit=self._space.shown(self._space.limit_bytes),
            given_up_s=given_up_s or self.view.given_up_s,
        )

    def _say_changed(self) -> None:
        space = self._space
        facts = {
            "free": space.free_bytes,
            "size": space.size_bytes,
            "min_free": space.limit_bytes,
            "enough": space.enough_bytes,
        }
        if space.inode_bytes:
            facts["inodes"] = space.free_bytes // space.inode_bytes
        if self._lack.lacks:
            log.warning("disk.lacking", **facts, action=str(self._action))
        else:
            log.info("disk.enough", **facts)
