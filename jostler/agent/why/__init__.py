"""Where one file is, as far as this machine knows: agent, journal, spool."""
