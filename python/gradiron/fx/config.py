"""Settings of PyTorch's, which are read by nobody here."""

disable_progress = True
verbose_progress = False
