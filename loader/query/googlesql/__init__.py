"""GoogleSQL: read a question, and translate it to Spark SQL that has the same answer."""
