"""The files beside this one: what PyTorch answered, and which PyTorch it was."""

import gzip
import json
import pathlib

HOME = pathlib.Path(__file__).parent
# The package itself has this one: the launcher tells by it which names are PyTorch's.
NAMES = str(HOME.parent.parent / "python" / "gradiron" / "_as_torch" / "pytorch_names.json")


def lines(value, depth=2):
    """Compact JSON with a line for each entry of what holds only lists and tables, so that a difference can be read."""
    parts = value.values() if isinstance(value, dict) else value
    if not depth or not isinstance(value, (dict, list)) or not all(isinstance(part, (dict, list)) for part in parts):
        return json.dumps(value, separators=(",", ":"), default=number)
    texts = [lines(part, depth - 1) for part in parts]
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f"{json.dumps(name)}: {text}" for name, text in zip(value, texts)) + "\n}"
    return "[\n" + ",\n".join(texts) + "\n]"


def number(value):
    return {"re": value.real, "im": value.imag}


def write(name, data):
    """Writes `data`, for which PyTorch was asked just now; compressed where the name ends with .gz."""
    import torch

    text = f'{{"pytorch": "{torch.__version__}",\n"data": {lines(data)}}}\n'.encode()
    (HOME / name).write_bytes(gzip.compress(text, mtime=0) if name.endswith(".gz") else text)


def load(name):
    """The whole file: `pytorch`, the version, and `data`."""
    read = (HOME / name).read_bytes()
    text = gzip.decompress(read) if name.endswith(".gz") else read
    return json.loads(
        text, object_hook=lambda found: complex(found["re"], found["im"]) if found.keys() == {"re", "im"} else found
    )


def read(name):
    """What PyTorch answered."""
    return load(name)["data"]
