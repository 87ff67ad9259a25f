"""Tools around modules. Loaded when asked for."""

from __future__ import annotations

from . import rnn
