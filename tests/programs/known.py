"""Differences that are meant to be: a program ends where it shows the first of them."""

import re

# (what differs, in which line, why); the last line that ran is the one.
KNOWN = (
    (
        r"None, but .*refers to a single memory",
        r"index_fill_|index_put_|masked_fill_|\] [-+*]?= |tril_|triu_",
        "PyTorch warns that putting into expanded tensors is deprecated; it is an error here",
    ),
    (
        r"error: \['RuntimeError', 'Trying to backward through the graph a second time.*, but None",
        r"backward|grad\(",
        "PyTorch saves what this derivative does not need, and so cannot run it again",
    ),
    (
        r"error: \['RuntimeError', 'Trying to use a saved tensor that has been detached in-place.*, but None",
        r"backward|grad\(",
        "the derivative of what was saved is known here although its tensor was detached",
    ),
    (
        r"error: .*modified by an inplace operation.*, but None",
        r"inputs=",
        "PyTorch runs the derivative of a tensor that keeps its gradient although nobody asks for the result",
    ),
    (r"INTERNAL ASSERT", r"", "an error in PyTorch"),
    (r"values", r"\.median\(", "PyTorch reads memory that nobody wrote: medians of expanded tensors"),
    (r"nan, but|, but nan|inf, but|, but -?inf", r"", "0 * infinity: which partial products are taken differs"),
    (
        r"error\[0\]: 'RuntimeError', but 'IndexError'",
        r"index_fill_|index_copy|\]\)\] = ",
        "an accident of PyTorch's implementation",
    ),
)

# Programs of the recording whose difference is still open, by seed.
OPEN = (204, 215)


# The same for what an earlier line began (what differs, in which earlier line, why).
KNOWN_AFTER = (
    (r"values|\binf\b|\bnan\b", r"\.data = ", "PyTorch differentiates for the new data what was computed of the old"),
    (
        r"\.version: ",
        r"\.data = |\.set_\(",
        "a base and its views go on counting writes together in PyTorch although one of them has other memory now",
    ),
    (
        r"requires_grad: True, but False|grad_fn",
        r"^v\d+\.requires_grad(_\(\)| = True)$",
        "a value that was saved is a constant here although its tensor wants gradients later",
    ),
)


def known(found, lines):
    """Whether the difference that the last of these lines shows is meant to be."""
    now = any(re.search(what, found) and re.search(where, lines[-1]) for what, where, _ in KNOWN)
    return now or any(re.search(what, found) and any(re.search(r, line) for line in lines) for what, r, _ in KNOWN_AFTER)
