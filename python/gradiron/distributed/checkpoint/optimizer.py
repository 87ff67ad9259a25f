"""States of optimizers that are spread over ranks: a name that packages import."""

from .._refused import _SHARDED, refused

__all__ = ["load_sharded_optimizer_state_dict"]

load_sharded_optimizer_state_dict = refused("checkpoint.optimizer.load_sharded_optimizer_state_dict", _SHARDED)
