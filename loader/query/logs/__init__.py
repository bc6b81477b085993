"""The log-query language: `table … | search … | stats …` as one GoogleSQL text.

Its reference is docs/query-language.md.  `compile` is the way in; what it writes is limited to the
parts of GoogleSQL in `emitted`, so that each engine has to know no more than these.
"""
