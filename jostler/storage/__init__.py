"""The bucket: its interface `Storage`, and the implementations for GCS and a directory."""

from jostler.storage.bucket import ObjectInfo, Storage, StoredObject, new_upload_id, upload_id
from jostler.storage.opening import Buckets, open_storage

__all__ = [
    "Buckets",
    "ObjectInfo",
    "Storage",
    "StoredObject",
    "new_upload_id",
    "open_storage",
    "upload_id",
]
