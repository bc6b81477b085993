"""The written format of docs/format.md: names, rows, blocks and BigQuery names.  Pure."""
