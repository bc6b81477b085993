"""The agent: moves JSON files from a spool directory to bundles in a bucket, exactly once."""
