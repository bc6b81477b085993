"""The bucket and the BigQuery of the loader's tests, for what needs both here."""

from tests.loader.conftest import environment, faulty_gcs, warehouse, world

__all__ = ["environment", "faulty_gcs", "warehouse", "world"]
