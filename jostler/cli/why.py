"""The command `jostler why`: look for one file in agent, journal, spool, bucket and BigQuery.

**Invariant:** it only reads.  If one of these cannot be searched, the answer says so with the
reason, and the others are still searched.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostler.agent.ages import Ages
from jostler.agent.why import local
from jostler.agent.why.journal import locked_by
from jostler.agent.why.spool import AgentView, Setting
from jostler.archive import bigquery
from jostler.archive import lookup as archive
from jostler.bundle import state_dir
from jostler.cli.agent_client import AgentAnswer, AgentClient, AskError
from jostler.cli.flags import parse, usage
from jostler.cli.places import places
from jostler.cli.why_options import ABOUT, FLAGS
from jostler.errors import JostlerError
from jostler.storage import open_storage
from jostler.why import asked as question
from jostler.why.finding import Answer, Finding, Looked, State, Value, as_json, as_text
from jostler.words import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from jostler.format.names import Place
    from jostler.why.asked import Asked

MISUSED = 2


def main(argv: list[str]) -> int:
    """Run the command; return its exit status."""
    parsed = parse(FLAGS, argv, os.environ, most_words=1)
    if parsed.values["help"]:
        sys.stdout.write(ABOUT + usage(FLAGS) + "\n")
        return 0
    problems = [] if parsed.words else ["PATH-OR-NAME: required: the file to look for"]
    problems += parsed.problems
    if not problems:
        try:
            return _run(parsed.words[0], parsed.values)
        except ValueError as exc:
            problems = [str(exc)]
    for problem in problems:
        print(f"jostler why: {shown(problem)}", file=sys.stderr)  # noqa: T201 - a command's output
    print("jostler why: -help shows the usage", file=sys.stderr)  # noqa: T201 - as above
    return MISUSED


def _run(text: str, values: Mapping[str, Any]) -> int:
    """Search everywhere, write the findings, return the exit status.

    Raises:
        ValueError: wrong use.
    """
    answer = _everywhere(text, values)
    out = as_json(answer) if values["json"] else as_text(answer, text, datetime.now(UTC))
    if values["show"] and not values["json"]:
        sys.stderr.write(out)
        _show(answer)
    else:
        sys.stdout.write(out)
    return answer.status


def _show(answer: Answer) -> None:
    """Write the newest row: unchanged into a pipe or file, without control characters otherwise."""
    row = next((found.row for found in answer.findings if found.row), b"")
    if sys.stdout.isatty():
        row = shown(row.decode(errors="surrogateescape")).encode()
    sys.stdout.buffer.write(row + b"\n" if row else b"")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """Where in a bucket to look for a file.

    Attributes:
        bucket: URL or name; empty when unknown.
        places: the experiment's place in each layout; none when the experiment is unknown.
        datatypes: the datatypes that the file may have.
        node: the node of the agent that answered; else empty.
    """

    bucket: str
    places: tuple[Place, ...]
    datatypes: tuple[str, ...]
    node: str = ""


def _everywhere(text: str, values: Mapping[str, Any]) -> Answer:
    reply = _ask_agent(values["address"], text)
    if isinstance(reply, AgentAnswer):
        asked = question.parse(text, spool=reply.spool, datatypes=reply.datatypes)
        found, looked = list(reply.answer.findings), list(reply.answer.looked)
        archived = Archived(
            bucket=_bucket(values) or reply.bucket,
            places=_places(
                values["gcs-data-dir"] if values["organization"] else reply.data_dir,
                values["organization"] or reply.organization,
                values["experiment"] or reply.experiment,
            ),
            datatypes=reply.datatypes,
            node=reply.node,
        )
    else:
        asked, here = _here(text, values, reply)
        found = list(here.findings)
        looked = [Looked("agent", False, reply), *here.looked]
        archived = Archived(
            bucket=_bucket(values),
            places=_places(
                values["gcs-data-dir"], values["organization"], _experiment(values, text)
            ),
            datatypes=tuple(values["datatype"]),
        )
    files = [one.file for one in found]
    days = archive.days_of(asked, files, values["days"], datetime.now(UTC).date())
    more, where = _ask_bucket(asked, values, archived, days)
    found += more
    looked.append(where)
    if values["project"]:
        more, wheres = _ask_bigquery(asked, values, archived, days, found)
        found += more
        looked += wheres
    else:
        looked.append(Looked(bigquery.WHERE, False, "no -project given"))
    return Answer.of(_requeued(_same_bytes(found)), looked)


def _ask_agent(address: str | None, text: str) -> AgentAnswer | str:
    """Ask an agent about a file; return its answer, or the reason why there is none.

    Args:
        address: the value of `-address`; None for the default, empty to ask no agent.
        text: what the user typed to name the file.

    Raises:
        ValueError: the address has a wrong form.
    """
    if not address and address is not None:
        return "no -address given"
    try:
        agent = AgentClient.of(address, os.environ)
    except AskError as exc:
        raise ValueError(str(exc)) from exc
    try:
        return agent.why(text)
    except AskError as exc:
        return str(exc)


def _same_bytes(found: Sequence[Finding]) -> list[Finding]:
    """Add to each waiting file whether a file with the same bytes is already stored."""
    stored = {one.evidence.get("hash") for one in found if one.state is State.STORED} - {None}
    same = "; the same bytes are stored already, see below, and the loader keeps one of two rows"
    return [
        replace(one, why=one.why + same)
        if one.state is State.WAITING and one.evidence.get("hash") in stored
        else one
        for one in found
    ]


def _requeued(found: Sequence[Finding]) -> list[Finding]:
    """Add to each rejected file that it was requeued, if its bytes are data or on their way."""
    well = {one.evidence.get("hash"): one for one in found if one.state.is_well}
    well.pop(None, None)
    return [_with_requeued(one, well) if one.state is State.REJECTED else one for one in found]


def _with_requeued(rejected: Finding, well: Mapping[Value | None, Finding]) -> Finding:
    hashes = (rejected.evidence.get("hash"), rejected.evidence.get(archive.HASH_AS_DATA))
    again = next((well[value] for value in hashes if value in well), None)
    if again is None:
        return rejected
    why = f"{rejected.why}; it was requeued: as {again.file} the same bytes are {again.state} now"
    return replace(rejected, why=why, next="nothing more, see there")


def _here(text: str, values: Mapping[str, Any], silent: str) -> tuple[Asked, Answer]:
    """Search journal and spool directly, because no agent answers."""
    experiment = _experiment(values, text)
    if not experiment:
        asked = question.parse(text, spool="", datatypes=values["datatype"])
        return asked, Answer((), (Looked("journal and spool", False, "no -experiment given"),))
    top = Path(values["local-data-dir"])
    setting = Setting(
        spool=top / experiment,
        datatypes=tuple(values["datatype"]),
        extensions=tuple(values["extensions"] or [".json"]),
        state_dir=Path(values["state-dir"] or state_dir.default(top, experiment)),
        ages=Ages(values["settle-age"], values["missed-age"]),
    )
    asked = question.parse(text, spool=str(setting.spool), datatypes=setting.datatypes)
    pid = locked_by(setting.state_dir)
    why = f"no agent takes it: {silent}, and none has locked {setting.state_dir}"
    if pid is not None:
        why = f"process {pid} uses {setting.state_dir} and may have taken it, but: {silent}"
    memory = local.Memory(agent=AgentView(runs=False, holds_back=why))
    return asked, local.look(asked, setting, memory)


def _experiment(values: Mapping[str, Any], text: str) -> str:
    """Return the experiment as given, else as named in a path of the spool."""
    top = f"{values['local-data-dir'].rstrip('/')}/"
    given = str(values["experiment"] or "")
    if not given and text.startswith(top) and "/" in text.removeprefix(top):
        return text.removeprefix(top).partition("/")[0]
    return given


def _bucket(values: Mapping[str, Any]) -> str:
    return str(values["bucket"] or values["gcs-bucket"] or "")


def _places(data_dir: str, organization: str, experiment: str) -> tuple[Place, ...]:
    return places(data_dir, organization, experiment) if experiment else ()


def _unasked(archived: Archived, days: Sequence[date]) -> str:
    """Return why neither bucket nor BigQuery can be searched; an empty text if they can."""
    if not archived.places:
        return "no -experiment given"
    if not days:
        return "no day known: give the file's path, or -days N to look at the last N days"
    return ""


def _ask_bucket(
    asked: Asked, values: Mapping[str, Any], archived: Archived, days: tuple[date, ...]
) -> tuple[list[Finding], Looked]:
    missing = _unasked(archived, days) if archived.bucket else "no -bucket given"
    if missing:
        return [], Looked(archive.WHERE, False, missing)
    search = archive.Search(
        places=archived.places,
        days=days,
        only_node=values["node"],
        first_node=archived.node,
        most=values["most"],
        show=values["show"],
    )
    try:
        storage = open_storage(archived.bucket)
    except JostlerError as exc:
        return [], Looked(archive.WHERE, False, str(exc))
    return archive.findings(asked, storage, search)


def _ask_bigquery(
    asked: Asked,
    values: Mapping[str, Any],
    archived: Archived,
    days: tuple[date, ...],
    found: Sequence[Finding],
) -> tuple[list[Finding], list[Looked]]:
    known = {asked.datatype} if asked.datatype else {one.file.partition("/")[0] for one in found}
    datatypes = sorted(known) or list(archived.datatypes)
    missing = _unasked(archived, days) or ("" if datatypes else "no -datatype given")
    if missing:
        return [], [Looked(bigquery.WHERE, False, missing)]
    tables = bigquery.Tables(
        project=values["project"],
        location=values["location"],
        naming=values["naming"],
        meta_dataset=values["meta-dataset"],
    )
    return bigquery.findings(asked, tables, archived.places, datatypes, days)
