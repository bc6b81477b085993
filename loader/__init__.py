"""The Spark job that loads bundles into BigQuery tables."""
