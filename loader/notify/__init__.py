"""Telling others what became of a day: CloudEvents by HTTP, at least once each."""
