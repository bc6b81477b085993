"""Ten steps with pandas-gbq: read and write."""

from __future__ import annotations

import os
import uuid

import pandas as pd
import pandas_gbq
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from steps import run

URL = os.environ["BIGQUERY_EMULATOR_HOST"]
CLIENT = bigquery.Client("proj", AnonymousCredentials(), client_options={"api_endpoint": URL})
DATASET = f"gbq_{uuid.uuid4().hex[:8]}"
TABLE = f"{DATASET}.t"
FRAME = pd.DataFrame(
    {
        "n": [1, 2, 3],
        "f": [1.5, None, -2.0],
        "s": ["a", "ä", None],
        "b": [True, False, True],
        "at": pd.to_datetime(
            ["2022-09-29T10:00:00Z", "2022-09-30", None], utc=True, format="ISO8601"
        ),
    }
)


def read(sql: str, **more: object) -> pd.DataFrame:
    return pandas_gbq.read_gbq(
        sql, project_id="proj", bigquery_client=CLIENT, progress_bar_type=None, **more
    )


def write(frame: pd.DataFrame, table: str, **more: object) -> None:
    pandas_gbq.to_gbq(
        frame, table, project_id="proj", bigquery_client=CLIENT, progress_bar=False, **more
    )


def read_types() -> None:
    found = read("SELECT 1 AS n, 1.5 AS f, 'x' AS s, DATE '2022-09-29' AS d, TRUE AS b")
    assert found.n[0] == 1
    assert found.s[0] == "x"
    assert bool(found.b[0])


def write_new() -> None:
    write(FRAME, TABLE)
    assert CLIENT.get_table(TABLE).num_rows == 3


def read_back() -> None:
    found = read(f"SELECT * FROM {TABLE} ORDER BY n")
    assert list(found.n) == [1, 2, 3]
    assert found.s[1] == "ä"
    assert found["at"][0] == pd.Timestamp("2022-09-29T10:00:00Z")
    assert pd.isna(found.f[1])


def write_fails() -> None:
    try:
        write(FRAME, TABLE)
    except pandas_gbq.gbq.TableCreationError:
        return
    raise AssertionError("a second write was not refused")


def append() -> None:
    write(FRAME, TABLE, if_exists="append")
    assert CLIENT.get_table(TABLE).num_rows == 6


def replace() -> None:
    write(FRAME[["n"]], TABLE, if_exists="replace")
    assert [field.name for field in CLIENT.get_table(TABLE).schema] == ["n"]


def csv() -> None:
    write(FRAME[["n", "s"]], f"{DATASET}.c", api_method="load_csv")
    assert list(read(f"SELECT n FROM {DATASET}.c ORDER BY n").n) == [1, 2, 3]


def schema() -> None:
    given = [{"name": "n", "type": "NUMERIC"}]
    write(FRAME[["n"]].astype(object), f"{DATASET}.k", table_schema=given, api_method="load_csv")
    assert CLIENT.get_table(f"{DATASET}.k").schema[0].field_type == "NUMERIC"


def parameters() -> None:
    given = {
        "query": {
            "parameterMode": "NAMED",
            "queryParameters": [
                {
                    "name": "x",
                    "parameterType": {"type": "INT64"},
                    "parameterValue": {"value": "7"},
                }
            ],
        }
    }
    assert read("SELECT @x AS x", configuration=given).x[0] == 7


def read_table() -> None:
    assert len(read(f"{DATASET}.c")) == 3


if __name__ == "__main__":
    CLIENT.create_dataset(DATASET)
    run(
        "pandas-gbq",
        [
            ("read types", read_types),
            ("write a new table (Parquet)", write_new),
            ("read it back", read_back),
            ("a second write is refused", write_fails),
            ("append", append),
            ("replace", replace),
            ("write by CSV", csv),
            ("write with a schema", schema),
            ("query with a parameter", parameters),
            ("read a table by name", read_table),
        ],
    )
