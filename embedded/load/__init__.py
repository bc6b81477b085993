"""The files of load jobs: read them, decode their formats, judge each row."""
