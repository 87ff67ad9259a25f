"""Selective checkpointing: a policy says, operator by operator, what to keep and what to make again."""

SAC_IGNORED_OPS: set[object] = set()
CheckpointPolicy = SelectiveCheckpointContext = create_selective_checkpoint_contexts = None
