"""Ten steps with sqlalchemy-bigquery."""

from __future__ import annotations

import datetime
import os
import uuid

import sqlalchemy as sa
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from sqlalchemy import orm
from steps import run

URL = os.environ["BIGQUERY_EMULATOR_HOST"]
DATASET = f"sa_{uuid.uuid4().hex[:8]}"
CLIENT = bigquery.Client(
    "proj",
    AnonymousCredentials(),
    client_options={"api_endpoint": URL},
    default_query_job_config=bigquery.QueryJobConfig(default_dataset=f"proj.{DATASET}"),
)
ENGINE = sa.create_engine(
    f"bigquery://proj/{DATASET}?user_supplied_client=True", connect_args={"client": CLIENT}
)
META = sa.MetaData()
TABLE = sa.Table(
    "people",
    META,
    sa.Column("id", sa.Integer),
    sa.Column("name", sa.String),
    sa.Column("score", sa.Float),
    sa.Column("born", sa.Date),
    sa.Column("seen", sa.TIMESTAMP),
    bigquery_description="people",
)
DAY = datetime.date(2022, 9, 29)


def query(sql: sa.Executable) -> list[sa.Row]:
    with ENGINE.connect() as connection:
        return list(connection.execute(sql))


def create_all() -> None:
    META.create_all(ENGINE)
    assert CLIENT.get_table(f"{DATASET}.people").description == "people"


def inspect() -> None:
    found = sa.inspect(ENGINE)
    assert found.get_table_names() == ["people"], found.get_table_names()
    assert [column["name"] for column in found.get_columns("people")] == [
        "id", "name", "score", "born", "seen",
    ]  # fmt: skip
    assert found.has_table("people")


def insert() -> None:
    with ENGINE.begin() as connection:
        connection.execute(TABLE.insert().values(id=1, name="a", score=1.5, born=DAY))


def insert_many() -> None:
    rows = [{"id": n, "name": f"p{n}", "score": n / 2} for n in (2, 3)]
    with ENGINE.begin() as connection:
        connection.execute(TABLE.insert(), rows)


def select() -> None:
    rows = query(sa.select(TABLE).where(TABLE.c.id == 1))
    assert rows == [(1, "a", 1.5, DAY, None)], rows


def aggregate() -> None:
    rows = query(
        sa.select(sa.func.count().label("n"), sa.func.sum(TABLE.c.score).label("total")).where(
            TABLE.c.name.in_(["a", "p2", "p3"])
        )
    )
    assert rows == [(3, 4.0)], rows


def join() -> None:
    other = TABLE.alias("other")
    sql = (
        sa.select(TABLE.c.id, other.c.id.label("next"))
        .join(other, other.c.id == TABLE.c.id + 1)
        .order_by(TABLE.c.id)
    )
    assert query(sql) == [(1, 2), (2, 3)]


def update() -> None:
    with ENGINE.begin() as connection:
        done = connection.execute(TABLE.update().where(TABLE.c.id == 2).values(name="z"))
        assert done.rowcount == 1, done.rowcount
    assert query(sa.select(TABLE.c.name).where(TABLE.c.id == 2)) == [("z",)]


class Base(orm.DeclarativeBase):
    pass


class Person(Base):
    __tablename__ = "people"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str]


def session() -> None:
    with orm.Session(ENGINE) as opened:
        opened.add(Person(id=9, name="nine"))
        opened.commit()
        assert opened.scalars(sa.select(Person).where(Person.id == 9)).one().name == "nine"


def drop_all() -> None:
    with ENGINE.begin() as connection:
        connection.execute(TABLE.delete().where(TABLE.c.id == 3))
    META.drop_all(ENGINE)
    assert not sa.inspect(ENGINE).has_table("people")


if __name__ == "__main__":
    CLIENT.create_dataset(DATASET)
    run(
        "sqlalchemy-bigquery",
        [
            ("create_all", create_all),
            ("inspect", inspect),
            ("insert", insert),
            ("insert many", insert_many),
            ("select", select),
            ("aggregate with IN", aggregate),
            ("join", join),
            ("update", update),
            ("ORM session", session),
            ("delete, drop_all", drop_all),
        ],
    )
