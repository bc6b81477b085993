"""Query jobs: run GoogleSQL, keep the result or apply the changes.

**Invariant:** the changes of a statement and the end of its job are one transaction.

Legacy SQL and sessions are not supported.
"""

from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING

from embedded.model.cells import Stamps, read_page, stamps, stamps_of
from embedded.model.columns import quoted
from embedded.model.errors import STATUS, ApiError, invalid, unsupported
from embedded.model.fields import to_api
from embedded.model.names import JobRef, dataset_ref, destination
from embedded.model.wire import Call, Json, Reply
from embedded.sql.parameters import in_text, parameters_of
from embedded.sql.parsing import parsed_all
from embedded.sql.resolver import Context
from embedded.sql.scripts import Script
from embedded.sql.statements import execute
from embedded.sql.translate import translate
from embedded.store.catalog import find_table
from embedded.store.datasets import find_dataset
from embedded.store.landing import Landing
from embedded.store.results import DATASET, columns, is_result, write_rows

if TYPE_CHECKING:
    import duckdb
    from sqlglot import exp

    from embedded.jobs.jobs import Effect, Job, Jobs
    from embedded.store.database import Store
    from embedded.store.results import Results

_KEYS = """
query useLegacySql queryParameters parameterMode defaultDataset destinationTable
createDisposition writeDisposition priority useQueryCache maximumBytesBilled flattenResults
allowLargeResults
"""
KEYS = frozenset(_KEYS.split())
_REQUEST_ONLY = """
kind maxResults timeoutMs dryRun formatOptions location requestId labels jobCreationMode
preserveNulls
"""
REQUEST_ONLY = frozenset(_REQUEST_ONLY.split())
TIMEOUT_MS = 10_000  # the default timeout of jobs.query and jobs.getQueryResults


class Queries:
    """Runs query jobs, and serves jobs.query and jobs.getQueryResults."""

    jobs: Jobs

    def __init__(self, store: Store, results: Results) -> None:
        self._store = store
        self._results = results

    def check(self, project: str, config: Json) -> str:
        """Check a query job before it gets an id; return the location of its default dataset."""
        query = config["query"]
        for key, value in query.items():
            if key not in KEYS and value not in (None, "", {}, [], False):
                raise unsupported(f"{key} of a query")
        if query.get("useLegacySql", True):  # the API's default
            raise unsupported("Legacy SQL (set useLegacySql to false)")
        if not str(query.get("query") or "").strip():
            raise invalid("Required parameter is missing: query")
        if query.get("queryParameters"):
            query["queryParameters"] = [in_text(item) for item in query["queryParameters"]]
        default = query.get("defaultDataset")
        if not default:
            return ""
        with self._store.reading() as cursor:
            return str(find_dataset(cursor, dataset_ref(default, project))["location"])

    def dry_run(self, project: str, config: Json) -> Json:
        """Return the statistics of a query without running it.

        Raises:
            ApiError: the query is not valid.
        """
        context = _context(project, config["query"])
        if len(parsed_all(str(config["query"]["query"]))) > 1:
            seen: Json = {"statementType": "SCRIPT", "totalBytesProcessed": "0"}
            return {"totalBytesProcessed": "0", "query": seen}
        with self._store.reading() as cursor:
            statement = translate(cursor, str(config["query"]["query"]), context)
            statistics: Json = {"statementType": statement.kind, "totalBytesProcessed": "0"}
            if statement.kind == "SELECT":
                statistics["schema"] = to_api(columns(cursor, statement.sql))
        return {"totalBytesProcessed": "0", "query": statistics}

    def run(self, job: Job) -> Effect:
        """Run a SELECT and keep its result; return an effect that runs any other statement."""
        query = job.config["query"]
        context = _context(job.ref.project, query)
        sql = str(query["query"])
        trees = parsed_all(sql)
        if len(trees) > 1:
            return self._run_script(job, trees, context)
        with self._store.reading() as cursor:
            statement = translate(cursor, sql, context)
            if statement.kind == "SELECT" and "destinationTable" not in query:
                fields, total = self._results.keep(cursor, job.ref, statement.sql)
                query["destinationTable"] = {
                    "projectId": job.ref.project, "datasetId": DATASET, "tableId": str(job.ref),
                }  # fmt: skip
                statistics = _statistics("SELECT", {"schema": to_api(fields), "rows": total})
                return lambda _: statistics

        def effect(cursor: duckdb.DuckDBPyConnection) -> Json:
            statement = translate(cursor, sql, context)
            if statement.kind == "SELECT":
                return self._land(cursor, job, statement.sql)
            done = execute(cursor, statement, context)
            if statement.kind == "CREATE_TABLE_AS_SELECT" and "ddlTargetTable" in done:
                query["destinationTable"] = done["ddlTargetTable"]  # clients look for it here
            return _statistics(statement.kind, done)

        return effect

    def _run_script(self, job: Job, trees: list[exp.Expr], context: Context) -> Effect:
        """Run several statements; the result of the last SELECT is the job's."""
        query = job.config["query"]
        if "destinationTable" in query:
            raise invalid("configuration.query.destinationTable cannot be set for scripts")

        def effect(cursor: duckdb.DuckDBPyConnection) -> Json:
            script = Script(cursor, context)
            path = self._store.staging / f"script-{uuid.uuid4().hex}.parquet"
            found: Json = {"numChildJobs": str(len(trees))}
            shown = ""
            for tree in trees:
                job.check()
                statement = script.take(tree)
                if statement is None:
                    continue
                if statement.kind == "SELECT":
                    shown = write_rows(cursor, statement.sql, path)
                else:
                    execute(cursor, statement, script.context)
            statistics = _statistics("SCRIPT", {})
            if shown:
                with self._store.reading() as other:
                    fields, total = self._results.keep(other, job.ref, shown)
                path.unlink()
                query["destinationTable"] = {
                    "projectId": job.ref.project, "datasetId": DATASET, "tableId": str(job.ref),
                }  # fmt: skip
                statistics["query"] |= {"schema": to_api(fields), "rows": total}
            return {**statistics, **found}

        return effect

    def _land(self, cursor: duckdb.DuckDBPyConnection, job: Job, sql: str) -> Json:
        """Write the rows of a SELECT to the job's destination table."""
        query = job.config["query"]
        ref, day = destination(query["destinationTable"], job.ref.project)
        find_dataset(cursor, ref.parent)
        fields = columns(cursor, sql)
        landing = Landing(
            ref=ref,
            day=day,
            write=str(query.get("writeDisposition") or "WRITE_EMPTY"),
            create=str(query.get("createDisposition") or "CREATE_IF_NEEDED"),
            schema=fields,
            layout={},
            properties={},
        )
        names = [field.name for field in fields]
        safe = ", ".join(quoted(name) for name in names)
        landing.put(cursor, names, f"({sql}) AS _({safe})")
        return _statistics("SELECT", {"schema": to_api(fields)})

    def query(self, call: Call) -> Reply:
        """Handle jobs.query: run a query; return its first page if it ends in time."""
        request = call.json()
        config: Json = {key: request[key] for key in request if key not in REQUEST_ONLY}
        config.setdefault("useLegacySql", True)
        given: Json = {"configuration": {"query": config, "labels": request.get("labels") or {}}}
        project = call.names["project"]
        if request.get("dryRun"):
            self.check(project, {"query": config})
            statistics = self.dry_run(project, {"query": config})["query"]
            return Reply({"kind": "bigquery#queryResponse", "jobComplete": True, **statistics})
        ref = self._submitted(project, request, given)
        self.jobs.wait(ref, float(request.get("timeoutMs") or TIMEOUT_MS) / 1000)
        limit = request.get("maxResults")
        how = stamps(request.get("formatOptions") or {})
        return Reply(self._answer(ref, 0, None if limit is None else int(limit), how))

    def _submitted(self, project: str, request: Json, given: Json) -> JobRef:
        """Submit a job once per requestId, which a client sends again if a reply was lost."""
        wanted = str(request.get("requestId") or uuid.uuid4().hex)
        name = f"job_{hashlib.sha256(wanted.encode()).hexdigest()[:32]}"
        reference = {"jobId": name, "location": request.get("location") or ""}
        known = self.jobs.find(project, name, "")
        if known is not None:
            return known[0]
        taken = self.jobs.submit(project, {**given, "jobReference": reference})["jobReference"]
        return JobRef(taken["projectId"], taken["location"], taken["jobId"])

    def results(self, call: Call) -> Reply:
        """Handle jobs.getQueryResults: wait for the query's end; return a page of its rows."""
        ref, _ = self.jobs.named(call)
        self.jobs.wait(ref, call.number("timeoutMs", TIMEOUT_MS) / 1000)
        start = call.number("pageToken", 0) or call.number("startIndex", 0)
        limit = call.number("maxResults", 0) if "maxResults" in call.query else None
        return Reply(self._answer(ref, start, limit, stamps_of(call)))

    def _answer(self, ref: JobRef, start: int, limit: int | None, how: Stamps) -> Json:
        found = self.jobs.find(ref.project, ref.job, ref.location)
        assert found is not None
        body = found[1]
        reply: Json = {"kind": "bigquery#queryResponse", "jobReference": ref.to_api()}
        if body["status"]["state"] != "DONE":
            return {**reply, "jobComplete": False}
        error = body["status"].get("errorResult")
        if error:
            reason = error["reason"] if error["reason"] in STATUS else "internalError"
            raise ApiError(reason, error["message"])
        statistics = body["statistics"].get("query")
        if statistics is None:
            raise invalid(f"Cannot get query results of {ref}: it is no query")
        reply |= {"jobComplete": True, "cacheHit": False, "totalBytesProcessed": "0"}
        for key in ("numDmlAffectedRows", "statementType", "schema"):
            if key in statistics:
                reply[key] = statistics[key]
        place = body["configuration"]["query"].get("destinationTable") or {}
        if not place or statistics["statementType"] not in {"SELECT", "SCRIPT"}:
            return {**reply, "totalRows": "0"}
        return reply | self._page(ref, place, start, limit, how)

    def _page(self, ref: JobRef, place: Json, start: int, limit: int | None, how: Stamps) -> Json:
        with self._store.reading() as cursor:
            if is_result(place.get("datasetId", ""), place.get("tableId", "")):
                name, fields, total = self._results.find(str(ref))
            else:
                table = find_table(cursor, destination(place, ref.project)[0])
                name, fields, total = table.storage, table.fields, table.count(cursor)
            wanted = total if limit is None else limit
            rows = read_page(cursor, name, fields, start=start, limit=wanted, how=how)
        end = start + len(rows)
        page: Json = {"totalRows": str(total)}
        if rows:
            page["rows"] = rows
        if end < total:
            page["pageToken"] = str(end)
        return page


def _context(project: str, query: Json) -> Context:
    default = query.get("defaultDataset")
    return Context(
        project=project,
        dataset=dataset_ref(default, project) if default else None,
        parameters=parameters_of(query),
    )


def _statistics(kind: str, query: Json) -> Json:
    return {
        "totalBytesProcessed": "0",
        "query": {"statementType": kind, "totalBytesProcessed": "0", "cacheHit": False, **query},
    }
