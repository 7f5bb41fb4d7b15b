"""The service over HTTP: connections, routes, messages, keys and pages."""
