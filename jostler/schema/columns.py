"""The columns that every table has, and the schemas of the datatypes that jostler itself writes.

**Invariant:** each column has a description, and none is REQUIRED, because BigQuery cannot add a
REQUIRED column to an existing table.

Pure: values only.
"""

from __future__ import annotations

from jostler.schema.fields import Field, Fields

_DATE = Field(
    name="date",
    type="DATE",
    description="Day of the directory yyyy/mm/dd that the file was found in; the partition.",
)
_ARCHIVER = Field(
    name="archiver",
    type="RECORD",
    description="Who archived the file, and where it is archived.",
    fields=(
        Field(name="Version", type="STRING", description="Program and version that archived it."),
        Field(name="GitCommit", type="STRING", description="Commit that program was built from."),
        Field(
            name="ArchiveURL", type="STRING", description="Object that holds the file's content."
        ),
        Field(
            name="Filename",
            type="STRING",
            description="Path of the file below its datatype's directory, yyyy/mm/dd/name.",
        ),
    ),
)


def table_schema(datatype_fields: Fields) -> Fields:
    """Put the standard columns around a datatype: `date`, `archiver`, and `raw` for its fields."""
    raw = Field(
        name="raw",
        type="RECORD",
        description="The file's content, unchanged.",
        fields=datatype_fields,
    )
    return (_DATE, _ARCHIVER, raw)


_FILENAME = Field(
    name="Filename",
    type="STRING",
    description="Path of the file below its datatype's directory, yyyy/mm/dd/name.",
)
_SIZE = Field(name="Size", type="INTEGER", description="Size of the file, in bytes.")
_TIME_ADDED = Field(name="TimeAdded", type="TIMESTAMP", description="When the agent took the file.")
_DATATYPE = Field(name="Datatype", type="STRING", description="Datatype of the file.")
_NODE = Field(name="Node", type="STRING", description="Node that the file was made on.")

INDEX1_FIELDS: Fields = (
    _FILENAME,
    _SIZE,
    _TIME_ADDED,
    _DATATYPE,
    _NODE,
    Field(
        name="ArchiveURL", type="STRING", description="Data bundle that holds the file's content."
    ),
    Field(name="Line", type="INTEGER", description="Line of the bundle, counted from 1."),
    Field(
        name="Hash",
        type="STRING",
        description="BLAKE2b digest of the column raw, 16 bytes in hexadecimal; of a rejected"
        " file that of Content.",
    ),
    Field(
        name="Offset",
        type="INTEGER",
        description="Where in the object, in bytes, the compressed block with the line begins.",
    ),
    Field(name="Length", type="INTEGER", description="Length of that block, in bytes."),
    Field(
        name="Start",
        type="TIMESTAMP",
        description="When what the file tells of began; if nothing says it, the file's mtime.",
    ),
    Field(name="End", type="TIMESTAMP", description="When it ended; null if nothing says it."),
    Field(
        name="WorkID",
        type="STRING",
        description="Job that made the file, [a-z0-9_-]+; null if nothing says it.",
    ),
)

REJECTED1_FIELDS: Fields = (
    _FILENAME,
    _SIZE,
    _TIME_ADDED,
    _DATATYPE,
    _NODE,
    Field(name="Reason", type="STRING", description="Why the file was refused, a short label."),
    Field(name="Detail", type="STRING", description="What was expected and what was found."),
    Field(
        name="Field",
        type="STRING",
        description="Path of the field at fault; empty when it is the whole file.",
    ),
    Field(
        name="Content",
        type="BYTES",
        description="The file's content from its beginning, up to a limit.",
    ),
)
