"""Wrappers that save the memory of activations."""
