"""The OpenAPI 3.1 document of the API; a test holds it to the routes and to real answers.

Pure.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
_MS = "milliseconds since 1970"


def _parameter(name: str, about: str, kind: str = "string", *, where: str = "query") -> Json:
    required = {"required": True} if where == "path" else {}
    return {
        "name": name,
        "in": where,
        "description": about,
        "schema": {"type": kind},
        **required,
    }


def _answer(about: str, schema: str) -> Json:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": about, "content": content}


def _get(about: str, ok: Json, parameters: list[Json] | None = None) -> Json:
    return {
        "get": {
            "summary": about,
            "parameters": parameters or [],
            "responses": {"200": ok, "default": _answer("what is wrong", "Error")},
        }
    }


_NULLABLE = {"type": ["string", "null"]}
_RECORD: Json = {
    "id": {"type": "string", "description": "names this file in the paths of the API"},
    "what": {"type": "string", "description": "datatype"},
    "where": {"type": "string", "description": "node"},
    "filename": {"type": "string", "description": "path below the datatype's directory"},
    "start": {"type": "integer", "description": f"first instant, {_MS}"},
    "end": {"type": "integer", "description": f"last instant, {_MS}"},
    "start_iso": {"type": "string", "format": "date-time"},
    "end_iso": {"type": "string", "format": "date-time"},
    "added": {"type": "integer", "description": f"when the agent read the file, {_MS}"},
    "added_iso": {"type": "string", "format": "date-time"},
    "work_id": {**_NULLABLE, "description": "the job that it belongs to"},
    "size": {"type": "integer", "description": "bytes of the file on the node"},
    "hash": {"type": "string", "description": "BLAKE2b of 16 bytes, hexadecimal; may be empty"},
    "bundle": {"type": "string", "description": "URL of the data object"},
    "line": {"type": "integer", "description": "line in the data object, from 1"},
    "address": {"type": "string", "description": "what `jostler cat` and `jostler fetch` take"},
    "metadata": {"type": "string", "description": "path of this record"},
    "data": {"type": "string", "description": "path of the file's content"},
}
_SCHEMAS: Json = {
    "File": {"type": "object", "required": list(_RECORD), "properties": _RECORD},
    "Files": {
        "type": "object",
        "required": ["files", "next", "problems"],
        "properties": {
            "files": {
                "type": "array",
                "maxItems": 100,
                "items": {"$ref": "#/components/schemas/File"},
            },
            "next": {**_NULLABLE, "description": "path of the next page; null on the last"},
            "problems": {
                "type": "array",
                "items": {"type": "string"},
                "description": "parts of the archive that could not be searched",
            },
        },
    },
    "Environment": {
        "type": "object",
        "required": ["name", "version", "commit", "archive", "now"],
        "properties": {
            **{key: {"type": "string"} for key in ("name", "version", "commit", "archive")},
            "now": {"type": "integer", "description": _MS},
        },
    },
    "Health": {
        "type": "object",
        "required": ["status", "problems"],
        "properties": {
            "status": {"enum": ["ok", "degraded"]},
            "problems": {"type": "array", "items": {"type": "string"}},
        },
    },
    "Error": {
        "type": "object",
        "required": ["code", "message"],
        "properties": {
            "code": {
                "type": "string",
                "description": "NoArgs, NoWhat, NoWorkInterval, InvalidWorkInterval, InvalidTime, "
                "InvalidCursor, InvalidLookback (400); NoSuchFile, NoSuchPage (404); NotAllowed "
                "(405); TooLong (414); Misdirected (421); Failed (500); ArchiveError (502); "
                "Busy (503); TooSlow (504)",
            },
            "message": {"type": "string"},
        },
    },
}
_ID = _parameter("id", "id of a record", where="path")

DOCUMENT: Json = {
    "openapi": "3.1.0",
    "info": {
        "title": "jostler archive",
        "version": "0",
        "description": "Finds and gives back stored files.  It only reads.",
    },
    "paths": {
        "/v0/archive/files/": _get(
            "Files of datatypes, by work id or by time, at most 100 a page",
            _answer("one page", "Files"),
            [
                _parameter("what", "datatype, or several with commas; required"),
                _parameter("where", "node, or several with commas; all if not given"),
                _parameter("work_id", "the job; goes without start and end"),
                _parameter("start", f"{_MS}; files that end before are left out", "integer"),
                _parameter("end", f"{_MS}; files that begin after are left out", "integer"),
                _parameter("cursor", "from `next`"),
            ],
        ),
        "/v0/archive/files/{id}/metadata": _get("One record", _answer("it", "File"), [_ID]),
        "/v0/archive/files/{id}/data": _get(
            "The content of a file, verified against its hash",
            {"description": "its bytes; the content type is guessed", "content": {"*/*": {}}},
            [_ID],
        ),
        "/v0/archive/latest/{what}/{where}": _get(
            "The newest file of a datatype and node: the greatest start, then the greatest added; "
            "files that begin more than 24 hours ahead of the clock are passed over",
            _answer("its record", "File"),
            [
                _parameter("what", "datatype", where="path"),
                _parameter("where", "node", where="path"),
                _parameter(
                    "lookback", "milliseconds to look back, 14 days if not given", "integer"
                ),
            ],
        ),
        "/v0/environment/": _get("What serves this archive", _answer("it", "Environment")),
        "/health/": _get("Whether all could be read lately", _answer("it", "Health")),
        "/openapi.json": _get(
            "This document", {"description": "it", "content": {"application/json": {}}}
        ),
    },
    "components": {"schemas": _SCHEMAS},
}
