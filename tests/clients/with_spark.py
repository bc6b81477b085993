"""Ten steps with Spark's BigQuery connector, which insists on TLS: the script is its own CA."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from steps import run

JARS = Path(sys.prefix).parent / "jars"
ROOT = Path(__file__).parents[2]
HOME = Path(tempfile.mkdtemp())
DATASET = f"spark_{uuid.uuid4().hex[:8]}"
PASSWORD = "changeit"
DAY = datetime.date(2026, 1, 2)


def certificate() -> None:
    """Make a certificate for this machine, and a truststore for Java that holds it."""
    key, cert = str(HOME / "key.pem"), str(HOME / "cert.pem")
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-keyout", key, "-out", cert, "-subj", "/CN=localhost", "-addext", names),
        ],
        check=True,
        capture_output=True,
    )
    (HOME / "both.pem").write_bytes(Path(key).read_bytes() + Path(cert).read_bytes())
    subprocess.run(
        [
            *("keytool", "-importcert", "-noprompt", "-alias", "local", "-file", cert),
            *("-keystore", str(HOME / "trust.jks"), "-storepass", PASSWORD),
        ],
        check=True,
        capture_output=True,
    )


def session() -> SparkSession:
    java = (
        f"-Djavax.net.ssl.trustStore={HOME}/trust.jks -Djavax.net.ssl.trustStorePassword={PASSWORD}"
    )
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", java)
        .config("spark.jars", ",".join(map(str, JARS.glob("*.jar"))))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def options(**more: str) -> dict[str, str]:
    """Return the options of each read and write: where the servers are, and no credentials."""
    return {
        "parentProject": "proj",
        "gcpAccessToken": "none",
        "bigQueryHttpEndpoint": URL,
        "bigQueryStorageGrpcEndpoint": GRPC,
        **more,
    }


def table(name: str = "t", **more: str) -> DataFrame:
    found = SPARK.read.format("bigquery").options(**options(**more))
    return found.load(f"proj.{DATASET}.{name}")


def prepare() -> None:
    CLIENT.create_dataset(DATASET)
    CLIENT.query_and_wait(
        f"CREATE TABLE {DATASET}.t (n INT64, s STRING, day DATE, at TIMESTAMP, c NUMERIC,"
        " y BYTES, raw STRUCT<f FLOAT64, l ARRAY<STRUCT<k STRING, v INT64>>>)"
        " PARTITION BY day OPTIONS (require_partition_filter = TRUE) AS"
        " SELECT n, IF(n = 3, NULL, CAST(n AS STRING)), DATE_ADD(DATE '2026-01-02', INTERVAL"
        " CAST(n >= 50 AS INT64) DAY), TIMESTAMP '2026-01-02 03:04:05.123456',"
        " NUMERIC '1.5', b'x', STRUCT(n / 4 AS f, [STRUCT('k' AS k, n AS v)] AS l)"
        " FROM UNNEST(GENERATE_ARRAY(1, 100)) AS n"
    )


def schema() -> None:
    kinds = dict(table().dtypes)
    assert kinds["raw"] == "struct<f:double,l:array<struct<k:string,v:bigint>>>", kinds
    assert (kinds["day"], kinds["at"], kinds["c"]) == ("date", "timestamp", "decimal(38,9)"), kinds


def values() -> None:
    (row,) = table().where(f"day = '{DAY}' AND n = 1").collect()
    at = row["at"].replace(tzinfo=None)
    assert (row.n, row.s, row.day, float(row.c), bytes(row.y)) == (1, "1", DAY, 1.5, b"x"), row
    assert at.microsecond == 123456, at
    assert row.raw == Row(f=0.25, l=[Row(k="k", v=1)]), row.raw


def counted() -> None:
    assert table(filter=f"day = '{DAY}'").count() == 49


def refused() -> None:
    said = ""
    try:
        table().select("n").collect()
    except Exception as exc:
        said = str(exc)
    if "partition" not in said:
        raise AssertionError(f"a read without a partition filter was not refused: {said}")


def filtered() -> None:
    found = table().where(F.col("day") >= F.lit(DAY)).where("n IN (3, 60, 61) AND s LIKE '6%'")
    assert sorted(row.n for row in found.select("n").collect()) == [60, 61]
    empty = table().where(f"day = '{DAY}' AND s IS NULL").select("n")
    assert [row.n for row in empty.collect()] == [3]


def nested() -> None:
    items = table().where(f"day > '{DAY}'").select(F.explode("raw.l").alias("item"))
    assert items.agg(F.sum("item.v")).collect()[0][0] == sum(range(50, 101))


def joined() -> None:
    days = table(preferredMinParallelism="2").where(f"day >= '{DAY}'")
    sums = days.groupBy("day").agg(F.sum("n").alias("total"))
    found = days.join(sums, "day").where("n IN (1, 100)").select("n", "total")
    assert sorted(map(tuple, found.collect())) == [(1, 1225), (100, 3825)]


def view() -> None:
    sql = f"SELECT n * 2 AS m FROM {DATASET}.t WHERE day = '{DAY}'"
    CLIENT.query_and_wait(f"CREATE VIEW {DATASET}.v AS {sql}")
    found = table("v", viewsEnabled="true", materializationDataset=DATASET)
    assert found.agg(F.max("m")).collect()[0][0] == 98


def query() -> None:
    sql = f"SELECT MAX(n) AS n FROM `proj.{DATASET}.t` WHERE day = '{DAY}'"
    more = options(viewsEnabled="true", materializationDataset=DATASET)
    found = SPARK.read.format("bigquery").options(**more).option("query", sql).load()
    assert [row.n for row in found.collect()] == [49]


def write() -> None:
    """Write by way of Parquet files, which a load job reads; the server takes file: URIs."""
    more = options(writeMethod="indirect", temporaryGcsBucket=f"file://{HOME}")
    frame = SPARK.createDataFrame([(1, "a"), (2, None)], "n LONG, s STRING")
    for _ in range(2):
        frame.write.format("bigquery").options(**more).mode("append").save(f"proj.{DATASET}.w")
    rows = CLIENT.query_and_wait(f"SELECT n, s FROM {DATASET}.w ORDER BY n")
    assert [tuple(row) for row in rows] == [(1, "a"), (1, "a"), (2, None), (2, None)]


if __name__ == "__main__":
    certificate()
    server = subprocess.Popen(
        [
            *(os.environ["SERVER_PYTHON"], "-m", "embedded", "--data-dir", str(HOME / "bigquery")),
            *("--port", "0", "--storage-port", "0", "--storage-cert", str(HOME / "both.pem")),
        ],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        URL = line.split("listens on ")[1].split(",")[0]
        GRPC = line.split("Storage Read API on ")[1].split(";")[0]
        CLIENT = bigquery.Client(
            "proj", AnonymousCredentials(), client_options={"api_endpoint": URL}
        )
        SPARK = session()
        prepare()
        run(
            "Spark's BigQuery connector",
            [
                ("columns of a table", schema),
                ("values of all types", values),
                ("count with a filter option", counted),
                ("a read without a partition filter is refused", refused),
                ("filters that go to the server", filtered),
                ("nested and repeated columns", nested),
                ("group and join", joined),
                ("read a view", view),
                ("read a query", query),
                ("write, twice (Parquet)", write),
            ],
        )
    finally:
        server.terminate()
        server.wait()
