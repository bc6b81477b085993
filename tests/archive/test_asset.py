"""`jostler asset`: what people see of assets, store of them, and give access by."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from jostler.cli.asset import FLAGS, PLACES, commands
from jostler.cli.main import main
from jostler.format.names import Place
from jostler.schema import Asset, parse_asset_file
from tests.support.bucket import url_of

PLACE = Place(data_dir="autoload/v1", organization="", experiment="exp")


class Desk:
    """A person's directory of asset files, and a bucket."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self.url = url_of(root / "bucket")
        self._capsys = capsys

    def file(self, name: str, **asset: Any) -> str:  # noqa: ANN401 - JSON
        path = self.root / f"{name}.asset.json"
        path.write_text(json.dumps(asset))
        return str(path)

    def run(self, verb: str, *words: str, bucket: bool = True) -> tuple[int, list[str], str]:
        where = ["-bucket", self.url] if bucket else []
        status = main(["asset", verb, *where, *words])
        out, err = self._capsys.readouterr()
        return status, out.splitlines(), err


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    (tmp_path / "bucket").mkdir()
    return Desk(tmp_path, capsys)


def test_check_tells_each_problem_with_its_path(desk: Desk) -> None:
    """Of each file, without a bucket too; a good one beside it is good."""
    good = desk.file("exp", revision=1)
    bad = desk.file("exp.foo1", revision=0, consumers=["x"])
    odd = str(desk.root / "exp.json")
    status, lines, _ = desk.run(
        "check", good, bad, odd, str(desk.root / "no.asset.json"), bucket=False
    )
    assert status == 1
    assert lines[0] == f"ok {good}: revision 1"
    assert lines[1].startswith(f"WRONG {bad}: consumers[0]: expected user:, group: or")
    assert lines[2] == f"WRONG {bad}: revision: expected an integer of at least 1, found 0"
    assert lines[3].startswith(f"WRONG {odd}: ")
    assert lines[4].endswith("No such file or directory")
    assert desk.run("check", good, bucket=False)[0] == 0


def test_put_stores_what_is_newer_and_check_says_before_what_it_would_do(desk: Desk) -> None:
    """An older file, or another one of the same revision, is left, with the reason."""
    steps: list[tuple[int, str, str, int]] = [
        (1, "a", "is new, revision 1", 0),
        (1, "a", "is in the bucket, revision 1", 0),
        (1, "b", "says something else than revision 1 of the bucket: raise its revision", 1),
        (3, "b", "replaces revision 1 of the bucket", 0),
        (2, "c", "is older than revision 3 of the bucket", 1),
    ]
    for revision, owner, told, ends in steps:
        path = desk.file("exp.foo1", revision=revision, owner=owner)
        status, (checked,), _ = desk.run("check", path)
        assert status == ends
        assert told.startswith("is new") or told in checked
        status, (line,), _ = desk.run("put", path)
        assert (status, line.partition(f"{path}: ")[2]) == (ends, told)
    stored = desk.root / "bucket/autoload/v1/assets/exp.foo1.json"
    assert json.loads(stored.read_bytes()) == {"revision": 3, "owner": "b"}


def test_show_prints_what_counts(desk: Desk) -> None:
    """A datatype's with what its experiment says; what cannot be read is told, with status 1."""
    desk.run("put", desk.file("exp", revision=4, owner="ops", share=0.5))
    desk.run("put", desk.file("exp.foo1", revision=1, share=0.1))
    desk.run("put", desk.file("two", revision=1), "-organization", "org")

    status, lines, _ = desk.run("show")
    assert status == 0
    heads = [line for line in lines if not line.startswith(" ")]
    assert heads == [
        "exp: revision 4",
        "exp/foo1: revision 1; of its experiment: owner",
        "org/two: revision 1",
    ]
    text = "\n".join(lines[lines.index(heads[1]) + 1 : lines.index(heads[2])])
    assert json.loads(text) == {"revision": 1, "owner": "ops", "share": 0.1}
    status, lines, _ = desk.run("show", "-experiment", "exp", "-datatype", "foo1")
    assert (status, lines[0]) == (0, heads[1])
    status, lines, _ = desk.run("show", "-experiment", "exp", "-datatype", "bar1")
    assert (status, lines[0]) == (
        0,
        "exp/bar1: no asset of its own; of its experiment: owner, share",
    )
    status, lines, err = desk.run("show", "-experiment", "none")
    assert (status, lines, "there is no such asset" in err) == (0, [], True)

    (desk.root / "bucket/autoload/v1/assets/exp.json").write_text("[]")
    status, _, err = desk.run("show")
    assert status == 1
    assert "exp.json: is not an asset: (file): expected object, found []" in err


def test_show_masks_addresses_and_stores_them_whole(desk: Desk) -> None:
    """Their paths may hold tokens; whoever may read the bucket has them all the same."""
    file = desk.file("exp", revision=1, notify=["https://x.org/t0ken?key=t0ken"])
    assert desk.run("put", file)[0] == 0

    _, lines, err = desk.run("show")

    assert "https://x.org/…" in "".join(lines)
    assert "t0ken" not in "".join(lines) + err
    (stored,) = (desk.root / "bucket").rglob("autoload/v1/assets/exp.json")
    assert "https://x.org/t0ken?key=t0ken" in stored.read_text()


def test_the_commands_for_access_name_only_what_is_the_assets(tmp_path: Path, desk: Desk) -> None:
    """A shell gives gcloud each of them whole; a datatype's include the folder of indexes."""
    asset = Asset(
        revision=1,
        producers=("serviceAccount:a@p.iam.gserviceaccount.com",),
        consumers=("domain:x.org", "user:o'neil@x.org"),
    )
    program = tmp_path / "gcloud"
    program.write_text('#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word"; done; echo --\n')
    program.chmod(0o755)
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    script = "\n".join(commands("gs://archive", PLACE, "foo1", asset))
    done = subprocess.run(
        ["sh", "-eu"], input=script, capture_output=True, text=True, env=environ, check=True
    )
    given = [part.splitlines() for part in done.stdout.split("--\n") if part.strip()]
    roles = [(words[4], words[5]) for words in given]
    assert roles == [
        (f"--member={asset.producers[0]}", "--role=roles/storage.objectCreator"),  # type: ignore[index]
        (f"--member={asset.producers[0]}", "--role=roles/storage.objectViewer"),  # type: ignore[index]
        ("--member=domain:x.org", "--role=roles/storage.objectViewer"),
        ("--member=user:o'neil@x.org", "--role=roles/storage.objectViewer"),
    ]
    for words in given:
        assert words[:4] == ["storage", "buckets", "add-iam-policy-binding", "gs://archive"]
        for folder in ("foo1", "index1"):
            assert f"/buckets/archive/objects/autoload/v1/exp/{folder}/" in words[6]
    whole = shlex.split(commands("gs://archive", PLACE, "", asset)[1])[-1]
    assert 'startsWith("projects/_/buckets/archive/objects/autoload/v1/exp/")' in whole

    desk.run("put", desk.file("exp", revision=1, consumers=["domain:x.org"]))
    status, lines, _ = desk.run("show", "-commands")
    assert (status, lines) == (0, [f"# {desk.url} is a directory: use its permissions"])


@pytest.mark.parametrize(
    "words",
    [[], ["show", "file"], ["put"], ["check"], ["get"], ["put", "-commands", "x.asset.json"]],
)
def test_wrong_use_is_told(desk: Desk, words: list[str]) -> None:
    """With status 2."""
    assert main(["asset", "-bucket", desk.url, *words]) == 2


def test_the_page_has_a_good_asset_all_fields_and_all_flags() -> None:
    """As the code has them."""
    page = (Path(__file__).parents[2] / "docs/assets.md").read_text()
    example = re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0]
    names = {field.name for field in fields(Asset)}
    assert set(parse_asset_file(example.encode(), source="page").to_api()) == names
    first, last = (re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE)[at] for at in (0, -2))
    cells = [line.split("|")[1].strip(" `") for line in first.splitlines()[2:]]
    assert sorted(cells) == sorted(names)
    flags = [line.split("|")[1].strip(" `-") for line in last.splitlines()[2:]]
    assert flags == [flag.name for flag in FLAGS]
    assert all(f"`-{flag.name}`" in page for flag in PLACES)
