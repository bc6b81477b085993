"""The session that the loader's tests use too."""

from tests.loader.conftest import environment, faulty_gcs, spark, warehouse

__all__ = ["environment", "faulty_gcs", "spark", "warehouse"]
