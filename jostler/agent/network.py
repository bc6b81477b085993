"""Which directories lie on network file systems, where other machines may write, too.

**Invariant:** the set of network devices is at most `VALID_S` old: a device number can be used
again after its file system was unmounted.
"""

from __future__ import annotations

import math
import os
import time
from typing import TYPE_CHECKING

from jostler.watchdir import network_devices

if TYPE_CHECKING:
    from collections.abc import Callable

VALID_S = 1.0


class Network:
    """Belongs to the agent's thread.

    Args:
        devices: returns the device numbers of the network file systems that are mounted.
        monotonic_s: the clock.
    """

    def __init__(
        self,
        devices: Callable[[], frozenset[int]] | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._devices = devices or network_devices
        self._monotonic_s = monotonic_s
        self._known: frozenset[int] = frozenset()
        self._looked_s = -math.inf

    def has(self, directory: int) -> bool:
        """Return whether an open directory lies on a network file system.

        A lease there shows only the writers of this machine.

        Args:
            directory: its descriptor.
        """
        now_s = self._monotonic_s()
        if now_s - self._looked_s >= VALID_S:
            self._known, self._looked_s = self._devices(), now_s
        return os.fstat(directory).st_dev in self._known
