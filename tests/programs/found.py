"""Programs that once showed a difference, each as short as it can be."""

PROGRAMS = {
    # The target is another operand, too: what that saved is spoilt.
    "target_another_operand_too": """
v1 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()
v2 = v1 * 3
v2.mul_(v2)
v2.sum().backward()
""",
    # Hooks, and gradients that are kept, at a root behind which nothing wanted lies.
    "hooks_gradients_kept_at_root_behind": """
v1 = T.tensor([-1.125, 1.0], dtype=T.float64).requires_grad_()
v2 = v1.pow(2)
v3 = v2.unflatten(0, (1, 2))
v2.backward(T.tensor([0.75, -1.875], dtype=T.float64), inputs=[v3])
v4 = v3.exp()
v3.backward(T.tensor([[-1.625, -0.5]], dtype=T.float64), inputs=[v4])
""",
    # A tensor in `inputs` runs its own node, which is freed then, hooks and all.
    "tensor_inputs_runs_own_node_freed": """
v1 = T.tensor([0.875, -1.25], dtype=T.float64).requires_grad_()
v2 = v1.exp()
h1 = v2.grad_fn.register_hook(lambda gi, go: log('h1', len(gi), go))
v2.sum().backward(inputs=[v2])
v2.sum().backward()
""",
    # autograd.grad leaves gradients with the tensors that retain them, as copies.
    "autograd": """
v1 = T.tensor([[1.0, -2.0]], dtype=T.float64).requires_grad_()
v2 = v1 * 2
v2.retain_grad()
v3, = T.autograd.grad(v2.sum(), v1)
v4 = v2.grad
v4.mul_(2)
""",
    # A leaf that wants no gradient any more gets none.
    "leaf_wants_gradient_any_more_gets": """
v1 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()
v2 = v1.exp()
v1.requires_grad_(False)
v2.sum().backward()
""",
    # Leaves are finished as soon as nothing can reach them: before the hook that fails.
    "leaves_finished_soon_nothing_can_reach": """
v1 = T.tensor([1.0], dtype=T.float64).requires_grad_()
v2 = T.tensor([2.0], dtype=T.float64).requires_grad_()
h1 = v1.register_hook(lambda g: log('first', g))
h2 = v2.register_hook(lambda g: log('second', g))
v3 = Wrong.apply(v1, 'raise')
v4 = v2 * 2
T.autograd.backward([v3.sum(), v4.sum()])
""",
    "leaves_finished_soon_nothing_can_reach_again": """
v1 = T.tensor([1.0], dtype=T.float64).requires_grad_()
v2 = T.tensor([2.0], dtype=T.float64).requires_grad_()
v3 = v1.exp()
v3.sum().backward()
v4 = v2 * 2
T.autograd.backward([v3.sum(), v4.sum()])
""",
    # Only leaves take an assignment to requires_grad.
    "only_leaves_take_assignment_requires_grad": """
v1 = T.tensor([1.0], dtype=T.float64).requires_grad_()
v2 = v1 * 2
v2.requires_grad = True
v2.requires_grad_()
v2.requires_grad = False
""",
    # A view made unrecorded wants gradients as its base does, but none reach it.
    "view_made_unrecorded_wants_gradients_base": """
v1 = T.tensor([[1.0, 2.0]], dtype=T.float64).requires_grad_()
with T.no_grad(): v2 = v1[0]
v3 = v2.sum()
v3.backward()
v4, = T.autograd.grad(v3, v2, allow_unused=True)
v2.backward(T.tensor([1.0, 1.0], dtype=T.float64))
v2.requires_grad_()
v2.sum().backward()
""",
    # A view's history follows every write, recorded or not.
    "view_s_history_follows_every_write": """
v1 = T.tensor([1.0, 2.0, 3.0], dtype=T.float64).requires_grad_()
v2 = v1 * 1
v3 = v2.view(3, 1)
v4 = v3.exp()
with T.no_grad(): v2.mul_(2)
v5, = T.autograd.grad(v4.sum(), v3, allow_unused=True, retain_graph=True)
v6, = T.autograd.grad(v3.sum(), v2)
""",
    # Overlaps.
    "overlaps": """
v1 = T.tensor([1.0, 2.0, 3.0], dtype=T.float64)
v1[1:] += v1[:-1]
v1[1:] = v1[:-1]
v1.view(3, 1).copy_(v1.view(1, 3))
v1[[0, 0]] = v1[:2]
v1.index_copy_(0, T.tensor([0]), v1)
v1.scatter_(0, T.tensor([0]), v1)
v1.index_add_(0, T.tensor([0, 1, 2]), v1)
v1.add_(v1[0])
T.exp(v1[:2], out=v1[1:])
v1[::2].add_(v1[1:2])
v1.add_(v1)
""",
    # Expanded tensors may be filled, not written.
    "expanded_tensors_may_be_filled_written": """
v1 = T.tensor([1.0], dtype=T.float64).expand(3)
v1.fill_(2)
v1.zero_()
v1[...] = 3
v1.mul_(2)
v1.copy_(T.tensor([1.0, 2.0, 3.0]))
T.exp(T.tensor([1.0, 2.0, 3.0]), out=v1)
""",
    # Results of the matrix product are no views.
    "results_matrix_product_views": """
v1 = T.tensor([[[1.0, 2.0]], [[3.0, 4.0]]], dtype=T.float64).requires_grad_()
v2 = v1 @ v1.mT
v3 = v1 @ T.tensor([1.0, 2.0], dtype=T.float64)
v4 = T.tensor([1.0], dtype=T.float64) @ v1
v5 = T.tensor(2.0).mT
""",
    # Types.
    "types": """
v1 = T.tensor([1, 2])
v2 = T.addcmul(v1, v1, v1, value=2)
v3 = T.nn.functional.mse_loss(T.tensor([1.0, 2.0]), v1 > 1)
v4 = T.nn.functional.mse_loss(v1, v1)
v5 = T.nn.functional.elu(v1)
v6 = T.nn.functional.leaky_relu(v1)
v7 = T.tensor([[1.0, 2.0], [3.0, 4.0]]).t().double()
v8 = T.where(v7 > 2, v7.contiguous(), v7)
""",
    # Indices into nothing, and beyond.
    "indices_into_nothing_beyond": """
v1 = T.tensor([], dtype=T.float64)
v2 = v1[T.tensor([0])]
v1[T.tensor([0])] = T.tensor([1.0, 2.0])
v3 = v1.view(0, 1).index_select(0, T.tensor([0]))
v4 = T.tensor(1.0).index_select(0, T.tensor([0, 0]))
v5 = T.tensor(1.0).take_along_dim(T.tensor(0), 0)
v6 = T.tensor([1.0]).index_add_(0, T.tensor([5]), T.tensor([1.0]))
v7 = T.tensor([1.0]).index_add_(0, T.tensor([0]), T.tensor(1.0))
v8 = T.tensor([[1.0]]).index_copy_(0, T.tensor([0]), T.tensor([1.0]))
v9 = T.tensor([1.0]).scatter_(2, T.tensor([0]), T.tensor([1.0], dtype=T.float64))
v10 = v1.view(0, 2).norm(float('inf'), 0)
v11 = T.tensor(1.0).scatter_add(0, T.tensor([0]), T.tensor([1.0]))
""",
    # An in-place operator is refused before its arguments are.
    "place_operator_refused_before_arguments": """
v1 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()
v1.index_add_(0, T.tensor([0]), v1)
v2 = (v1 * 1).split(1)[0]
v2.index_copy_(0, T.tensor([0, 1]), v2)
""",
    # Steps have no slope, whatever the gradient; the zero of relu's derivative knows its graph.
    "steps_have_slope_whatever_gradient": """
v1 = T.tensor([0.25, 1.75], dtype=T.float64).requires_grad_()
v2 = v1.round().reciprocal()
v2.sum().backward()
v3 = v1.relu()
v3.sum().backward(create_graph=True)
v4 = v1.grad
""",
    # New bytes, the old count of writes.
    "new_bytes_old_count_writes": """
v1 = T.tensor([1.0, 2.0], dtype=T.float64)
v1.mul_(2)
v1.data = T.tensor([3.0, 4.0], dtype=T.float64)
v1.mul_(2)
v2 = T.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=T.float64).t().requires_grad_()
v3, = T.autograd.grad(T.tensor([1.0], requires_grad=True).sum(), v2, materialize_grads=True)
""",
    # Results lie as their operands do, wherever these are stretched, sorted, flipped or filled.
    "results_lie_their_operands_do_wherever": """
v1 = T.tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]], dtype=T.float64).expand(2, 2, 3).permute(2, 0, 1)
v2 = T.hypot(v1, T.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=T.float64))
v3 = T.tensor([1.0, 2.0], dtype=T.float64) + T.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=T.float64).t().t()
v4 = T.tensor([1.0, 2.0, 3.0], dtype=T.float64) * T.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=T.float64).t()
v5 = v4.sort(0)[0]
v6 = v4.argsort(-1)
v7 = v4.flip(0)
v8 = v4.masked_fill(v4 > 2, 0.5)
v9 = 2 ** v4
v10 = v4.index_fill(0, T.tensor([0]), 1.0)
v11 = T.tensor([1.0, 2.0], dtype=T.float64).expand(1, 2)[1:]
""",
    # Which of several mistakes is named.
    "several_mistakes_named": """
v1 = T.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=T.float64)
v2 = T.zeros(2, 2, dtype=T.int64)
v1.scatter_(-2, v2, T.tensor(1.0, dtype=T.float64))
v1.scatter_(1, v2, T.tensor([1.0, 2.0], dtype=T.float64))
v1.scatter_add_(1, v2, T.tensor([1.0], dtype=T.float64))
v3 = T.tensor([]).scatter_add(0, T.tensor([], dtype=T.int64), T.tensor(1.0))
v4 = T.stack([T.tensor(1.0), T.tensor([1.0])], 1)
v1.index_copy_(0, T.tensor([0]), T.tensor([1.0]))
v1.index_copy_(0, T.tensor([0, 0]), T.tensor([[1.0, 2.0, 3.0]], dtype=T.float64))
v1.index_add_(1, T.tensor([0]), T.tensor([1.0, 2.0], dtype=T.float64))
v1.index_add_(0, T.tensor([0, 0]), T.tensor(1.0, dtype=T.float64))
v5 = T.tensor(1.0).index_add(0, T.tensor([0]), T.tensor([1.0]))
v6 = T.tensor([]).index_put_((T.tensor([0]),), T.tensor(1.0, dtype=T.float64))
v7 = T.tensor([True]).relu()
v8 = T.tensor([True]).addcmul(T.tensor([True]), T.tensor([True]))
v9 = T.tensor(True).cumsum_(0)
v10 = T.tensor([1.0]).requires_grad_()
v10.sub_(T.tensor([True]))
""",
    # Memory that is shared.
    "memory_shared": """
v1 = T.tensor([1.0], dtype=T.float64).expand(1, 2)
v1[...] = T.tensor(1.5)
v1.fill_(T.tensor(1.5))
v1.copy_(T.tensor([[1.5]]))
v1.copy_(v1)
v1.copy_(v1.detach())
v2 = T.tensor([1.0, 2.0, 3.0], dtype=T.float64)
v2[0:2] = v2[0]
v2[None] = v2
v2[0:1][None] = v2[0:1]
v2[0:2].copy_(v2[0])
v3 = T.tensor(1.0, dtype=T.float64)
T.maximum(v2, v3, out=v3)
v4 = T.tensor([1.0], dtype=T.float64).expand(2)
T.maximum(v2.view(3, 1), v2, out=v4)
""",
    # What is captured where more lies beyond is captured before the hooks.
    "captured_where_more_lies_beyond_captured": """
v1 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()
v2 = v1 * 2
h1 = v2.register_hook(lambda g: g * 3)
v3, v4 = T.autograd.grad(v2.sum(), [v1, v2], retain_graph=True)
v5, = T.autograd.grad(v2.sum(), [v2])
""",
    # A base and its views count writes together, whatever memory they show.
    "base_views_count_writes_together_whatever": """
v1 = T.tensor([1.0, 2.0, 3.0], dtype=T.float64)
v2 = v1[:2]
v3 = v1.detach()
v1.data = T.tensor([4.0, 5.0, 6.0], dtype=T.float64)
v1.add_(1)
v2.mul_(2)
v3.sub_(1)
v4 = v1.view(3, 1)
v2.set_(T.tensor([7.0, 8.0], dtype=T.float64))
v4.add_(1)
""",
    # What was saved of an input is that tensor as it is now.
    "was_saved_input_tensor_now": """
v1 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()
v2 = T.tensor([3.0, 4.0], dtype=T.float64)
v3 = v1 * 2
v4 = v3 * v2 + v3.exp() + v1 * v1
v1.data = T.tensor([10.0, 20.0], dtype=T.float64)
v2.data = T.tensor([30.0, 40.0], dtype=T.float64)
v3.data = T.tensor([50.0, 60.0], dtype=T.float64)
v4.sum().backward()
""",
    "was_saved_input_tensor_now_again": """
v1 = T.tensor([1.0, 2.0], dtype=T.float64)
v2 = T.tensor([3.0, 4.0], dtype=T.float64).requires_grad_()
v3 = v1 * v2
v1.requires_grad_()
v4, = T.autograd.grad(v3.sum(), v2, create_graph=True)
v4.sum().backward()
""",
    "was_saved_input_tensor_now_again_again": """
v1 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()
v2 = v1 * 2
v3 = v2 * v2
v2.detach_()
v2 = v2 * 2
v3.sum().backward()
""",
    # The operator that wrote a view runs within the base's node: the view's old history, with its hooks, is passed by.
    "operator_wrote_view_runs_within_base": """
v1 = T.tensor([1.75, -1.75, 0.875], dtype=T.float64).requires_grad_()
v2 = T.cat([v1, v1], 0)
v3 = v2.t()
h1 = v3.grad_fn.register_prehook(lambda go: tuple(None if g is None else g * 2 for g in go))
h2 = v3.register_hook(lambda g: log('h2', g))
v3.index_fill_(0, T.tensor([0]), 1.5)
h3 = v2.grad_fn.register_hook(lambda gi, go: log('h3', len(gi), go))
v2.sum().backward(create_graph=True)
""",
    "operator_wrote_view_runs_within_base_again": """
v1 = T.tensor([1.0, 2.0, 3.0], dtype=T.float64).requires_grad_()
v2 = T.tensor([2.0, 3.0], dtype=T.float64).requires_grad_()
v3 = v1 * 1
v4 = v3[1:]
v4.mul_(v2)
h1 = v3.grad_fn.register_hook(lambda gi, go: log('h1', gi, go))
v5, v6 = T.autograd.grad((v3 * v3).sum(), [v1, v2], create_graph=True)
(v5.sum() + v6.sum()).backward()
v4.set_(T.tensor([7.0, 8.0], dtype=T.float64))
v3.sum().backward()
""",
    # A hook of a leaf whose name is gone.
    "hook_leaf_whose_name_gone": """
v2 = T.tensor([1.0, 1.125], dtype=T.float32).requires_grad_()
h1 = v2.register_post_accumulate_grad_hook(lambda t: log('h1', t.grad))
v3 = v2 + v2
v2 = v3
v3.backward(T.tensor([1.5, -0.375], dtype=T.float32))
""",
    # A tensor that came to show itself otherwise keeps the gradient of what it was.
    "tensor_came_show_itself_otherwise_keeps": """
v1 = T.tensor([[1.0, 2.0, 3.0]], dtype=T.float64).requires_grad_()
v2 = v1 * 2
v2.retain_grad()
v2.transpose_(0, -1)
v3 = v2.amin(0, keepdim=True)
v3.sum().backward()
""",
    # A view whose base was detached and written leads nowhere, and its hooks stay behind.
    "view_whose_base_was_detached_written": """
v1 = T.tensor([[2.0, 0.5], [1.5, -0.375]], dtype=T.float64).requires_grad_()
v2 = v1[T.tensor(0)]
h1 = v2.register_hook(lambda g: log('h1', g))
v1.detach_()
v1.mul_(3)
v3, = T.autograd.grad(v2.sum(), v2, retain_graph=True, allow_unused=True)
""",
    # A part written into the tensor that it is a part of.
    "part_written_into_tensor_part": """
v1 = T.tensor([[-2.0], [-0.5]], dtype=T.float64).requires_grad_()
v2 = v1.clamp(min=0.25)
v3 = v2.split(1, 0)[0]
v2[-1] = v3
v2.sum().backward()
v3.retain_grad()
v4 = v3.argsort(0)
""",
    # Values that are saved for their version's sake, and looked at whichever gradients are wanted.
    "values_saved_their_version_s_sake": """
v1 = T.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=T.float64).requires_grad_()
v2 = v1 * 2
v3 = v2.gather(0, T.zeros_like(v2, dtype=T.int64))
v4 = v2.masked_select(v2 > 3)
v5 = v2.cummax(0)[0]
v6 = v1.index_add(0, T.tensor([0]), v2[:1])
v2.mul_(2)
v3.sum().backward(retain_graph=True)
v4.sum().backward(retain_graph=True)
v5.sum().backward(retain_graph=True)
v6.sum().backward(retain_graph=True)
v7 = v1 * v1.detach()
v8 = v1 ** v1.detach()
v8.mul_(2)
v8.sum().backward()
v9 = v1 * 3
v10 = v1 * v9
v9.mul_(2)
v11, = T.autograd.grad(v10.sum(), v9, allow_unused=True)
""",
    # What is saved and not needed is freed all the same.
    "saved_needed_freed_all_same": """
v1 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()
v2 = v1 ** 0
v2.sum().backward()
v2.sum().backward()
v3 = T.lerp(v1, v1 * 1, v1.detach())
v3.sum().backward()
v3.sum().backward()
v4 = v1 + v1
v4.sum().backward()
v4.sum().backward()
v5 = v1.norm(0, 0)
v5.sum().backward()
v5.sum().backward()
""",
    # A batch of products is seen anew: its node has nothing to free.
    "batch_products_seen_anew": """
v1 = T.tensor([[[1.0, 2.0], [3.0, 4.0]]], dtype=T.float64).requires_grad_()
v2 = v1 @ v1.mT
v2.sum().backward(inputs=[v2])
v2.sum().backward()
""",
    # Strides over single elements, which a cut after them shows.
    "strides_over_single_elements_cut_after": """
v1 = T.tensor([[1.0], [2.0]], dtype=T.float64).requires_grad_()
v2 = v1.mT
v3 = v2.atan()[1:]
v4 = (v2 * 2)[1:]
v5 = (v2 + v2)[1:]
v6 = v2.masked_fill(v2 > 0, 1.0)[1:]
v7, = T.autograd.grad(v2.sum(), v2, retain_graph=True)
v8 = v7[1:]
v9 = v1[::2]
v10 = v9.view(v9.shape)
v11 = v10[1:]
v12 = v9.mean(0)
v13, = T.autograd.grad(v12.sum(), v9)
v14 = T.tensor([[[1.0, 2.0], [3.0, 4.0]]], dtype=T.float64).permute(2, 1, 0)
v15 = v14[[0]]
v16 = v14[:, [1, 0]]
""",
    # The order of a gradient's dimensions is its formula's.
    "order_gradient_s_dimensions_formula_s": """
v1 = T.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=T.float64).requires_grad_()
v2 = v1.t() * 1
v3 = v2.exp()
v4 = T.maximum(v2, v3)
v5, v6 = T.autograd.grad(v4.sum(), [v2, v3])
""",
    # Gradients of views are views: the same values, and another tensor.
    "gradients_views_views": """
v1 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()
v2 = v1.view(-1)
v3, v4 = T.autograd.grad(v2.sum(), [v1, v2], retain_graph=True)
v5 = v1 * 1
v6 = v5.view(2)
v7, v8 = T.autograd.grad(v6.sum(), [v5, v6])
v7.atan2_(v1)
v9 = v5.as_strided((2,), (1,))
v10, = T.autograd.grad(v9.sum(), v5)
v11 = v10.narrow(0, 0, 1)
""",
    # Truth values are refused before shapes are compared; nothing at all has a softmax of any dtype.
    "truth_values_refused_before_shapes_compared": """
v1 = T.tensor([True, False, True], dtype=T.bool)
v2 = T.tensor([1.0, 2.0], dtype=T.float64)
v3 = v1 - v2
v1.sub_(v2)
v4 = T.tensor([], dtype=T.int64).softmax(-1)
v5 = T.tensor([], dtype=T.bool).log_softmax(0)
""",
    # Filling expanded tensors is deprecated, and done element after element.
    "filling_expanded_tensors_deprecated_done_element": """
v1 = T.tensor([[1.0], [2.0]], dtype=T.float64).requires_grad_()
v2 = (v1 * 2).expand(2, 3)
v2.index_fill_(0, T.tensor([0]), 1.5)
v3 = T.tensor([[1.0], [2.0]], dtype=T.float64).expand(2, 3)
v3.index_put_((T.tensor([0]),), T.tensor(5.0, dtype=T.float64), accumulate=True)
v3.masked_fill_(v3 > 4, 0.25)
v3[T.tensor([0])] = 0.5
v3[v3 > 1] = 7
v3.tril_()
v3.triu_()
v3.add_(1)
v3.index_copy_(0, T.tensor([0]), v2)
""",
    # A number that is put by one index or mask is a filling.
    "number_put_one_index_or_mask": """
v1 = T.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=T.float64).requires_grad_()
v2 = v1 * 1
v2[T.tensor([0])] = 0.5
h1 = v2.grad_fn.register_hook(lambda gi, go: log('h1', len(gi), go))
v2.sum().backward()
v3 = v1 * 1
v3[v3 > 2] = 0.5
h2 = v3.grad_fn.register_hook(lambda gi, go: log('h2', len(gi), go))
v3.sum().backward()
v4 = v1 * 1
v4[T.tensor([0])] = T.tensor(1.5)
v5 = v1[:0].atan()
v5[[0, 0]] = 2
v5.index_copy_(0, T.tensor([0]), v1[:1])
v6 = v1.narrow(0, 1, 0)
v6.detach().index_fill_(0, T.tensor([0]), 1.5)
""",
    # A stale view is refused before anything else is looked at.
    "stale_view_refused_before_anything_else": """
v1 = T.tensor([[1.0, 2.0]], dtype=T.float64).requires_grad_()
v2 = v1 * 1
v3 = v2.split(1, 1)[0]
v2.mul_(2)
v4 = v3.sort(3)[1]
v5 = v3.transpose(4, 5)
v6 = v3[..., T.tensor([5])]
v7 = T.tensor([[1.0]], dtype=T.float64)
v7[...] = v3
""",
    # What memory shares: element by element, or otherwise.
    "memory_shares": """
v1 = T.tensor([[1.0, 2.0, 3.0]], dtype=T.float64)
v1.view(1, 1, 3).div_(v1.flatten())
v2 = T.tensor([], dtype=T.float64)
v3 = v2.squeeze()
v3.index_copy_(0, T.tensor([0]), v2)
v4 = T.tensor([1.0], dtype=T.float64)
v4[v4 > 0] = v4
v5 = T.tensor([1.0, 2.0, 3.0], dtype=T.float64).narrow(0, 1, 1)
T.maximum(v4, v4, out=v5)
""",
    # Constants where there is too little to vary, and where there is one factor.
    "constants_where_there_too_little_vary": """
v1 = T.tensor([], dtype=T.float64).requires_grad_()
v1.var().backward(create_graph=True)
v2 = T.tensor([[1.0, 2.0]], dtype=T.float64).requires_grad_()
v2.cumprod(0).sum().backward(create_graph=True)
v3 = T.tensor(2.0, dtype=T.float64).requires_grad_()
v3.prod().backward(create_graph=True)
v4 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()
v4[0].scatter_add(0, T.tensor(0), v4).backward()
""",
    # An operator in place that keeps its result finds it written over.
    "operator_place_keeps_result_finds_written": """
v1 = T.tensor([1.0, -2.0], dtype=T.float64).requires_grad_()
v2 = v1 * 1
v2.relu_()
v2.div_(2)
v2.sum().backward()
""",
    # What was laid out anew unrecorded takes no gradient of its new shape.
    "was_laid_out_anew_unrecorded_takes": """
v1 = T.tensor([[1.0, 2.0, 3.0]], dtype=T.float64).requires_grad_()
v2 = v1 + v1
with T.no_grad(): v2.t_()
v3 = v2.sum(-2)
v4, = T.autograd.grad(v3.sum(), v1)
""",
    # Results are kept whoever wants gradients, and operands that several derivatives read.
    "results_kept_whoever_wants_gradients_operands": """
v1 = T.tensor([[-1.75, 0.25]], dtype=T.float64).requires_grad_()
with T.no_grad(): v2 = v1.t()
v3 = T.hypot(v2, v2)
v3.sub_(v2)
v3.sum().backward()
v4 = T.atan2(v2, v2)
with T.no_grad(): v2[:1] = 1.5
v4.sum().backward()
""",
    # A view laid out anew has a history of its own; the gradient that it keeps is that of the old shape.
    "view_laid_out_anew_has_history": """
v1 = T.tensor([[-1.75, -1.625], [-0.625, 1.5]], dtype=T.float64).requires_grad_()
v2 = v1 / 2
v3 = v2.reshape(-1, 1)
v3.retain_grad()
v3.t_()
v3.backward(T.tensor([[-2.0, -0.25, 0.5, -1.5]], dtype=T.float64), inputs=[v3], retain_graph=True)
v3.sum().backward()
v4 = (v1 * 2).view(1, 4)
v4.backward(T.tensor([[0.5, 1.0, 2.0, 3.0]], dtype=T.float64), inputs=[v4], retain_graph=True)
v4.transpose_(0, -1)
v4.sum().backward(inputs=[v4], retain_graph=True)
""",
    # A loss keeps its target as it is, of whatever type and shape.
    "loss_keeps_target_whatever_type_shape": """
v1 = T.tensor([[-1.125, 1.625], [-0.875, 0.875]], dtype=T.float64).requires_grad_()
v2 = T.tensor([[1, 0], [2, 1]], dtype=T.int64)
v3 = T.nn.functional.mse_loss(v1, v2)
v2.index_fill_(0, T.tensor([0]), 1)
v3.sum().backward()
v4 = v1.detach() > 0
v5 = T.nn.functional.smooth_l1_loss(v1, v4)
v4.data = T.tensor([[True, True], [True, False]])
v5.backward()
v6 = T.tensor(1.625, dtype=T.float64).requires_grad_()
h1 = v1.register_hook(lambda g: g.float())
v7 = T.nn.functional.huber_loss(v6, v1)
v7.backward()
""",
    # How gradients lie in memory, by the steps of their formulas.
    "how_gradients_lie_memory_steps_their": """
v1 = T.tensor([[-2.0, -0.125], [-1.625, -2.0]], dtype=T.float64).requires_grad_()
v2 = v1.transpose(1, 0)
v3, = T.autograd.grad(v2.reciprocal().sum(), v2, retain_graph=True)
v4, = T.autograd.grad(v2.rsqrt().sum(), v2, retain_graph=True)
v5, = T.autograd.grad(v2.erf().sum(), v2, retain_graph=True)
v6, = T.autograd.grad(v2.std(-1).sum(), v2, retain_graph=True)
v7, = T.autograd.grad(v2.prod(), v2, retain_graph=True)
v8, = T.autograd.grad((2.0 ** v2).sum(), v2, retain_graph=True)
v9, v10 = T.autograd.grad(T.nn.functional.mse_loss(v2, v1), [v2, v1], retain_graph=True)
v11, v12 = T.autograd.grad(T.atan2(v2, v1).sum(), [v2, v1], retain_graph=True)
v13, v14 = T.autograd.grad((v2 / v1).sum(), [v2, v1], retain_graph=True)
v15 = v2.clamp(-0.5, 0.5)
v16, = T.autograd.grad(v15, v2, T.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=T.float64), retain_graph=True)
v17, = T.autograd.grad(v2.relu(), v2, T.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=T.float64), retain_graph=True)
""",
    # Products of truth values have a kernel where there is nothing to multiply.
    "products_truth_values_have_kernel_where": """
v1 = T.tensor([], dtype=T.bool).unflatten(-1, (1, 0))
v2 = v1 @ v1.transpose(-1, -2)
v3 = T.dot(v1.flatten(), v1.flatten())
""",
    # A root that shows another shape than its node made.
    "root_shows_another_shape_than_node": """
v1 = T.tensor([], dtype=T.float64).requires_grad_()
v2 = T.outer(v1, T.tensor([], dtype=T.float64)).squeeze(0)
v2.data = T.tensor([], dtype=T.float64)
v2.backward(T.tensor([], dtype=T.float64))
""",
    # Gradients of nothing are zeros without a history.
    "gradients_nothing_zeros_without_history": """
v1 = T.tensor([[1.25, 0.25]], dtype=T.float64).requires_grad_()
v2 = v1 * v1
v3 = v2.narrow(0, 1, 0)
v2.index_fill_(1, T.tensor([0]), 1.5)
v3.pow(0.5).sum().backward(create_graph=True)
v4 = T.tensor([], dtype=T.float64).requires_grad_()
v5 = T.cat([T.tensor([], dtype=T.float64), v4], -1)
v6 = v5.sigmoid_()
T.autograd.backward([v4.sum(), v5.sum()], create_graph=True)
""",
    # A view that was written keeps that history when its base is detached.
    "view_was_written_keeps_history_when": """
v1 = T.tensor(1.375, dtype=T.float64).requires_grad_()
v2 = v1.exp()
v3 = v2.permute(())
v3.mul_(-1)
v2.detach_()
v3.backward()
""",
    # The first gradient of a leaf that was resized since.
    "first_gradient_leaf_was_resized_since": """
v1 = T.tensor(-0.875, dtype=T.float64).requires_grad_()
v2 = (v1 * 1).repeat(2, 1)
with T.no_grad(): T.maximum(v2, v2, out=v1)
v2.backward(T.tensor([[0.75], [-1.625]], dtype=T.float64), create_graph=True)
""",
    # What the steps of a derivative keep is the tensors that the node kept.
    "steps_derivative_keep_tensors_node_kept": """
v1 = T.tensor([-1.0, 0.125], dtype=T.float64).requires_grad_()
v2 = v1 * 2
v3 = T.hypot(v2, v2)
v4, v5 = T.autograd.grad(v3.sum(), [v1, v3], create_graph=True)
v5.data = T.tensor([-2.0, -0.625], dtype=T.float64)
v4.sum().backward()
v6 = v1.exp()
v7, = T.autograd.grad(v6.log().sum(), v6, create_graph=True)
v6.detach_()
v7.sum().backward()
""",
    # The derivative of a square is a power, whose own derivative is one.
    "derivative_square_power_whose_own_derivative": """
v1 = T.tensor([1.5, -2.0], dtype=T.float64).requires_grad_()
v2, = T.autograd.grad(v1.square().sum(), v1, create_graph=True)
v3, = T.autograd.grad(v2.sum(), v1, create_graph=True)
v4, = T.autograd.grad(v3.sum(), v1, create_graph=True)
""",
    # Hooks of a Function see the gradients of its tensors.
    "hooks_function_see_gradients_tensors": """
v1 = T.tensor([-1.125], dtype=T.float64).requires_grad_()
v2 = Once.apply(v1 * 1, 3)
h1 = v2.grad_fn.register_hook(lambda gi, go: log('h1', len(gi), go))
h2 = v2.grad_fn.register_hook(lambda gi, go: tuple(g * 2 for g in gi))
v2.sum().backward()
h3 = v1.register_post_accumulate_grad_hook(lambda t: t.grad)
(v1 * 2).sum().backward()
""",
    # No dimensions, and no other size.
    "dimensions_other_size": """
v1 = T.tensor(0.75, dtype=T.float64)
v2 = v1.masked_scatter(v1 > 0, T.tensor([3.0, 4.0], dtype=T.float64))
v3 = v1.masked_scatter(v1 > 1, v1)
v4 = T.tensor([1.0, 2.0], dtype=T.float64)
v5 = v4.view(2)
v5.resize_(2)
v5.resize_as_(v4)
""",
    # The gradient that came into a loss was saved, and is written over.
    "gradient_came_into_loss_was_saved": """
v1 = T.tensor([1.0, 2.0], dtype=T.float32).requires_grad_()
v2 = T.tensor([0.5, 0.0], dtype=T.float64).requires_grad_()
v4 = T.nn.functional.mse_loss(v2, v1)
v7 = T.lerp(v4, v4, 0.25)
v9, v10 = T.autograd.grad(v7.sum(), [v4, v2], create_graph=True)
v9.sqrt_()
v10.sum().backward(retain_graph=True)
""",
    # A value of another shape lies otherwise than the target that it is a view of.
    "value_another_shape_lies_otherwise_than": """
v2 = T.tensor([[-1.75, -1.125, 0.25]], dtype=T.float32).requires_grad_()
v3 = v2.prod(1)
v5 = v3.unflatten(0, (1, 1))
v3[:] = v5[:]
v3[:] = v5[0]
""",
    # Nothing is recorded of truths: their arguments are looked at first.
    "nothing_recorded_truths": """
v1 = T.tensor([[-0.375, 0.25, 0.5]], dtype=T.float32).requires_grad_()
v4 = T.stack([v1, v1], -2)
v7 = Same.apply(v4, v4)[0]
v9 = Triple_.apply(v4)
v18 = v7.any(3, keepdim=True)
v19 = v7.signbit()
v20 = v7.eq(T.ones(5))
""",
    # A view that was made unrecorded of what wants gradients seems to want them where it was saved, too.
    "view_was_made_unrecorded_wants_gradients": """
v2 = T.tensor([1.625, 1.75, 0.125], dtype=T.float64).requires_grad_()
with T.no_grad(): v4 = v2.view_as(v2)
v6 = v4 * v2
v6.sum().backward(create_graph=True)
v7 = Product.apply(v4, v2)
v8, = T.autograd.grad(v7.sum(), v2, create_graph=True)
""",
    # Losses are told of shapes that do not fit before they are told of types.
    "losses_told_shapes_do_fit_before": """
v1 = T.tensor([[True, False, True], [False, True, False]])
v2 = T.tensor([[[True], [False], [True]]])
v3 = T.nn.functional.mse_loss(v2, v1)
v4 = T.nn.functional.smooth_l1_loss(v2, v1)
v5 = T.nn.functional.huber_loss(v2, v1)
v6 = T.nn.functional.mse_loss(v1, v1)
""",
    # The norm of one number is no power.
    "norm_one_number_power": """
v6 = T.tensor([[8.046875]], dtype=T.float64).requires_grad_()
v15 = v6.norm(3, 1, keepdim=True)
v21 = T.remainder(v15, v6)
v22 = v6.norm(0.5)
v22.backward()
""",
    # The gradient of a running extremum of nothing is the input.
    "gradient_running_extremum_nothing_input": """
v2 = T.tensor([], dtype=T.float32).requires_grad_()
v9 = v2.sub(0.5)
v13 = v9.cummax(-1)[0]
h2 = v9.register_hook(lambda g: log('h2', g, g.requires_grad))
v13.sum().backward(retain_graph=True)
""",
    # How gradients of reductions lie.
    "how_gradients_reductions_lie": """
v1 = T.tensor([[-1.375, -0.5, 1.0], [-1.875, 1.0, 1.0]], dtype=T.float64).requires_grad_()
v2 = v1.neg().t()
v3, = T.autograd.grad(v2.max(), v2)
v4, = T.autograd.grad(v2.median(), v2)
v5, = T.autograd.grad(v2.norm(), v2)
v6, = T.autograd.grad(v2.norm(3, 0).sum(), v2)
""",
    # A view that can no longer be read cannot be what another tensor shows from now on, where that is recorded.
    "view_can_longer_be_read_cannot": """
v1 = T.tensor([0.5, -2.0], dtype=T.float32).requires_grad_()
v7 = T.tensor([1.0, 2.0], dtype=T.float32)
v12 = T.tensor([3.0, 4.0], dtype=T.float32)
v13 = Same.apply(v7, v1)[0]
v7.neg_()
v12.set_(v13)
""",
    # Truths are written into what wants gradients, too.
    "truths_written_into_wants_gradients_too": """
v1 = T.tensor([[1.5, -2.0]], dtype=T.float64).requires_grad_()
v2 = v1 * 1
T.gt(v1, 0, out=v2)
v2.sum().backward()
T.argmax(v1, out=v2)
T.matmul(v1 > 0, (v1 > 0).mT, out=v2)
""",
    # Sums are computed in the type that they are written in.
    "sums_computed_type_written": """
v1 = T.tensor([[1.5, 2.25], [3.75, 0.5]], dtype=T.float64)
v2 = T.tensor([0, 0])
T.sum(v1, 0, out=v2)
v3 = T.tensor([True, True])
T.sum(v1, 0, out=v3)
v4 = T.tensor([[0, 0], [0, 0]])
T.cumsum(v1, 0, out=v4)
T.prod(v1, 0, out=v2)
v5 = T.tensor([1.5, float('nan'), 1.5]).nansum(dtype=T.int64)
""",
    # What is stacked is not written over.
    "stacked_written_over": """
v2 = T.tensor([-1.5, -1.0, 0.375], dtype=T.float32)
T.stack([v2], out=v2.view(3))
T.vstack([v2[:2]], out=v2[1:].view(1, 2))
""",
    # Of several roots only those have a turn behind which something wanted lies.
    "several_roots_only_those_have_turn": """
v1 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()
v2 = v1 * 2
v3 = T.tensor([3.0], dtype=T.float64).requires_grad_()
v4 = v3 * v3
h1 = v2.register_hook(lambda g: log('h1', g))
v2.retain_grad()
v5, = T.autograd.grad([v2, v4.sum()], v3, [v1.detach(), None], retain_graph=True)
T.autograd.backward([v2, v4], [v1.detach(), None], inputs=[v3], retain_graph=True)
v2.backward(v1.detach(), inputs=[v3])
""",
    # What is written with out= is not offered to hooks before it is refused.
    "written_with_out_offered_hooks_before": """
v1 = T.tensor([-0.75, -0.375], dtype=T.float64).requires_grad_()
v2 = T.zeros(2, dtype=T.float64)
with T.autograd.graph.saved_tensors_hooks(lambda t: log('k', t) or t, lambda t: t): T.exp(v1, out=v2)
with T.autograd.graph.saved_tensors_hooks(lambda t: log('k', t) or t, lambda t: t): T.mul(v1, T.ones(3), out=v2)
with T.no_grad(): T.exp(v1, out=v2)
""",
    # The median of nothing is what a cast of NaN is.
    "median_nothing_cast_nan": """
v1 = T.tensor([], dtype=T.bool).median()
v2 = T.tensor([], dtype=T.int64).median()
""",
    # Transforms of inference tensors are recorded outside as they are without transforms.
    "transforms_inference_tensors_recorded_outside_without": """
v1 = T.tensor([-2.0, 1.5], dtype=T.float64).requires_grad_()
v2 = T.sub(v1, v1)
with T.inference_mode(): v3 = v1 * 2
v4 = T.func.grad(lambda x: (x * v2).sum())(v3)
v5 = T.func.grad(lambda x: (x * v3).sum())(v1)
v6 = T.func.grad(lambda x: (x * v3).sum())(v2.detach())
v7 = T.func.jvp(lambda x: x * v2, (v3,), (v3,))[1]
""",
    # A Function that writes takes the place of what led to the view, however late that was looked at.
    "function_writes_takes_place_led_view": """
v1 = T.tensor([-0.125, 0.125, -0.125, -0.125], dtype=T.float64).requires_grad_()
v2 = v1 * 2
v3 = v2.view(4)
h1 = T.autograd.graph.register_multi_grad_hook((v3, v3), lambda gs: log('h1', [g for g in gs]))
v4 = v3.t()
v5 = Triple_.apply(v4)
v4.sum().backward(retain_graph=True)
v3.sum().backward()
""",
    # The zeros that stand for a missing tangent: of each gradient of a batch, and with a history of their own.
    "zeros_stand_missing_tangent": """
v1 = T.tensor([-1.75, -1.625, 1.5], dtype=T.float64).requires_grad_()
v2 = T.tensor([-2.0, -0.625, -1.625], dtype=T.float64).requires_grad_()
v3 = forward_mode(lambda x: x * v1, v2, T.ones_like(v2)).tangent
v4, = T.autograd.grad(v3, v2, T.stack([T.ones_like(v3), v3.detach() * 2]), create_graph=True, is_grads_batched=True)
v5 = forward_mode(lambda x: x * v2.detach(), v1, v1.detach()).tangent
v5.sin().sum().backward(create_graph=True)
""",
    # A complex tangent of a real tensor is real after an operator on one tensor.
    "complex_tangent_real_tensor_real_after": """
v1 = T.tensor([-0.375, 1.75], dtype=T.float64)
v2 = v1.to(T.complex64)
v3 = forward_mode(lambda x: x.clamp(-0.5, 0.5), v1, v2).tangent
v4 = forward_mode(lambda x: x.sin(), v1, v2).tangent
v5 = forward_mode(lambda x: x * 2, v1, v2).tangent
""",
    # A derivative whose values are refused has them still.
    "derivative_whose_values_refused_has_them": """
v1 = T.tensor([1.125, 1.25], dtype=T.float64).requires_grad_()
v2 = v1.exp()
with T.no_grad(): v2.mul_(2)
v2.sum().backward()
v2.sum().backward()
with T.autograd.graph.allow_mutation_on_saved_tensors(): v3 = v1.masked_fill(v1 > 1.2, 0)
v3.sum().backward()
v3.sum().backward()
""",
    # The gradient of an input is no view, though the input is one.
    "gradient_input_view_though_input_one": """
v1 = T.tensor(1.0, dtype=T.float64).requires_grad_()
v2 = T.func.vjp(lambda x: x.clone().mul_(3), v1.real)[0]
v3, = T.autograd.grad(v2.sum(), T.autograd.graph.get_gradient_edge(v1), retain_graph=True)
v3.detach_()
""",
    # What the derivative of relu takes first is the gradient.
    "derivative_relu_takes_first_gradient": """
v1 = T.tensor([-1.625, 0.875], dtype=T.float64).requires_grad_()
v2 = v1 * 1
v3, = T.autograd.grad(v2.relu().sum(), v2, create_graph=True)
log([n is None for n, _ in v3.grad_fn.next_functions])
v4 = T.func.vmap(T.func.grad(lambda x: x.relu().sum()))(v2)
h1 = v4.grad_fn.next_functions[0][0].register_prehook(lambda go: go)
""",
    # put_ has gradients for each of a batch; a number has no part to index.
    "put_has_gradients_each_batch": """
v1 = T.tensor([-1.875, 1.5, 1.875], dtype=T.float64).requires_grad_()
v2 = (v1 * 2).put_(T.tensor([0]), T.tensor([0.5], dtype=T.float64))
v3, = T.autograd.grad(v2, v1, T.stack([T.ones_like(v2), v2.detach() * 2]), retain_graph=True, is_grads_batched=True)
v4 = v1.sum()[..., 0]
v5 = v1.sum()[0]
""",
    # Nothing is recorded of a view of an inference tensor.
    "nothing_recorded_view_inference_tensor": """
with T.inference_mode(): v1 = T.tensor(-0.625, dtype=T.float64).requires_grad_()
v2 = v1.view(1, 1)
""",
    # What has no elements reaches nowhere, and is passed over.
    "has_elements_reaches_nowhere_passed_over": """
v2 = T.tensor([], dtype=T.float64).requires_grad_()
v3 = v2.repeat(2, 1)
v3[1:, None].scatter_(0, T.zeros_like(v3[1:, None], dtype=T.int64), -1)
v3.sum().backward()
v4 = T.tensor([], dtype=T.float64)
T.stack([v4], out=v4)
v5 = T.tensor([[1.5, -2.0]], dtype=T.float64).t().unsqueeze(1).norm(1, -2, keepdim=True)
""",
    # A slice that takes all is a view where it says so from the end; of nothing, too.
    "slice_takes_all_view_where_says": """
v2 = T.tensor([], dtype=T.float64).requires_grad_()
v3 = v2 / v2
v3[:-1] = 2
v4 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_().exp()
v4[-2:] = 2
log(v4.grad_fn.name())
T.autograd.backward([v3.sum()], inputs=[v3])
v8 = v3 * 3
v8.sum().backward(create_graph=True)
""",
    # What was saved is the tensor itself, while that lives.
    "was_saved_tensor_itself_while_lives": """
v2 = T.tensor([], dtype=T.float64).requires_grad_()
v4 = v2 * 1
v5 = v4.cummax(0)[0]
v6, v7 = T.autograd.grad(v5.sum(), [v4, v5], create_graph=True, allow_unused=True)
log(v6 is v4)
""",
    # Where there is nothing to multiply no dtype is wrong.
    "where_there_nothing_multiply_dtype_wrong": """
v1 = T.tensor([[True, True, False]], dtype=T.bool)[None][1:]
v2 = v1 @ v1.transpose(-1, -2)
v3 = v1.transpose(-1, -2) @ T.tensor([[1.0]], dtype=T.float32).expand(0, 1, 1)
v4 = v1[0:0, :, 0] @ T.tensor([True])
v5 = T.baddbmm(v2, v1, v1.transpose(-1, -2))
""",
    # A tensor that came to be where another was that is gone is not that one.
    "tensor_came_be_where_another_was": """
v2 = T.tensor([[1.375, 0.75], [1.0, 0.125], [1.875, -1.5]], dtype=T.float64).requires_grad_()
v4 = v2.t()
v10 = v2 @ v2.transpose(-1, -2)
v12 = v4.detach().requires_grad_()
T.autograd.backward([v12.sum(), v10.sum()], retain_graph=True)
""",
    # The logarithm of three is as near as can be: whole numbers are made of it.
    "logarithm_three_near_can_be": """
v1 = T.tensor([1.75, 0.125, -0.875, -2.0, -1.25, 0.125], dtype=T.float64) + 1.25
v2 = v1.log().exp().to(T.int64)
""",
    # While something computed leads to a leaf's end of the graph, that takes gradients of the shape that it was made for.
    "while_something_computed_leads_leaf_s": """
v1 = T.tensor([[1.375], [-2.0]], dtype=T.float64).requires_grad_()
v2 = v1 * v1
with T.no_grad(): T.sum(v2, 0, out=v1)
v1.narrow(0, 0, 1).sum().backward()
v2.sum().backward()
v1.grad = None
del v2
v1.narrow(0, 0, 1).sum().backward()
""",
    "while_something_computed_leads_leaf_s_again": """
v1 = T.tensor([1.25, 0.625, 0.0], dtype=T.float64).requires_grad_()
v2 = v1 * 2
v1.data = T.ones(2, 3, dtype=T.float64)
v1.sum().backward()
v2.sum().backward()
with T.no_grad(): v1.unsqueeze_(-1)
(v1 * 3).sum().backward()
""",
    # An operator has no kernel for complex numbers after it has refused to be recorded.
    "operator_has_kernel_complex_numbers_after": """
v1 = T.tensor([-1.375, 1.0], dtype=T.float64).requires_grad_()
v2 = v1.to(T.complex64)
T.maximum(v1, v2, out=v2)
T.sort(v2, out=(v2, T.tensor([0, 0])))
v3 = T.tensor([[False], [True]])
T.matmul(v3, v3.mT, out=T.ones(2, 2))
v4 = v3[:0].unsqueeze(0) @ v3[:0].mT.unsqueeze(0)
""",
    # Memory of inference mode in an ordinary tensor.
    "memory_inference_mode_ordinary_tensor": """
v1 = T.tensor([1.0, 2.0], dtype=T.float64)
with T.inference_mode(): v2 = T.ones(2, dtype=T.float64)
v1.set_(v2)
v1.add_(1)
v1.unsqueeze_(0)
v3 = v1[0]
v3.mul_(2)
log(v1.is_inference(), v2.is_inference(), v3.is_inference())
v4 = (v1.requires_grad_() * 2).sum()
v4.backward()
""",
    # What was overwritten has zeros as a gradient: for each of a batch.
    "was_overwritten_has_zeros_gradient": """
v1 = T.tensor([-1.75, -1.625, 1.5], dtype=T.float64).requires_grad_()
v2 = (v1 * 2).fill_(3)
v3, = T.autograd.grad(v2, v1, T.eye(3, dtype=T.float64), is_grads_batched=True)
v4 = v1 * 2
v4[...] = T.tensor(0.5, dtype=T.float64)
v5, = T.autograd.grad(v4, v1, T.eye(3, dtype=T.float64), is_grads_batched=True)
""",
    # A write through a view whose gradient fails keeps what it saved.
    "write_through_view_whose_gradient_fails": """
v1 = T.tensor([1.0], dtype=T.float64).requires_grad_()
v2 = v1 * 1
v2.expand(2, 1).masked_fill_(T.ones(2, 1) > 0, 0.5)
v2.backward(T.ones_like(v2))
v2.backward(T.ones_like(v2), inputs=[v2])
v2.backward(T.ones_like(v2), inputs=[v2])
""",
    # A view of whole numbers has no history that a Function could override.
    "view_whole_numbers_has_history_function": """
v1 = T.tensor([1.5, 1.375], dtype=T.float32).requires_grad_()
v2 = v1 * 1
v3 = T.tensor([[1, -1], [2, 0]])[0]
v4 = Both_.apply(v2, v3)[1]
""",
    # What is saved before something that cannot be is packed all the same.
    "saved_before_something_cannot_be_packed": """
v1 = T.tensor([0.25, 0.125], dtype=T.float64).requires_grad_()
with T.inference_mode(): v2 = v1.sin()
with T.autograd.graph.saved_tensors_hooks(lambda t: log('packed', t) or t, lambda t: t): v3 = Product.apply(v1, v2)
""",
    # An operand that overlaps its target otherwise is found before a kernel is missing.
    "operand_overlaps_target_otherwise_found_before": """
v1 = T.tensor(True)
v1.flatten().addcmul_(v1, v1, value=0.5)
v2 = T.tensor([[3], [0]])
v2.t().unsqueeze(0).lerp_(v2, 0.5)
v2.lerp_(v2, 0.5)
""",
    # Not a view, though it is made of a line.
    "view_though_made_line": """
v1 = T.tensor(-2.0, dtype=T.float64).requires_grad_()
v2 = v1.masked_scatter(v1 < 0, v1 * 4)
log(v2._is_view(), [n is None for n, _ in v2.grad_fn.next_functions])
v2.sum().backward()
v2.detach_()
""",
    # A transform's backward does not run under the caller's no_grad: views among its gradients may be written.
    "transform_s_backward_does_run_under": """
v1 = T.tensor([[1.0, 2.0]], dtype=T.float64)
v2 = T.tensor([[0.5, 0.25]], dtype=T.float64).requires_grad_()
v3 = T.func.grad(lambda x: (x.t().exp() * 2).sum())(v1)
v3.add_(v2)
v3.sum().backward()
with T.no_grad(): v4 = T.func.grad(lambda x: (x.t().exp() * 2).sum())(v1)
v4.add_(v2)
v5 = T.func.vjp(lambda x: x.t(), v1)[1](T.ones(2, 1, dtype=T.float64))[0]
v5.add_(v2)
""",
    # What the gradient of a loss is made of counts as saved.
    "gradient_loss_made_counts_saved": """
v1 = T.tensor([[0.125, 1.375, 1.375]], dtype=T.float32).requires_grad_()
v2 = T.tensor([[0.5, 0.75, -1.875]], dtype=T.float64).requires_grad_()
v6 = v1.add(True)
v7 = T.nn.functional.mse_loss(v6, v2)
v8, v9 = T.autograd.grad(v7.sum(), [v6, v7], create_graph=True)
v6.detach().mul_(2)
v8.sum().backward()
""",
    # What is written must be up to date before it is asked whether it fits.
    "written_must_be_up_date_before": """
v1 = T.tensor([[1.625, 1.5, -1.75], [-1.0, 0.125, 1.625]], dtype=T.float64).requires_grad_()
v3 = v1 / v1
v5 = v3.masked_select(v3 < 0.5)
with T.no_grad(): v8 = v1.mT
v11 = Triple_.apply(v8)
v5.index_copy_(0, T.tensor([0]), v8)
""",
    # The derivative of leaky_relu's gradient saves nothing of it.
    "derivative_leaky_relu_s_gradient_saves_nothing": """
v1 = T.tensor(-1.25, dtype=T.float64).requires_grad_()
v6 = T.nn.functional.leaky_relu(v1 * -2)
v7 = T.autograd.grad(v6.sum(), [v6, v1], create_graph=True)
v12 = v7[1] * v1
v13 = v7[0].transpose_(0, -1)
v12.backward(T.tensor(-0.75, dtype=T.float64), retain_graph=True)
""",
    # Operands of another type are read from dense copies.
    "operands_another_type_read_from_dense": """
v1 = T.tensor([[1.0, 0.0], [1.0, -0.625], [-1.5, 1.75]], dtype=T.float32)
v2 = T.tensor([2, 3, 3], dtype=T.int64).expand(2, 3)
v3 = v2 * v1.t()
v4 = v1.t() * v2
v5 = v2 > v1.t()
v6 = v2 / T.tensor([[1, 2], [3, 4], [5, 6]]).t()
v7 = T.where(v3 > 0, v2, v1.t())
""",
    # Single elements beside an index lie as far apart as the index is long.
    "single_elements_beside_index_lie_far": """
v2 = T.tensor([[[0.375, 0.875], [0.0, 0.875]], [[0.75, 1.0], [-1.875, -2.0]]], dtype=T.float64)
v3 = v2.permute(1, 2, 0)
v4 = v3.narrow(-3, 0, 1)[:, [0, -1, -1]]
v5 = v3.narrow(-1, 0, 1)[:, [0, -1, -1]]
v6 = v3.narrow(-3, 0, 1)[:, T.tensor(1)]
v7 = v3.narrow(-1, 0, 1)[T.tensor([[0, 1], [1, 0], [1, 1]]).t()]
v8 = v3.narrow(0, 0, 1)[:, T.tensor([[0, 1], [1, 0], [1, 1]]).t()]
""",
    # The gradient of a base before a write through a view lies as the base does.
    "gradient_base_before_write_through_view": """
v2 = T.tensor([[1.0, -0.625, -1.25], [-0.75, -1.625, -1.375]], dtype=T.float64).requires_grad_()
v6 = v2.floor()
v6.transpose_(0,-1)
v6[:1, ::2] = v6[:1, ::2]
v7, v8 = T.autograd.grad(v6.sum(), [v2, v6])
v9 = v2.t() * 2
v9[1:].mul_(v9[:2].detach())
v10 = v2.t() * 2
v10[:, 0].copy_(v10[:, 1])
v11, v12 = T.autograd.grad([v9.sum(), v10.sum()], [v9, v10], retain_graph=True)
v13, = T.autograd.grad((v9 * v10).sum(), v2, create_graph=True)
v13.sum().backward()
""",
    # The strides over a single element have no say in where a view lies.
    "strides_over_single_element_have_say": """
v1 = T.tensor([-0.875, -1.25], dtype=T.float64).requires_grad_()
v2 = T.tensor(-1.125, dtype=T.float64).requires_grad_()
v6 = T.einsum('i,j->ij', v2.flatten(), v1.flatten())
v7 = v6.sort(0)[0]
v11 = v7.flatten()
v11.copy_(v11)
v11.sum().backward(retain_graph=True)
""",
    # The gradient of what a mask selects lies as what it selects from.
    "gradient_mask_selects_lies_selects_from": """
v2 = T.tensor([[1.0, -1.375], [-0.125, 0.875], [-0.25, -0.5]], dtype=T.float64).requires_grad_()
v3 = v2.transpose(-1, 0)
v5 = Once.apply(v3)
v6 = v5.masked_select(v5 < 0.5)
v9, = T.autograd.grad(v6.sum(), v5, create_graph=True)
v10, = T.autograd.grad(v3.masked_select(T.tensor([True, False, True])).sum(), v3)
v11, = T.autograd.grad(v2[:1].masked_select(T.tensor([[True], [False]])).sum(), v2)
""",
    # Of a zero and a negative zero the first is the extreme.
    "zero_negative_zero_first_extreme": """
v1 = T.tensor([[2.0, 0.125, -1.0]], dtype=T.float64).requires_grad_()
v5 = v1.flatten()
v6 = T.remainder(v5, v5)
v10 = v6.amin()
v11 = T.atan2(T.stack([v6.amin(), v6.amax(), v6.flip(0).amin(), v6.flip(0).amax()]), T.tensor(-1.0))
v12 = T.atan2(v6.min(0)[0], T.tensor(-1.0)) + T.atan2(v6.flip(0).max(0)[0], T.tensor(-1.0))
""",
    # A power is rounded all but right.
    "power_rounded_all_but_right": """
v2 = T.tensor([[-1.25], [1.5]], dtype=T.float64).requires_grad_()
v3 = T.tensor([[-0.25], [2.0]], dtype=T.float32).requires_grad_()
v5 = v3 ** v2
v9 = v5.scatter_add(-1, T.zeros_like(v5, dtype=T.int64), v5)
v12 = Product.apply(v9, v9) * v3.all()
v12.floor_()
""",
    # An outdated operand comes before what does not fit, whatever that is.
    "outdated_operand_comes_before_does_fit": """
v2 = T.tensor([[-1.125, -0.625, -0.375], [0.75, 1.875, 0.0]], dtype=T.float64).requires_grad_()
v3 = v2.split(1, -1)[0]
v5 = v2.detach()[:, :1] >= 0
with T.set_grad_enabled(False): v3.add_(1)
v5.sub_(v3)
v5.mul_(v3)
v5.eq_(v3)
v6 = v5 - v3
v7 = T.zeros(2, 1, dtype=T.int64)
v7.add_(v3)
v7.logical_and_(v3)
v8 = T.zeros(7)
v8.atan2_(v3)
v9 = v8.eq(v3)
""",
    # What is assigned to another shape is a view of the value first.
    "assigned_another_shape_view_value_first": """
v7 = T.tensor([[-0.375, -2.0, 1.75]], dtype=T.float64).requires_grad_()
v12 = v7.roll(1).t().unsqueeze(-1)
v12[None] = v12
v13 = v7 * 1
v13[:, :2] = v7[:, :1].flatten()
v14 = [T.autograd.graph.get_gradient_edge(v13).node.name()]
v15 = [n.name() for n, _ in v13.grad_fn.next_functions]
v16 = v7 * 1
v16[0] = v7
v17 = [n.name() for n, _ in v16.grad_fn.next_functions]
v18 = v7.expand(2, 3) * 1
v18[T.tensor([0, 1])] = v7[None]
v19 = [n.name() for n, _ in v18.grad_fn.next_functions]
(v13 + v16 + v18).sum().backward()
log(v15, v17, v19)
""",
}
