"""What all rooms speak of: names, columns, cells, errors, a request and its reply."""
