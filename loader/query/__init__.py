"""Ask the archive: three languages, one SQL text, run by Spark over the bundles or by BigQuery."""
