"""The bucket: its interface `Storage`, and the implementations for GCS and a directory."""

from jostler.storage.bucket import ObjectInfo, Storage, StoredObject, upload_id
from jostler.storage.opening import open_storage

__all__ = ["ObjectInfo", "Storage", "StoredObject", "open_storage", "upload_id"]
