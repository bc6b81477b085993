"""The whole way on one machine: from files in a spool to rows in BigQuery."""
