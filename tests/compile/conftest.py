"""These tests look inside of gradiron's compiler."""

import library

collect_ignore_glob = ["test_*.py"] if library.NAME == "torch" else []
