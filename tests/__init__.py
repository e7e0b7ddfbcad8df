"""A package: others install a module of this name, which the processes that tests start would import instead."""
