"""What runs programs written for PyTorch: `torch` as a second name, and the names that they ask for in vain."""
