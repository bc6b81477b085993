"""The Spark job: verify bundles, find repeated rows, write cleaned copies and bad rows."""
