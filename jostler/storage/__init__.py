"""The bucket: what it promises, and the two that keep the promise."""

from jostler.storage.bucket import ObjectInfo, Storage, StoredObject, upload_id
from jostler.storage.opening import open_storage

__all__ = ["ObjectInfo", "Storage", "StoredObject", "open_storage", "upload_id"]
