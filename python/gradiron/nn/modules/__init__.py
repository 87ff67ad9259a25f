"""All classes of layers, from the module of each family."""

from __future__ import annotations

from . import lazy
from .container import *
from .module import Module
