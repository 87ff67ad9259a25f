"""Orders that samplers draw, for PyTorch and gradiron alike."""

SEEDS = (0, 7, 123456789)


def orders(T, data):
    """For each case the indices, and a number drawn afterwards: the generator must be left in the same place."""
    own = lambda seed: T.Generator().manual_seed(seed)  # noqa: E731
    n = range(23)
    makers = {
        "sequential": lambda s: data.SequentialSampler(n),
        "random": lambda s: data.RandomSampler(n),
        "own generator": lambda s: data.RandomSampler(n, generator=own(s)),
        "few": lambda s: data.RandomSampler(n, num_samples=5),
        "many": lambda s: data.RandomSampler(n, num_samples=50),
        "twice": lambda s: data.RandomSampler(n, num_samples=46),
        "replacement": lambda s: data.RandomSampler(n, replacement=True),
        "much replacement": lambda s: data.RandomSampler(n, replacement=True, num_samples=64),
        "more replacement": lambda s: data.RandomSampler(n, replacement=True, num_samples=70, generator=own(s)),
        "subset": lambda s: data.SubsetRandomSampler([3, 1, 4, 15, 9, 2, 6]),
        "weighted": lambda s: data.WeightedRandomSampler([0.1, 0.9, 0.4, 0.7, 3.0, 0.6], 12),
        "weighted once": lambda s: data.WeightedRandomSampler([0.9, 0.4, 0.05, 0.2, 0.3, 0.1], 5, replacement=False),
        "batches": lambda s: data.BatchSampler(data.RandomSampler(n), 4, False),
        "whole batches": lambda s: data.BatchSampler(data.RandomSampler(n), 4, True),
        "rank 0": lambda s: data.DistributedSampler(n, 4, 0, seed=s),
        "rank 3": lambda s: data.DistributedSampler(n, 4, 3, seed=s),
        "rank 3, whole": lambda s: data.DistributedSampler(n, 4, 3, drop_last=True),
        "many ranks": lambda s: data.DistributedSampler(range(3), 8, 7, shuffle=False),
        "split": lambda s: [part.indices for part in data.random_split(n, [10, 8, 5])],
        "fractions": lambda s: [part.indices for part in data.random_split(n, [0.5, 0.3, 0.2])],
        "loader": lambda s: [b.tolist() for b in data.DataLoader(list(n), 5, shuffle=True)],
        "own loader": lambda s: [b.tolist() for b in data.DataLoader(list(n), 5, shuffle=True, generator=own(s))],
    }
    found = {}
    for name, make in makers.items():
        for seed in SEEDS:
            T.manual_seed(seed)
            sampler = make(seed)
            found[f"{name}, seed {seed}"] = [list(sampler), T.randint(0, 10**6, (1,)).item()]
    return found
