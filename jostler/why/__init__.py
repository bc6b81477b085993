"""`jostler why`: where one file is, since when, why, and what proves it."""
