"""The REST API and the Storage Read API: routes, resources of datasets and tables, uploads."""
