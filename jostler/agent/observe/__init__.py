"""What an operator sees of a running agent: metrics, health, status; by HTTP or in a terminal."""
