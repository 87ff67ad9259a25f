"""`torch.compile`: Python observed by its syntax trees, kernels captured once and replayed."""
