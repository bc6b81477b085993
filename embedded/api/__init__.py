"""The REST API and the Storage Read API: each request is routed to its resource."""
