"""The version of this package, for those who need nothing else of it."""

__version__ = "0.3.0"
