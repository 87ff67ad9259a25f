"""Functions of `torch` that are written in Python; the package loads each file when one of its functions is asked for."""
