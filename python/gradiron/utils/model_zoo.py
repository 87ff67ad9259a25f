"""The old name of what `hub` does."""

from __future__ import annotations

from typing import Any

from .. import hub
from ..hub import load_state_dict_from_url

__all__ = ["load_url"]

load_url = load_state_dict_from_url


def __getattr__(name: str) -> Any:
    if name != "tqdm":
        raise AttributeError(f"module 'gradiron.utils.model_zoo' has no attribute '{name}'")
    return hub.tqdm
