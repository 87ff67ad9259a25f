"""Error messages of `DistributedDataParallel`, in the words of PyTorch."""

UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your "
)
UNUSED = "module has parameters that were not used in producing loss. "
ENABLE_DETECTION = (
    "You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True` to "
    "`torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs participate in "
    "calculating loss. "
)
NOT_FOUND = (
    "\nIf you already have done the above, then the distributed data parallel module wasn't able to locate the output "
    "tensors in the return value of your module's `forward` function. Please include the loss function and the structure of "
    "the return value of `forward` of your module when reporting this issue (e.g. list, dict, iterable)."
)
GRAPH_CHANGED = (
    "training graph has changed in this iteration, e.g., one parameter is used in first iteration, but then got unused in "
    "the second iteration. this is not compatible with static_graph set to True."
)
NEW_USE = (
    "Your training graph has changed in this iteration, e.g., one parameter is unused in first iteration, but then got used "
    "in the second iteration. this is not compatible with static_graph set to True."
)
SAY_NAMES = (
    "\n In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL to print out "
    "information about which particular parameters did not receive gradient on this rank as part of this error"
)
TWICE = (
    "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of a module "
    "parameter outside the `forward` function. Please make sure model parameters are not shared across multiple concurrent "
    "forward-backward passes. or try to use _set_static_graph() as a workaround if this module graph does not change during "
    "training loop.2) Reused parameters in multiple reentrant backward passes. For example, if you use multiple "
    "`checkpoint` functions to wrap the same part of your model, it would result in the same set of parameters been used by "
    "different reentrant backward passes multiple times, and hence marking a variable ready multiple times. DDP does not "
    "support such use cases in default. You can try to use _set_static_graph() as a workaround if your module graph does "
    "not change over iterations."
)
CREATE_GRAPH = (
    "Using DistributedDataParallel with create_graph=True is not well-supported. The higher-order gradient will not be "
    "synchronized across ranks, and backpropagation through all_reduce operations will not occur."
)
NOT_NEEDED = (
    "find_unused_parameters=True was specified in DDP constructor, but did not find any unused parameters in the forward "
    "pass. This flag results in an extra traversal of the autograd graph every iteration,  which can adversely affect "
    "performance. If your model indeed never has any unused parameters in the forward pass, consider turning this flag off. "
    "Note that this warning may be a false positive if your model has flow control causing later iterations to have unused "
    "parameters."
)
BROADCAST_BUFFERS_DEPRECATED = (
    "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead. IMPORTANT: unlike `broadcast_buffers=False`, "
    "`forward_sync_buffers=False` still syncs buffers at init. If you rely on buffers NOT being synced at init (e.g. "
    "rank-local buffers), keep using `broadcast_buffers=False` until `init_sync_buffers` is available."
)
BOTH_BUFFER_FLAGS = (
    "Both `broadcast_buffers` and `forward_sync_buffers` were specified. `broadcast_buffers` is deprecated and its value is "
    "ignored when `forward_sync_buffers` is provided."
)
STATIC_FINDS_UNUSED = (
    "You passed find_unused_parameters=true to DistributedDataParallel, `_set_static_graph` will detect unused parameters "
    "automatically, so you do not need to set find_unused_parameters=true, just be sure these unused parameters will not "
    "change during training loop while calling `_set_static_graph`."
)
