"""Names of PyTorch's own tests that packages import."""
