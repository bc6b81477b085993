"""Ten steps with ibis."""

from __future__ import annotations

import os
import uuid

import ibis
import pandas as pd
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from steps import run

URL = os.environ["BIGQUERY_EMULATOR_HOST"]
DATASET = f"ibis_{uuid.uuid4().hex[:8]}"
CLIENT = bigquery.Client("proj", AnonymousCredentials(), client_options={"api_endpoint": URL})
KEPT: dict[str, ibis.BaseBackend] = {}
FRAME = pd.DataFrame({"n": [1, 2, 3], "s": ["a", "b", "b"], "f": [0.5, 1.5, 2.5]})


def storage() -> object:
    """Return a client of the Storage Read API, which ibis needs."""
    import grpc
    from google.cloud import bigquery_storage_v1
    from google.cloud.bigquery_storage_v1.services.big_query_read.transports import (
        BigQueryReadGrpcTransport,
    )

    address = os.environ.get("STORAGE_GRPC")
    if not address:
        return None
    transport = BigQueryReadGrpcTransport(channel=grpc.insecure_channel(address))
    return bigquery_storage_v1.BigQueryReadClient(transport=transport)


def connect() -> None:
    KEPT["con"] = ibis.bigquery.connect(
        "proj", DATASET, AnonymousCredentials(), client=CLIENT, storage_client=storage()
    )


def table() -> ibis.Table:
    return KEPT["con"].table("t")


def create() -> None:
    KEPT["con"].create_table("t", schema=ibis.schema({"n": "int64", "s": "string", "f": "float64"}))


def insert() -> None:
    KEPT["con"].insert("t", FRAME)
    assert CLIENT.get_table(f"{DATASET}.t").num_rows == 3


def listed() -> None:
    assert KEPT["con"].list_tables() == ["t"], KEPT["con"].list_tables()


def fetch() -> None:
    found = table().order_by("n").execute()
    assert list(found.s) == ["a", "b", "b"]


def filtered() -> None:
    kept = table().filter(table().n > 1).select("n").order_by("n")
    assert list(kept.execute().n) == [2, 3]


def grouped() -> None:
    by = table().group_by("s").agg(total=table().f.sum()).order_by("s")
    assert list(by.execute().total) == [0.5, 4.0]


def arrow() -> None:
    assert table().to_pyarrow().num_rows == 3


def from_query() -> None:
    KEPT["con"].create_table("u", table().mutate(m=table().n * 2))
    assert list(KEPT["con"].table("u").order_by("n").m.execute()) == [2, 4, 6]


def view_and_drop() -> None:
    con = KEPT["con"]
    con.create_view("v", table().select("n"))
    assert con.table("v").count().execute() == 3
    con.drop_view("v")
    con.drop_table("u")
    assert con.list_tables() == ["t"], con.list_tables()


if __name__ == "__main__":
    CLIENT.create_dataset(DATASET)
    run(
        "ibis",
        [
            ("connect", connect),
            ("create a table", create),
            ("insert a frame", insert),
            ("list tables", listed),
            ("read into pandas", fetch),
            ("filter", filtered),
            ("group", grouped),
            ("read into Arrow", arrow),
            ("create a table of a query", from_query),
            ("view, drop", view_and_drop),
        ],
    )
