"""What audit, delete and retention have in common: the places, the staging, who runs them."""

from __future__ import annotations

import getpass
import socket
from typing import TYPE_CHECKING

from jostler.archive.audit.scope import places_of
from jostler.errors import JostlerError
from jostler.storage import open_storage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostler.archive.audit.bigquery_tables import AuditTables
    from jostler.cli.archive_command import Archive
    from jostler.format.names import Place
    from jostler.storage import Storage

PATIENCE_S = 30.0
STAGING = "loader-staging"


def bucket_of(archive: Archive) -> Storage:
    """Return the bucket of -bucket.

    Raises:
        ValueError: it is missing or has a wrong form.
        JostlerError: it cannot be opened.
    """
    if not archive.values["bucket"]:
        raise ValueError("-bucket: required: the bucket of the archive")
    return archive.bucket(archive.values["bucket"])


def data_dirs_of(archive: Archive) -> Sequence[str]:
    """Return the directories of -gcs-data-dir: v1 goes with v2."""
    data_dir: str = archive.values["gcs-data-dir"]
    v2 = [f"{data_dir.removesuffix('v1')}v2"] if data_dir.endswith("v1") else []
    return [data_dir, *v2]


def kept_places(archive: Archive, storage: Storage) -> Sequence[Place]:
    """Return the places of -experiment, or of all experiments, that the bucket has.

    Without -organization these are those of all organizations.

    Raises:
        ValueError: a name is not allowed.
        JostlerError: the bucket cannot be listed.
    """
    values = archive.values
    named = archive.places() if values["experiment"] else ()
    found = places_of(storage, data_dirs_of(archive), [values["experiment"]] if named else [])
    wanted = values["organization"]
    return [
        *named,
        *(
            place
            for place in found
            if place not in named and (not wanted or place.organization in {wanted, ""})
        ),
    ]


def deleted_place(archive: Archive) -> Place:
    """Return the one place whose data is to be deleted.

    Searches take autoload/v1 for a part of each organization's data.  It has that of all, so it
    does not go with one of them.

    Raises:
        ValueError: a name is missing or not allowed.
    """
    (place,) = [
        one for one in archive.places() if one.organization == archive.values["organization"]
    ]
    return place


def staging_of(text: str, storage: Storage) -> tuple[Storage, str]:
    """Return the bucket of staging, and the prefix in it, empty or with a slash at its end.

    Args:
        text: the value of -staging; empty for the default.
        storage: the bucket of the archive.

    Raises:
        ValueError: the URL has a wrong form.
        JostlerError: the bucket cannot be opened.
    """
    url = text.rstrip("/") or f"{storage.url}/{STAGING}"
    if url.startswith("file:"):
        return open_storage(url), ""
    bucket, _, prefix = url.removeprefix("gs://").partition("/")
    own = f"gs://{bucket}" == storage.url
    return (storage if own else open_storage(bucket, PATIENCE_S)), f"{prefix}/" if prefix else ""


def who() -> str:
    """Return who runs this program, as `user@host`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = "?"
    return f"{user}@{socket.gethostname()}"


def tables_of(archive: Archive) -> AuditTables | None:
    """Return the tables in BigQuery; None without -project.

    Raises:
        ValueError: -naming is wrong.
        JostlerError: BigQuery's client is not installed, or there are no credentials.
    """
    values = archive.values
    if not values["project"]:
        return None
    try:
        from jostler.archive.audit.bigquery_tables import open_tables  # noqa: PLC0415 - an extra
    except ImportError as exc:
        hint = "pip install 'jostler[bigquery]'"
        raise JostlerError("google-cloud-bigquery is not installed", hint=hint) from exc
    made: AuditTables = archive.closing(
        open_tables(
            project=values["project"],
            location=values["location"],
            naming=values["naming"],
            meta_dataset=values["meta-dataset"],
            who=who(),
        )
    )
    return made
