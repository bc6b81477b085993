"""Nothing found is an error that says what was looked for, unless --allow-empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.loader.plain import load
from tests.loader.test_load import names
from tests.loader.world import row

if TYPE_CHECKING:
    from pathlib import Path

    from tests.loader.world import World

MODES = [[], ["--dry-run"], ["--verify-only"]]


def told(world: World, *more: str) -> tuple[int, str]:
    """Run the loader as its command does; return exit status and all that it says."""
    ran = load(world, *more)
    return ran.code, ran.out + ran.err


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize(
    ("more", "what"),
    [
        (["--experiment=exq"], "no table schema of experiment exq; did you mean exp?"),
        (["--datatype=foo2"], "no table schema of datatype foo2; did you mean foo1?"),
    ],
)
def test_a_misspelt_name_is_an_error(
    world: World, mode: list[str], more: list[str], what: str
) -> None:
    world.put_schema()

    assert load(world, *mode, *more, "--allow-empty").code == 0
    code, said = told(world, *mode, *more)

    assert code == 1
    assert what in said


def test_a_misspelt_name_beside_a_right_one_stops_nothing(world: World) -> None:
    world.put_schema()
    world.put_bundle([row(1)])

    assert load(world, "--experiment=exp", "--experiment=exq").code == 1
    assert world.rows() == names(1)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_an_empty_bucket_is_an_error(world: World, mode: list[str]) -> None:
    code, said = told(world, *mode)

    assert code == 1
    assert f"{world.url}: no table schema below autoload/v1/tables/ or autoload/v2/tables/" in said
    assert load(world, *mode, "--allow-empty").code == 0


@pytest.mark.parametrize("scheme", ["gs", "file"])
def test_a_missing_bucket_is_called_so(world: World, tmp_path: Path, scheme: str) -> None:
    url = "gs://no-such-bucket" if scheme == "gs" else (tmp_path / "nosuch").as_uri()

    code, said = told(world, "--bucket", url)

    assert code == 1
    assert f"{url}: there is no such bucket" in said
    assert load(world, "--bucket", url, "--allow-empty").code == 0
    world.put_schema()
    world.put_bundle([row(1)])
    both = ["--bucket", url, "--bucket", world.url]
    assert load(world, *both, "--allow-empty").code == 0
    assert world.rows() == names(1)
