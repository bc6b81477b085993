"""Jobs: their states and their table; query, load and copy jobs; injected faults."""
