"""GoogleSQL: parse statements, check them, translate them to DuckDB's SQL, run DDL and DML."""
