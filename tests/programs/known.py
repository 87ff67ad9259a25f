"""Differences that are meant to be: a program ends where it shows the first of them."""

import re

# (what differs, in which line, after which earlier line, why); the last line that ran is the one.
KNOWN = (
    (
        r"a leaf Variable that requires grad is being used in an in-place operation'\], but None",
        r"",
        r"",
        "PyTorch takes a view for a leaf whose new history nobody has asked for",
    ),
    (
        r"events\[\d+\]\[1\]\[2\]",
        r"backward\(",
        r"register_post_accumulate_grad_hook",
        "a leaf that nobody names any more has lost its .grad here, which could keep the graph alive that leads to it",
    ),
    (
        r"returned an invalid gradient at index.*, but None",
        r"backward\(|grad\(",
        r"^with T\.\w+\((False)?\): v\d+\.(t|transpose|squeeze|unsqueeze|swap\w+)_\(",
        "PyTorch loses track of the shape of what came to show itself otherwise unrecorded",
    ),
    (r"INTERNAL ASSERT", r"", r"", "an error in PyTorch"),
    (
        r"NotImplementedError",
        r"backward\(|grad\(",
        r"logaddexp\(| \*\* |pow\(",
        "PyTorch's derivative subtracts from the operand, which is refused where that is of truth values",
    ),
    (r"values", r"\.median\(", r"", "PyTorch reads memory that nobody wrote: medians of expanded tensors"),
    (r"values.*: \d+, but \d+$", r"\.argsort\(|\.sort\(", r"", "in which order equal elements come is open"),
    (
        r"values",
        r"\w_\(|[-+*/]= |\] = ",
        r"\.diagonal\(|\.unfold\(|::2",
        "an operand that overlaps its target in part is read while it is written",
    ),
    (
        r"requires_grad: True, but False",
        r"\] = |copy_\(",
        r"int64|bool|\.long\(\)",
        "PyTorch records the copy of floats into integers, which have no gradient",
    ),
    (r"nan, but|, but nan|inf, but|, but -?inf", r"", r"", "0 * infinity: which partial products are taken differs"),
)


def known(found, lines):
    """Whether the difference that the last of these lines shows is meant to be."""

    def fits(what, where, before):
        return re.search(what, found) and re.search(where, lines[-1]) and any(re.search(before, line) for line in lines)

    return any(fits(what, where, before) for what, where, before, _ in KNOWN)
