"""HTML for the agent's status page and the archive's pages: elements, shared parts, one look."""
