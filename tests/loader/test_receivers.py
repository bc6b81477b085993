"""Which URLs are told, by which secrets; nothing of them is shown that may be secret."""

from __future__ import annotations

import base64
from datetime import date
from typing import TYPE_CHECKING

import pytest

from jostler.format.urls import masked
from loader.cli.main import main
from loader.cli.options import parse
from loader.errors import UsageError
from loader.notify.receivers import Receiver, receiver, secrets_from

if TYPE_CHECKING:
    from pathlib import Path

NEEDED = ("--bucket", "gs://bucket", "--project", "proj")
TOKEN = "t0ps3cr3t"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        (f"ftp://x.example/{TOKEN}", "is not https://HOST/"),
        (f"x.example/{TOKEN}", "a text that is no URL is not https"),
        (f"https:///{TOKEN}", "a text that is no URL"),
        (f"https://ann:{TOKEN}@x.example/", "has a user or a password"),
        (f"https://x.example/#{TOKEN}", "after #"),
        (f"https://x.example:0/{TOKEN}", "is not https://HOST/"),
        (f"https://x.example:99999/{TOKEN}", "is not a URL"),
        (f"https://[x/{TOKEN}", "is not a URL"),
        (f"http://x.example/{TOKEN}", "must be https://"),
        (f"http://10.0.0.1/{TOKEN}", "must be https://"),
        (f"http://169.254.169.254/{TOKEN}", "must be https://"),
        (f"https://x.example/{TOKEN}\n", "no space"),
        (f"https://x.example/a b{TOKEN}", "no space"),
        (f"https://x.example/ü{TOKEN}", "ASCII"),
        (f"https://x.example/{TOKEN}{'x' * 2000}", "at most 2000"),
    ],
)
def test_a_bad_url_is_refused_with_its_reason_and_without_its_secrets(url: str, why: str) -> None:
    """Together with all other mistakes, before anything is touched."""
    with pytest.raises(UsageError) as caught:
        parse([*NEEDED, "--share", "2", "--notify", url.replace("\n", "\v")], {}, date(2026, 1, 1))

    told = "\n".join(caught.value.problems)
    assert "--share" in told
    if "\n" not in url:
        assert why in told
    assert TOKEN not in told
    with pytest.raises(ValueError, match=why):
        receiver(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://x.example",
        f"https://x.example:8443/hooks/{TOKEN}?a=b&c=%20",
        "http://localhost:8080/",
        "http://127.0.0.1:8080/",
        "http://[::1]:8080/",
        "http://broker.events.svc/default",
        "http://broker.events.svc.cluster.local/default",
    ],
)
def test_a_good_url_is_told_and_shown_without_path_and_query(url: str) -> None:
    found = receiver(url)
    options = parse([*NEEDED, "--notify", url, "--notify", url], {}, date(2026, 1, 1))

    assert options.notify == (found,)  # once
    assert TOKEN not in f"{found} {found!r} {options} {masked(url)}"
    assert found.id != receiver(f"{url.rstrip('/')}/other").id


def test_the_longest_beginning_that_fits_has_the_secrets(tmp_path: Path) -> None:
    """A host is whole: the secret of x.example is not that of x.example.org."""
    file = tmp_path / "secrets"
    key = b"a key of 16 bytes or more"
    file.write_text(
        "# comment\n\n"
        "* everybody-elses-secret\n"
        "https://x.example secret-of-the-host\n"
        f"https://x.example/a/ whsec_{base64.b64encode(key).decode()}\n"
        "https://x.example/a/ second-secret-of-a\n"
    )
    secrets = secrets_from(str(file))

    assert secrets.of(Receiver("https://x.example/a/b")) == (key, b"second-secret-of-a")
    assert secrets.of(Receiver("https://x.example/ab")) == (b"secret-of-the-host",)
    assert secrets.of(Receiver("https://x.example?a")) == (b"secret-of-the-host",)
    assert secrets.of(Receiver("https://x.example.org/a/b")) == (b"everybody-elses-secret",)
    assert "secret" not in repr(secrets)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"https://x.example {TOKEN} more", "line 1: expected two words"),
        (f"# one\nx.example {TOKEN}-and-more-of-it", "line 2: the first word"),
        (f"* {TOKEN}", "line 1: a secret has at least 16 bytes"),
        (f"* whsec_{TOKEN}!", "line 1: what follows whsec_ is not base64"),
    ],
)
def test_a_wrong_line_of_secrets_ends_the_loader_and_is_not_shown(
    text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], environment: None
) -> None:
    file = tmp_path / "secrets"
    file.write_text(text)

    code = main([*NEEDED, "--notify", "https://x.example/", "--notify-secrets", str(file)])

    shown = capsys.readouterr()
    assert code == 2
    assert f"--notify-secrets: {file}: {why}" in shown.err
    assert TOKEN not in shown.out + shown.err


def test_a_file_of_secrets_that_is_not_there_ends_the_loader(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], environment: None
) -> None:
    code = main([*NEEDED, "--notify-secrets", str(tmp_path / "none")])
    assert code == 2
    assert "No such file" in capsys.readouterr().err
