"""Writes `homes.json.gz`: where PyTorch's public functions and classes say that they come from. Run under PyTorch."""

import importlib
import inspect
import warnings

import golden_file
import make_names
import make_public_names

# Modules without public names whose names stand in checkpoints and in pickles.
PRIVATE = "_C _tensor _utils _jit_internal".split()


def is_named(value):
    """Whether a value is what a pickle names: a class or a function."""
    return inspect.isclass(value) or inspect.isroutine(value)


def homes(module, names):
    """For each name `__module__` and `__qualname__`; the name of the module itself and the same name are left out."""
    found = {}
    for name in names:
        value = getattr(module, name)
        if is_named(value) and isinstance(getattr(value, "__module__", None), str):
            home, inside = value.__module__, value.__qualname__
            if home.partition(".")[0] == "torch":
                found[name] = [home if home != module.__name__ else "", inside if inside != name else ""]
    return found


if __name__ == "__main__":
    import torch

    warnings.simplefilter("ignore")
    made = {name: homes(module, make_public_names.names(module)) for name, module in make_names.modules(torch)}
    for name in PRIVATE:
        module = importlib.import_module(f"torch.{name}")
        made[name] = homes(module, sorted(vars(module)))
    golden_file.write("homes.json.gz", dict(sorted(made.items())))
    print(len(made), "modules,", sum(map(len, made.values())), "names")
