"""Hides the native module: with this directory first on PYTHONPATH, it is as if not installed."""

raise ModuleNotFoundError("hidden for a test", name="jostler_native")
