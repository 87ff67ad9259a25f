"""Options of a compiler that is not there: whatever is set changes nothing."""
