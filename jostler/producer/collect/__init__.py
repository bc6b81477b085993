"""`jostler collect`: polls HTTP feeds and writes what they answer into the spool."""
