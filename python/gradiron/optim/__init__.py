"""Optimizers, learning rate schedulers and averaged models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import functional, lr_scheduler
from ._adafactor import Adafactor as Adafactor
from ._muon import Muon as Muon
from ._stateless import swap_in_optimizer_params_and_state as swap_in_optimizer_params_and_state
from .adadelta import Adadelta as Adadelta
from .adagrad import Adagrad as Adagrad
from .adam import Adam as Adam
from .adamax import Adamax as Adamax
from .adamw import AdamW as AdamW
from .asgd import ASGD as ASGD
from .lbfgs import LBFGS as LBFGS
from .nadam import NAdam as NAdam
from .optimizer import Optimizer as Optimizer
from .radam import RAdam as RAdam
from .rmsprop import RMSprop as RMSprop
from .rprop import Rprop as Rprop
from .sgd import SGD as SGD
from .sparse_adam import SparseAdam as SparseAdam

__all__ = sorted(name for name, value in vars().items() if isinstance(value, type) and issubclass(value, Optimizer))
__all__ += ["functional", "lr_scheduler", "swa_utils", "swap_in_optimizer_params_and_state"]

# The submodules' names are not part of the namespace; `import` still finds them.
for _name, _value in [*vars().items()]:
    if isinstance(_value, type(functional)) and not _name.startswith("_") and _name not in __all__:
        del globals()[_name]
del _name, _value


if TYPE_CHECKING:
    from . import swa_utils as swa_utils
else:

    def __getattr__(name: str) -> Any:
        # Imported on first use: it needs `gradiron.nn`, which the optimizers do not.
        if name == "swa_utils":
            from importlib import import_module

            return import_module(".swa_utils", __name__)
        raise AttributeError(f"module 'gradiron.optim' has no attribute '{name}'")
