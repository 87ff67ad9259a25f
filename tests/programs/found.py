"""Programs that once showed a difference."""

PROGRAMS = [
    """
v1 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()
v2 = v1 * 3
v2.mul_(v2)
v2.sum().backward()
""",
]
