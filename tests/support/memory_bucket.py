"""A bucket in memory with generations: thousands of runs of a model, each in a millisecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from jostler.errors import ConflictError, MissingError
from jostler.storage import ObjectInfo, StoredObject, upload_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jostler.storage import Storage


FIRST_WRITTEN = datetime(2026, 2, 1, tzinfo=UTC)


class Died(BaseException):
    """The process of an actor was killed."""


class MemoryBucket:
    """Objects by name: bytes, generation, metadata."""

    url = "gs://memory"

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, str, dict[str, str]]] = {}
        self.generation = 0
        self.removed: Callable[[str], None] = lambda _name: None

    def put_new(
        self, name: str, data: bytes, metadata: Mapping[str, str], *, digest: str = ""
    ) -> None:
        assert digest in {"", upload_id(data)}
        if name in self.objects:
            if self.objects[name][0] != data:
                raise ConflictError(f"{name} holds other bytes")
            return
        self.generation += 1
        told = {**metadata, "upload-id": upload_id(data)}
        self.objects[name] = data, str(self.generation), told

    def read(self, name: str, version: str = "") -> StoredObject:
        found = self.objects.get(name)
        if found is None or version not in {"", found[1]}:
            raise MissingError(f"there is no {name} of version {version}")
        return StoredObject(found[0], found[1])

    def list(
        self, prefix: str, start: str = "", end: str = "", *, metadata: bool = False
    ) -> Iterator[ObjectInfo]:
        for name in sorted(self.objects):
            if name.startswith(prefix) and name >= start and (not end or name < end):
                data, version, told = self.objects[name]
                yield ObjectInfo(name, len(data), version, told if metadata else {})

    def folders(self, prefix: str) -> tuple[str, ...]:
        below = {name[len(prefix) :] for name in self.objects if name.startswith(prefix)}
        return tuple(sorted({rest.partition("/")[0] for rest in below if "/" in rest}))

    def beside(self, prefix: str) -> tuple[str, ...]:
        return tuple(
            name
            for name in sorted(self.objects)
            if name.startswith(prefix) and "/" not in name[len(prefix) :]
        )

    def metadata(self, name: str, version: str = "") -> Mapping[str, str]:
        self.read(name, version)
        return self.objects[name][2]

    def upload_id(self, name: str) -> str | None:
        found = self.objects.get(name)
        return found[2]["upload-id"] if found else None

    def written(self, prefix: str) -> Iterator[tuple[str, datetime]]:
        for info in self.list(prefix):
            yield info.name, FIRST_WRITTEN + timedelta(seconds=int(info.version))

    def replace(self, name: str, data: bytes, version: str, metadata: Mapping[str, str]) -> None:
        found = self.objects.get(name)
        if found is None or found[1] != version:
            raise ConflictError(f"{name} has another version")
        self.generation += 1
        told = {**metadata, "upload-id": upload_id(data)}
        self.objects[name] = data, str(self.generation), told

    def remove(self, name: str, version: str = "") -> None:
        found = self.objects.get(name)
        if found is None:
            return
        if version not in {"", found[1]}:
            raise ConflictError(f"{name} has another version")
        del self.objects[name]
        self.removed(name)


class Watched(MemoryBucket):
    """A bucket that calls `removed` after each change."""

    def put_new(self, name: str, data: bytes, metadata: Mapping[str, str], **more: str) -> None:
        super().put_new(name, data, metadata, **more)
        self.removed(name)

    def replace(self, name: str, data: bytes, version: str, metadata: Mapping[str, str]) -> None:
        super().replace(name, data, version, metadata)
        self.removed(name)


class Stepped:
    """A bucket as one actor sees it: before each request it lets `step` decide what happens.

    `step` may wait (others go on), or raise `Died`.
    """

    def __init__(self, bucket: Storage, step: Callable[[str], None]) -> None:
        self._bucket = bucket
        self._step = step
        self.url = bucket.url

    def __getattr__(self, request: str) -> Callable[..., object]:
        ask = getattr(self._bucket, request)

        def call(*arguments: object, **named: object) -> object:
            self._step(f"{request} {arguments[0]}")
            found = ask(*arguments, **named)
            # A listing shows one moment, as a request's answer does.
            return iter(list(found)) if request in {"list", "written"} else found

        return call
