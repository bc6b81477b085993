"""The database file: datasets, tables, results, and the rows that a job writes."""
