"""Jobs: query, load and copy; their states, their log, and faults on request."""
