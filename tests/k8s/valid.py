"""Whether Kubernetes, or the operator whose kind it is, would accept a document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import kubernetes_validate

if TYPE_CHECKING:
    from tests.k8s.manifests import Doc

# The oldest in which native sidecars need no switch, and the newest that the checker knows.
VERSIONS = ("1.29", kubernetes_validate.latest_version())
SCHEMAS = {
    kind: json.loads((Path(__file__).parent / f"schemas/{kind.lower()}.json").read_text())
    for kind in ("PodMonitor", "PrometheusRule")
}


def check(doc: Doc) -> None:
    """Fail unless the document would be accepted; an unknown member is a mistake."""
    if doc["kind"] in SCHEMAS:
        jsonschema.validate(doc, SCHEMAS[doc["kind"]])
    elif doc["kind"] == "ScheduledSparkApplication":
        # Its hundreds of models take seconds to import: not in each worker that collects tests.
        from kubeflow_spark_api.models import (  # noqa: PLC0415
            SparkV1beta2ScheduledSparkApplication,
        )

        model = SparkV1beta2ScheduledSparkApplication.from_dict(doc)
        assert model is not None
        assert unread(doc, model.to_dict()) == [], "members that the operator does not know"
    else:
        for version in VERSIONS:
            kubernetes_validate.validate(doc, version, strict=True)


def unread(given: object, read: object, path: str = "") -> list[str]:
    """Return the paths of members that were given and not read."""
    if isinstance(given, dict) and isinstance(read, dict):
        missing = [f"{path}.{key}" for key in given.keys() - read.keys()]
        both = given.keys() & read.keys()
        return missing + [p for key in both for p in unread(given[key], read[key], f"{path}.{key}")]
    if isinstance(given, list) and isinstance(read, list):
        return [p for a, b in zip(given, read, strict=True) for p in unread(a, b, f"{path}[]")]
    return []
