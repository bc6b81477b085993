"""The database: datasets, tables, query results, and how a job writes rows into a table."""
