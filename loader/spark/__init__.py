"""The Spark job: identities, judging, repeats, cleaned copies."""
