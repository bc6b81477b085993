"""The audit of an archive: is all that was stored whole, and can it be found?"""
