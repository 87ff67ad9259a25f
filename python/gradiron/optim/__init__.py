"""Optimizers, learning rate schedulers and averaged models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import functional, lr_scheduler
from ._adafactor import Adafactor
from ._muon import Muon
from ._stateless import swap_in_optimizer_params_and_state
from .adadelta import Adadelta
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .adamw import AdamW
from .asgd import ASGD
from .lbfgs import LBFGS
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "functional",
    "lr_scheduler",
    "swa_utils",
    "swap_in_optimizer_params_and_state",
]

# The submodules' names are not part of the namespace; `import` still finds them.
del adadelta, adagrad, adam, adamax, adamw, asgd, lbfgs, nadam, optimizer, radam, rmsprop, rprop, sgd, sparse_adam  # type: ignore[name-defined] # noqa: F821


if TYPE_CHECKING:
    from . import swa_utils as swa_utils
else:

    def __getattr__(name: str) -> Any:
        # Imported on first use: it needs `gradiron.nn`, which the optimizers do not.
        if name == "swa_utils":
            from importlib import import_module

            return import_module(".swa_utils", __name__)
        raise AttributeError(f"module 'gradiron.optim' has no attribute '{name}'")
