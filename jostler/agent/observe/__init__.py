"""The observable state of a running agent: metrics, health checks, status page, HTTP server."""
