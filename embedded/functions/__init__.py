"""GoogleSQL's functions, operators and types, expressed in DuckDB's SQL or in Python."""
