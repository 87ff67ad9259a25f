"""Programs in which gradiron differs on purpose from PyTorch: why, and which they are.

A program is named by its generator and seed, or by its name in found.py. One that differs no longer is told of, too.
"""

REASONS = {
    "0 * infinity: which partial products are taken differs": ["random 128"],
    "gelu of infinity is NaN in PyTorch": ["random 4802"],
    "PyTorch's derivative negates the operand or subtracts from it, which is refused where that is of truth values": [
        "random 1655",
        "random 3607",
        "random 5553",
        "random 6234",
        "random 8159",
        "random 8435",
        "deep 58",
    ],
    "an internal error of PyTorch": ["random 2024", "random 2167", "random 3806", "random 3982", "random 7162"],
    "a recorded set_ has no derivative: PyTorch says so before it runs anything else": ["random 3058"],
    "PyTorch gives whole numbers that are filled with a recorded value a history, which it refuses to run": [
        "random 5220",
        "random 7192",
    ],
    "PyTorch takes a view for a leaf whose new history nobody has asked for": ["random 6113", "random 7429"],
    "in which order equal elements come is open": ["random 7270"],
    "an operand that overlaps its target in part is read while it is written": [
        "random 7943",
        "gradient_base_before_write_through_view",
        "deep 8",
    ],
    "PyTorch has zeros here that it cannot list": ["zeros_stand_missing_tangent"],
    "PyTorch has given an output another shape before it refuses to write there": ["deep 16", "deep 23"],
}
KNOWN = {name: why for why, names in REASONS.items() for name in names}

# They differ where PyTorch's kernels are those for AVX-512.
BY_PROCESSOR = {"random 128", "random 4802"}

# Seeds whose program ends PyTorch itself, with a segmentation fault, or reads what its median of an expanded tensor left unwritten.
CRASHES = {4506, 9381, 22580, 701955}
