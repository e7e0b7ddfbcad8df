"""Models: objects and functions, files, HTTP endpoints."""
