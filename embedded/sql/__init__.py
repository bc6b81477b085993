"""The translation of GoogleSQL statements into DuckDB's SQL, and their execution."""
