"""BigQuery: tables, partition loads, the ledger."""
