"""Writes `public_names.json`: the names that PyTorch's public modules offer, without what they import for themselves. Run under
PyTorch."""

import inspect
import warnings

import golden_file
import make_names


def offers(module, name):
    """Whether a name is the module's own, or that of a package for what lies below it."""
    value = getattr(module, name)
    if name.startswith("_") or inspect.ismodule(value):
        return False
    home = getattr(value, "__module__", None) or ""
    below = hasattr(module, "__path__") and home.startswith(f"{module.__name__}.")
    return home == module.__name__ or below or home.startswith("torch._") or (inspect.isbuiltin(value) and not home)


def names(module):
    listed = getattr(module, "__all__", None)
    if listed is None:
        return [name for name in dir(module) if offers(module, name)]
    return sorted({name for name in listed if hasattr(module, name) and not inspect.ismodule(getattr(module, name))})


if __name__ == "__main__":
    import torch

    warnings.simplefilter("ignore")
    made = {name: names(module) for name, module in make_names.modules(torch)}
    golden_file.write("public_names.json", dict(sorted(made.items())))
    print(len(made), "modules,", sum(map(len, made.values())), "names")
