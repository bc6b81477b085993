"""Values that all packages use: names, columns, cells, errors, requests and replies."""
