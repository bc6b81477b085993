"""The bucket: what it promises, and the two that keep the promise."""

from jostler.storage.bucket import ObjectInfo, Storage, Stored, upload_id
from jostler.storage.opening import open_storage

__all__ = ["ObjectInfo", "Storage", "Stored", "open_storage", "upload_id"]
