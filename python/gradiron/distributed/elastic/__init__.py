"""Names of PyTorch's elastic launcher that programs import."""
