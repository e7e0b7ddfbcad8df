"""The methods that are compared: one file each, with a function that `@method` registers.

To add a method, add a file and list it in `FILES`.
"""

from importlib import import_module

from benchmarks.methods.method import METHODS, Method

FILES = (  # in the order of the tables
    *("feasible", "penalty", "ace_published", "growing_spheres", "moc", "baycon", "gradient", "nearest", "random_rows"),
    *("dice", "nice", "cfnow", "hopskipjump", "treecf"),
)
for _name in FILES:
    import_module(f"benchmarks.methods.{_name}")

__all__ = ["FILES", "METHODS", "Method"]
