"""The archive: find, read and verify what is stored in a bucket."""
