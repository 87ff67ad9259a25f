"""Averages of models over ranks, in place of averages of gradients."""
