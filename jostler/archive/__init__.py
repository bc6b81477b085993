"""The archive: finds, reads and proves what is stored in a bucket."""
