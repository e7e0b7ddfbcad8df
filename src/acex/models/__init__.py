"""What can be asked: objects, files and endpoints."""
