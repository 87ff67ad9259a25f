"""A transformer of characters learns a nursery rhyme, and then goes on by itself."""

import gradiron as torch
from gradiron import nn
from gradiron.nn import functional as F
from training import Training

TEXT = """this is the house that jack built.
this is the malt that lay in the house that jack built.
this is the rat that ate the malt that lay in the house that jack built.
this is the cat that killed the rat that ate the malt that lay in the house that jack built.
"""
LENGTH, WIDTH, HEADS, LAYERS = 48, 64, 4, 2


class Block(nn.Module):
    """Characters look at those before them, then each thinks for itself."""

    def __init__(self) -> None:
        super().__init__()
        self.look, self.join = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.think = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = (
            part.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2) for part in self.look(self.before(x)).chunk(3, 2)
        )
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.join(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.think(self.between(x))


class Transformer(nn.Module):
    def __init__(self, letters: int) -> None:
        super().__init__()
        self.letter, self.place = nn.Embedding(letters, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.last = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters))

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        places = torch.arange(letters.shape[1], device=letters.device)
        return self.last(self.blocks(self.letter(letters) + self.place(places)))


def main() -> None:
    training = Training("transformer", 300)
    torch.manual_seed(0)
    letters = sorted(set(TEXT))
    data = torch.tensor([letters.index(c) for c in TEXT], device=training.device)
    model = Transformer(len(letters)).to(training.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for _ in training.steps():
        starts = torch.randint(0, len(TEXT) - LENGTH - 1, (16, 1)).to(training.device)
        pieces = data[starts + torch.arange(LENGTH + 1, device=training.device)]
        loss = F.cross_entropy(model(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        training.note(loss.item())
    written = data[:8][None]
    with torch.no_grad():
        for _ in range(80):
            following = model(written[:, -LENGTH:])[:, -1].argmax(1, keepdim=True)
            written = torch.cat([written, following], 1)
    print("".join(letters[i] for i in written[0].tolist()))


if __name__ == "__main__":
    main()
