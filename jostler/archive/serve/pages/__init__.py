"""The archive's pages: pure functions from values to HTML; each is whole without scripts."""
