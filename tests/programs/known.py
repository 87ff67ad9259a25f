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
        r"None, but .*you can only change requires_grad flags of leaf variables",
        r"requires_grad_\(False\)",
        r"",
        "likewise",
    ),
    (
        r"\.grad(: None, but|\.version|\.values)",
        r"backward\(",
        r"\.set_\(",
        "a recorded set_ has no derivative: PyTorch says so before it runs anything else",
    ),
    (
        r"\(nan\+nanj\), but \(1[+-]0j\)",
        r"\*\*|pow",
        r"complex",
        "PyTorch has nan for the complex zero to the power of a complex zero that is a tensor, and 1 where it is a number",
    ),
    (
        r"None, but \['NotImplementedError', 'Subtraction, .* with a bool tensor",
        r"vmap\(",
        r"bool|[<>]",
        "PyTorch's vmap gives a sample that is one number the type of what it meets before it asks for that",
    ),
    (r"complex numbers of half precision|BComplex32", r"", r"", "there are none here"),
    (
        r"(sum|abs)_out that does not support it",
        r"\.(std|abs)\(",
        r"",
        "PyTorch's std and abs write into a tensor of their own, which inference tensors with tangents do not outlive",
    ),
    (
        r"tangent|\.v\d+: \{.*, but None",
        r"forward_mode\(lambda x: x\.clone\(\)",
        r"inference_mode",
        "PyTorch's clone is a copy into a new tensor, which follows the tangents of inference tensors as no other operator does",
    ),
    (
        r"Inference tensors do not track version counter.*, but None",
        r"",
        r"\.data = ",
        "a tensor of inference mode that was given other values has no count of writes in PyTorch",
    ),
    (
        r"None, but .*Inference tensors cannot be saved",
        r"vmap\(.*@",
        r"inference_mode",
        "PyTorch copies samples that are multiplied with a batch, and a copy is not of inference mode",
    ),
    (
        r"None, but .*Inference tensors cannot be saved",
        r"",
        r"(Same|Alias|Part)\.apply\(",
        "PyTorch does not record operators on inference tensors alone, although a Function let them want gradients",
    ),
    (
        r"None, but .*Trying to backward through the graph a second time",
        r"grad\(|backward\(",
        r"forward_mode\(|jvp\(",
        "PyTorch adds zeros to a tangent where another is missing: a sum, which keeps nothing, is what an earlier backward freed",
    ),
    (
        r"modified by an inplace operation.*, but None",
        r"grad\(|backward\(",
        r"(forward_mode|jvp|jacfwd|hessian)\(.*softmax",
        "PyTorch's tangent of a softmax is made of its operand, ours of its result",
    ),
    (
        r"events|NoneType.*, but None",
        r"next_functions|log\(",
        r"(grad|vjp|jacrev|hessian|backward)\(.*softmax",
        "the derivative of a softmax is one node in PyTorch",
    ),
    (r"INTERNAL ASSERT", r"", r"", "an error in PyTorch"),
    (
        r"select\(\): index 0 out of range for tensor of size \[0\]",
        r"(hessian|jacfwd)\(.*\.std\(",
        r"",
        "PyTorch looks at the first of no samples",
    ),
    (
        r"threshold_cpu.* not implemented for .{1,2}Complex.*, but None",
        r"(forward_mode|jvp)\(.*relu",
        r"complex",
        "a complex tangent of a real tensor, for which PyTorch has no kernel",
    ),
    (
        r"None, but .*more than one element of the written-to tensor",
        r"matmul\(.*out=.*expand\(",
        r"",
        "PyTorch's product of batches does not ask whether the output overlaps itself, and leaves there what it wrote last",
    ),
    (
        r"requires_grad: True, but False",
        r"Same\.apply\(",
        r"inference_mode",
        "PyTorch's Function gives an input of inference mode a history, which operators then do not go on with",
    ),
    (
        r"NotImplementedError",
        r"backward\(|grad\(",
        r"logaddexp\(|atan2|\*\*|pow\(",
        "PyTorch's derivative negates the operand or subtracts from it, which is refused where that is of truth values",
    ),
    (r"values.*: 'RuntimeError', but", r"", r"abs\(|norm\(", "PyTorch has zeros here that it cannot list"),
    (
        r"values.*'RuntimeError'.*, but \[*-?0\.0",
        r"",
        r"forward_mode\(|jvp\(|jacfwd\(|hessian\(",
        "the same: of gradients through tangents that were missing",
    ),
    (
        r"requires_grad: True, but False",
        r"create_graph=True",
        r"\.square\(|\.pow\(2\)|\*\* 2",
        "the second derivative of a square is a constant, which PyTorch records as x ** 0",
    ),
    (r"\.shape", r", out=", r"", "PyTorch has given an output another shape before it refuses to write there"),
    (
        r"None, but \['IndexError', 'too many indices",
        r"",
        r"stack\(.*, out=",
        "the same, when that shape is indexed",
    ),
    (r"values", r", out=", r"", "PyTorch lets an output that is too small grow where it lies, and warns that it will not"),
    (
        r"\.version|\.values",
        r"backward\(",
        r"backward\(.*\.detach\(\)",
        "PyTorch adds to a gradient that is a view of the one that it was given",
    ),
    (
        r"\.events",
        r"backward\(|grad\(",
        r"\.(unsqueeze|squeeze|t|transpose|swapaxes|swapdims)_\(",
        "PyTorch hangs hooks on what a tensor was before a view in place, where an older hook hangs",
    ),
    (
        r"hook returned|events",
        r"backward\(|grad\(",
        r"\.detach_\(\)",
        "PyTorch's hooks follow a tensor that was cut off and wants gradients again; here they stay with what it was computed of",
    ),
    (
        r"\.grad\.version",
        r"backward\(",
        r"T\.(cat|stack)\(",
        "PyTorch's gradients of what was joined are views of one memory, and of one count of writes",
    ),
    (
        r"values.*: \d\.0, but \d\.0$",
        r"norm\(0",
        r"softmax\(",
        "how many elements are not zero, where zeros are rounding",
    ),
    (r"values", r"masked_scatter_\(", r"", "a source that is the target itself is read while it is written"),
    (r"values", r"\.resize_", r"", "what a tensor that is resized gains is memory that nobody wrote"),
    (r"values: \d, but \d$", r"int64|\.long\(", r"softmax\(", "a sum of a softmax is 1 but for its last bit"),
    (
        r"values|shape",
        r"v\d+ > 0",
        r"\.std\(",
        "the spread of equal numbers is nothing but rounding, or exactly none",
    ),
    (
        r"values.*(: -?0\.0, but|, but -?0\.0$)",
        r"sqrt",
        r"softmax\(",
        "the gradient of a sum of a softmax is nothing but rounding",
    ),
    (
        r"values.*e\+1\d, but -?\d.*e\+1\d",
        r"/|div|reciprocal",
        r"softmax\(.*sum",
        "the same, divided by",
    ),
    (
        r"values.*: -?(2\.356|0\.785)\d+, but -?(2\.356|0\.785)",
        r"atan2",
        r"softmax\(.*sum",
        "the same, of which the sign shows",
    ),
    (
        r"values.*(: -?3\.14\d+, but -?0\.0|: -?0\.0, but -?3\.14)",
        r"atan2",
        r"@|matmul\(|mm\(",
        "products of one column and one row: whether a zero keeps its sign is the vendor library's choice, by size",
    ),
    (
        r"values.*-?3\.14\d+",
        r"atan2",
        r"\b(max|min|aminmax|maximum|minimum)\(",
        "which of a zero and a negative zero is the extreme depends on the vectors",
    ),
    (
        r"values.*: -?3\.14\d+, but -?0\.0|: -?0\.0, but -?3\.14",
        r"atan2",
        r"forward_mode\(.*where",
        "a tangent of zero has another sign",
    ),
    (r"values.*\(-?[\de.-]+[+-][\de.+-]+j\), but -?[\de.+-]+j$", r"\*", r"T\.complex\(", "the last bits of what cancels"),
    (r"stride", r"is_grads_batched", r"forward_mode\(", "gradients of zeros for each of a batch may be one for all here"),
    (r"stride", r"vmap\(.*in_dims", r"", "a copy of samples that lie over one another keeps no order of dimensions"),
    (r"values", r"\.median\(", r"", "PyTorch reads memory that nobody wrote: medians of expanded tensors"),
    (r"values", r"backward\(|grad\(", r"\.kthvalue\(", "which of equal elements is the k-th is open"),
    (r"values.*: \d+, but \d+$", r"\.argsort\(|\.sort\(", r"", "in which order equal elements come is open"),
    (
        r"values",
        r"\w_\(|[-+*/]= |\] = ",
        r"\.diagonal\(|\.unfold\(|\.unbind\(|\.select\(|\.narrow\(|\.split\(|\.chunk\(|\w\[",
        "an operand that overlaps its target in part is read while it is written",
    ),
    (
        r"requires_grad: True, but False",
        r"\] = |fill_\(",
        r"int64|bool|\.long\(\)|\.arg|sort\(|[<>]|[=!]= |\.is\w+\(",
        "PyTorch gives whole numbers that are filled with a recorded value a history, which it refuses to run or to go on with",
    ),
    (r"Autograd not support dtype: \w+'\], but None", r"", r"\] = |fill_\(", "it then refuses to look at them"),
    (
        r"requires_grad: True, but False",
        r"forward_mode\(|jvp\(|jacfwd\(|hessian\(",
        r"",
        "PyTorch lets a missing tangent be zeros that know of the primal they were multiplied with",
    ),
    (
        r"output 0 of (Exp|MaskedFill), .*, but None",
        r"backward\(|grad\(",
        r"(forward_mode|jvp|jacfwd|hessian)\(.*(softmax|std)\(",
        "PyTorch's tangents of these write over what their own graph needs",
    ),
    (
        r"nan(j\))?, but|, but (nan|.*nanj\))|inf, but|, but -?inf",
        r"",
        r"",
        "0 * infinity: which partial products are taken differs",
    ),
)

# Seeds whose program ends PyTorch itself, with a segmentation fault.
CRASHES = {4506, 22580, 701955}


def known(found, lines):
    """Whether the difference that the last of these lines shows is meant to be."""

    def fits(what, where, before):
        return re.search(what, found) and re.search(where, lines[-1]) and any(re.search(before, line) for line in lines)

    return any(fits(what, where, before) for what, where, before, _ in KNOWN)
