"""Random programs that two libraries run side by side: what they see must be the same after every line."""
