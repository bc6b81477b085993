"""A receiver is told of each day once at least, with one id, and holds up no load."""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import json
import time
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from loader.bigquery import attempts
from loader.bigquery.partition_load import PartitionLoader
from loader.cli.main import main
from loader.notify import outbox, sending
from tests.loader.plain import load
from tests.loader.world import DAY, PLACE, row
from tests.support.receiver import ReceivingServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.loader.world import World

pytestmark = pytest.mark.long  # many loads, one after another

SECRET = b"a secret of the receiver"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "pause", lambda _: None)


@pytest.fixture
def hook() -> Iterator[ReceivingServer]:
    with ReceivingServer() as server:
        yield server


def notifications(world: World, state: str) -> list[dict[str, Any]]:
    sql = f"SELECT * FROM jostler.notifications WHERE State = '{state}' ORDER BY Written"
    return world.sql(sql)


def put_day(world: World, *lines: bytes, day: date = DAY) -> None:
    world.put_schema()
    for line in lines or (row(1, day=day),):
        world.put_bundle([line], day=day)


def test_a_loaded_day_is_one_cloud_event_with_the_ledgers_row(
    world: World, hook: ReceivingServer
) -> None:
    """In the structured JSON form of CloudEvents 1.0; a second run tells nothing new."""
    put_day(world)

    assert load(world, "--notify", hook.url).code == 0
    assert load(world, "--notify", hook.url).code == 0

    (request,) = hook.got
    (ledger,) = world.ledger()
    event = request.event
    assert request.headers["content-type"] == "application/cloudevents+json; charset=UTF-8"
    assert event["specversion"] == "1.0"
    assert event["type"] == "jostler.day.loaded"
    assert event["subject"] == f"{ledger['table']}/{DAY}"
    assert event["source"].endswith(f"projects/{world.project}/datasets/jostler/tables/loads")
    assert datetime.fromisoformat(event["time"]) == ledger["Finished"]
    assert event["datacontenttype"] == "application/json"
    assert all(name.isalnum() and name.islower() for name in event)  # as names of attributes are
    for name, value in ledger.items():
        if isinstance(value, str | int | None) and name != "Objects":
            assert event["data"][name] == value, name
    (told,) = notifications(world, "delivered")
    assert (told["EventID"], told["Answer"], told["Tries"]) == (event["id"], 204, 1)
    assert event["id"] == request.headers["webhook-id"]


def test_a_receiver_is_not_told_what_was_there_before_it(
    world: World, hook: ReceivingServer
) -> None:
    """Another receiver, which was there before, is told all."""
    put_day(world)
    other = DAY + timedelta(days=1)
    with ReceivingServer() as first:
        assert load(world, "--notify", first.url).code == 0
        put_day(world, day=other)

        assert load(world, "--notify", first.url, "--notify", hook.url).code == 0

        assert [event["data"]["date"] for event in first.events] == [str(DAY), str(other)]
    assert [event["data"]["date"] for event in hook.events] == [str(other)]


def test_a_refused_day_says_file_field_and_what_to_do(world: World, hook: ReceivingServer) -> None:
    """A sentence for the producer, a paragraph for the operator."""
    put_day(world, b"bad", row(1))

    assert load(world, "--notify", hook.url).code == 1

    (event,) = hook.events
    assert event["type"] == "jostler.day.refused"
    assert "1 of its 2 rows are bad" in event["summary"]
    assert "please mend what writes these files" in event["summary"]
    assert event["advice"].startswith("data: ")
    assert "line 1 of gs://" in event["advice"]
    assert "not-json" in event["advice"]
    assert "--max-bad-fraction" in event["advice"]


def test_a_day_that_would_lose_rows_is_told_once_and_again_when_it_is_well(
    world: World, hook: ReceivingServer
) -> None:
    """Each run refuses it anew, the ledger and the receiver are told once: under one id."""
    put_day(world)
    (first,) = world.names("autoload/v1/exp/foo1/")
    content = world.get(first)
    assert load(world).code == 0
    world.remove(first)
    put_day(world, row(2))
    hook.status = 500
    assert load(world, "--notify", hook.url).code == 1
    hook.status = 200
    assert load(world, "--notify", hook.url).code == 1
    delivered = len(hook.got)

    assert load(world, "--notify", hook.url).code == 1

    assert len(hook.got) == delivered
    assert len({event["id"] for event in hook.events}) == 1
    event = hook.events[-1]
    assert event["type"] == "jostler.day.refused"
    assert "1 of the 1 objects that it was loaded from are gone" in event["summary"]
    assert "--accept-deletions" in event["advice"]
    assert event["data"]["ErrorClass"] == "WouldLoseRows"
    assert [told["Status"] for told in world.ledger()] == ["success", "failed"]
    world.put(first, content)
    assert load(world, "--notify", hook.url).code == 0
    assert hook.events[-1]["type"] == "jostler.day.loaded"
    assert len(world.rows()) == 2
    world.remove(first)
    assert load(world, "--notify", hook.url).code == 1
    assert hook.events[-1]["type"] == "jostler.day.refused"
    assert hook.events[-1]["id"] != event["id"]


def test_a_day_whose_bucket_was_not_given_is_told_and_keeps_its_buckets(
    world: World, hook: ReceivingServer
) -> None:
    """The row that says so must not make the ledger forget where the day was loaded from."""
    put_day(world)
    other = world.storage.create_bucket(f"{world.bucket}-b")
    name = world.names("autoload/v1/exp/foo1/")[0].replace("node1", "node2")
    for blob, data in (
        (PLACE.table_schema("foo1"), world.get(PLACE.table_schema("foo1"))),
        (name, gzip.compress(row(2) + b"\n")),
    ):
        other.blob(blob).upload_from_string(data)
    assert load(world, "--bucket", world.url, "--bucket", f"gs://{other.name}").code == 0

    for _ in range(2):
        assert load(world, "--notify", hook.url).code == 1

    (event,) = hook.events
    assert event["type"] == "jostler.day.refused"
    assert f"gs://{other.name}" in event["summary"]
    assert event["data"]["Buckets"].split() == sorted([world.url, f"gs://{other.name}"])
    assert len(world.rows()) == 2


@pytest.mark.parametrize("flaw", ["no JSON", "other type"])
def test_a_datatype_whose_schema_is_wrong_is_told_once(
    world: World, hook: ReceivingServer, flaw: str
) -> None:
    """It is refused as a whole, by an event of the table; its asset names who is told, too."""
    put_day(world)
    assert load(world).code == 0
    schema = b"no JSON"
    if flaw == "other type":
        schema = world.get(PLACE.table_schema("foo1")).replace(b'"FLOAT"', b'"STRING"')
        assert b'"STRING"' in schema
    world.put(PLACE.table_schema("foo1"), schema)
    with ReceivingServer() as own:
        asset = {"revision": 1, "notify": [own.url]}
        world.put(f"autoload/v1/assets/{PLACE.experiment}.foo1.json", json.dumps(asset).encode())

        for _ in range(2):
            assert load(world, "--notify", hook.url).code == 1

        assert [event["id"] for event in own.events] == [event["id"] for event in hook.events]
    (event,) = hook.events
    assert event["type"] == "jostler.table.refused"
    assert event["subject"] == f"{world.project}.raw_exp.foo1"
    assert "foo1 as a whole was refused" in event["summary"]
    assert event["data"]["date"] is None
    assert event["advice"].startswith("schema: ")
    (told,) = [one for one in notifications(world, "delivered") if one["Receiver"]][:1]
    assert (told["date"], told["Type"]) == (None, "jostler.table.refused")


def test_a_day_that_the_loader_itself_fails_is_told_when_it_lasts(
    world: World, hook: ReceivingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake of ours is in the ledger as any failure, so three runs of it are an event."""
    put_day(world)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(PartitionLoader, "load", broken)
    for _ in range(3):
        assert load(world, "--notify", hook.url).code == 1

    (event,) = hook.events
    assert event["type"] == "jostler.day.failed"
    assert event["advice"].startswith("bug: ")
    assert "please report it" in event["summary"]


def test_a_day_that_fails_three_times_in_a_run_is_told_once(
    world: World, hook: ReceivingServer
) -> None:
    """`test_notifications_due` has the rule by whole histories."""
    put_day(world)
    world.fault("job_error", job="foo1-", reason="backendError", times=100)

    assert load(world, "--notify", hook.url).code == 1

    (event,) = hook.events
    assert event["type"] == "jostler.day.failed"
    assert event["data"]["Attempt"] == 3
    assert event["advice"].startswith("transient: ")
    assert "it is tried again by itself" in event["summary"]


def test_a_day_that_is_given_up_is_told(world: World, hook: ReceivingServer) -> None:
    put_day(world)
    for back in (30, 0):
        world.fault("job_error", job="foo1-", reason="invalid", times=1)
        assert load(world, "--notify", hook.url).code == 1
        failed = f"TIMESTAMP_SUB(Finished, INTERVAL {back} DAY)"
        world.sql(f"UPDATE jostler.loads SET Finished = {failed} WHERE Status = 'failed'")

    (event,) = hook.events
    assert event["type"] == "jostler.day.abandoned"
    assert "was given up" in event["summary"]
    assert "when somebody requests it" in event["advice"]


def test_what_was_not_delivered_goes_out_with_the_next_run_under_the_same_id(
    world: World, hook: ReceivingServer
) -> None:
    """A redirect is not followed: a receiver could lead the loader to any address."""
    put_day(world)
    hook.status = 307
    ran = load(world, "--notify", hook.url)
    assert ran.code == 0  # the load is not affected
    (waiting,) = notifications(world, "waiting")
    assert (waiting["Tries"], waiting["Answer"]) == (1, 307)
    assert "redirects are not followed" in waiting["Error"]
    hook.status = 200

    assert load(world, "--notify", hook.url).code == 0

    assert [request.path for request in hook.got] == ["/hook"] * 2
    assert [request.body for request in hook.got] == [hook.got[0].body] * 2
    (told,) = notifications(world, "delivered")
    assert (told["EventID"], told["Tries"]) == (waiting["EventID"], 2)
    assert {event["id"] for event in hook.events} == {told["EventID"]}


def test_a_run_that_dies_after_the_ledger_loses_no_event(
    world: World, hook: ReceivingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its outbox does nothing any more, as if it were killed; the next run finds the row."""
    put_day(world)
    with monkeypatch.context() as patch:
        patch.setattr(outbox.Outbox, "_pass", lambda _self, known: known)
        assert load(world, "--notify", hook.url).code == 0
    assert hook.got == []

    assert load(world, "--notify", hook.url).code == 0

    assert [event["type"] for event in hook.events] == ["jostler.day.loaded"]


def test_a_receiver_that_does_not_answer_holds_up_no_load_and_no_other(
    world: World, hook: ReceivingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the run waits for a bounded time; what is left goes out with the next run."""
    monkeypatch.setattr(outbox, "PASS_S", 0.3)
    monkeypatch.setattr(outbox, "GRACE_S", 3.0)
    monkeypatch.setattr(sending, "ANSWER_S", 600.0)
    put_day(world)
    with ReceivingServer() as slow:
        slow.hold.clear()
        began_s = time.monotonic()
        ran = load(world, "--notify", slow.url, "--notify", hook.url)
        spent_s = time.monotonic() - began_s
        assert ran.code == 0
        assert len(hook.got) == len(slow.got) == 1
        slow.hold.set()
        assert load(world, "--notify", slow.url, "--notify", hook.url).code == 0
        assert len({event["id"] for event in slow.events}) == 1
        assert len(slow.got) == 2
    assert spent_s < 300
    assert len(hook.got) == 1


def test_a_receiver_that_fails_again_and_again_is_left_alone_and_the_log_says_so(
    world: World, hook: ReceivingServer
) -> None:
    put_day(world)
    for back in range(1, 4):
        put_day(world, day=DAY - timedelta(days=back))
    hook.status = 404

    ran = load(world, "--notify", hook.url)

    assert ran.code == 0
    assert len(hook.got) == outbox.FAILURES_MAX
    assert len({row["EventID"] for row in notifications(world, "waiting")}) == 4
    (left,) = [event for event in ran.events if event["event"] == "notify.left"]
    assert "answers 404" in left["error"]


def test_requests_are_signed_with_the_receivers_own_secret(
    world: World, hook: ReceivingServer, tmp_path: Path
) -> None:
    """As Standard Webhooks signs; two secrets are two signatures while one is replaced."""
    put_day(world)
    file = tmp_path / "secrets"
    encoded = base64.b64encode(SECRET).decode()
    lines = ("# of the receivers", f"{hook.url} whsec_{encoded}", f"{hook.url} another-secret-too")
    file.write_text("\n".join((*lines, "* the-secret-of-all-others")))

    ran = load(world, "--notify", hook.url, "--notify-secrets", str(file))

    (request,) = hook.got
    head = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode()
    signatures = request.headers["webhook-signature"].split()
    keys = (SECRET, b"another-secret-too")
    digests = [hmac.new(key, head + request.body, hashlib.sha256).digest() for key in keys]
    assert signatures == [f"v1,{base64.b64encode(digest).decode()}" for digest in digests]
    shown = (
        ran.out
        + ran.err
        + json.dumps(world.sql("SELECT * FROM jostler.notifications"), default=str)
    )
    assert SECRET.decode() not in shown
    assert encoded not in shown
    assert "/hook" not in shown  # a path may be a secret


def test_no_secret_is_shown_anywhere(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tokens of URLs and signing secrets, when all is well, when receivers fail, and when asked."""
    token, key = "t0ken-of-a-url", "k3y-that-signs-requests"
    file, metrics = tmp_path / "secrets", tmp_path / "jostler.prom"
    file.write_text(f"* {key}\n")
    put_day(world)
    with ReceivingServer() as dead:
        pass  # nobody listens there any more
    with ReceivingServer(status=500) as failing, ReceivingServer() as good:
        urls = [f"{one.url}/{token}?key={token}" for one in (dead, failing, good)]
        wrong = f"https://user:{token}@x.example/{token}"
        asset = {"revision": 1, "notify": [urls[2], f"http://x.example/{token}"]}
        world.put("autoload/v1/assets/exp.foo1.json", json.dumps(asset).encode())
        asset = {"revision": 1, "notify": [wrong]}
        world.put("autoload/v1/assets/exp.json", json.dumps(asset).encode())
        words = ["--notify", urls[0], "--notify", urls[1], "--notify-secrets", str(file)]
        shown = [
            load(world, *words, "--metrics", f"file://{metrics}"),
            load(world, *words, "--dry-run"),
            load(world, *words, "--force"),
            load(world, *words, "--metrics", f"http://user:{token}@127.0.0.1:9/{token}"),
        ]
        assert {request.path for request in good.got} == {f"/hook/{token}?key={token}"}
        assert all("webhook-signature" in request.headers for request in good.got)
    assert any("notify.refused" in ran.err for ran in shown)
    assert any("exp.json" in ran.err for ran in shown)
    for more in ([], ["-v"], ["--format", "json"]):
        main(["status", "--project", world.project, *more])
    main(world.arguments("--notify", wrong, "--notify-secrets", str(tmp_path / "none")))
    told = capsys.readouterr()
    texts = [told.out, told.err, metrics.read_text(), *(ran.out + ran.err for ran in shown)]
    tables = [table.table_id for table in world.client.list_tables("jostler")]
    texts += [json.dumps(world.sql(f"SELECT * FROM jostler.{one}"), default=str) for one in tables]
    texts += [json.dumps(job.to_api_repr()) for job in world.client.list_jobs()]
    everything = "\n".join(texts)
    assert "127.0.0.1" in everything, "receivers are named by their hosts"
    for secret in (token, key, base64.b64encode(key.encode()).decode()):
        assert secret not in everything


def test_the_asset_of_a_datatype_names_receivers_and_a_bad_one_stops_nothing(
    world: World, hook: ReceivingServer
) -> None:
    put_day(world)
    asset = {"revision": 1, "notify": ["http://example.org/token", hook.url]}
    world.put(f"autoload/v1/assets/{PLACE.experiment}.json", json.dumps(asset).encode())

    ran = load(world)

    assert ran.code == 0
    assert [event["type"] for event in hook.events] == ["jostler.day.loaded"]
    (refused,) = [event for event in ran.events if event["event"] == "notify.refused"]
    assert "must be https" in refused["error"]
    assert "token" not in ran.err


def test_what_waits_for_a_week_expires(
    world: World, hook: ReceivingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_day(world)
    hook.status = 500
    load(world, "--notify", hook.url)
    monkeypatch.setattr(outbox, "KEEP", timedelta(seconds=0.01))
    monkeypatch.setattr(outbox, "LOOK_BACK", timedelta(days=14))
    hook.status = 200

    load(world, "--notify", hook.url)

    assert len(hook.got) == 1
    assert len(notifications(world, "expired")) == 1


def test_a_notifications_table_that_cannot_be_used_affects_no_load(
    world: World, hook: ReceivingServer
) -> None:
    put_day(world)
    world.fault("job_error", job="-notifications-", reason="accessDenied", times=1000)

    ran = load(world, "--notify", hook.url)

    assert ran.code == 0
    assert any(event["event"] == "notify.failed" for event in ran.events)
    assert hook.got == []  # who is told is recorded first
