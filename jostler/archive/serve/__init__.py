"""`jostler serve`: the archive as web pages and as an HTTP API; it only reads."""
