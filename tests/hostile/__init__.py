"""Hostile calls: every function and method with arguments that nobody should pass. `python -m hostile --help`."""
