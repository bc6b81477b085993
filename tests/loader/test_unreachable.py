"""BigQuery cannot be reached: the cause is told in words."""

from __future__ import annotations

import pytest

from loader.bigquery.warehouse import Warehouse
from loader.errors import WarehouseError


@pytest.mark.parametrize("patience_s", [0.0, 0.1])
def test_a_bigquery_that_cannot_be_reached_is_told_in_words(
    patience_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the host, and without the chain of exceptions."""
    monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", "http://127.0.0.1:9")
    warehouse = Warehouse("p", "US", patience_s)

    with pytest.raises(WarehouseError) as caught:
        warehouse.make_dataset("p", "d", "")
    warehouse.close()

    assert "127.0.0.1:9 refuses connections" in str(caught.value)
    assert "0x" not in str(caught.value)
    assert len(str(caught.value)) < 100
