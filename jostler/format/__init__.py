"""The written format, pure: names, rows, blocks and BigQuery names, as docs/format.md has them."""
