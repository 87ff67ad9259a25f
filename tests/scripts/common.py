"""What the scripts share: the option `--steps`, and small pictures of digits in place of downloads."""

import argparse

import torch

FONT = [
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00110 01000 10000 11111",
    "11110 00001 00001 01110 00001 00001 11110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
]


def steps(default):
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=default)
    return parser.parse_args().steps


def digits(count, size=16):
    """`count` noisy pictures of digits anywhere in a square, and which digit each is."""
    glyphs = torch.tensor([[[float(c) for c in row] for row in glyph.split()] for glyph in FONT])
    labels = torch.randint(0, 10, (count,))
    images = torch.zeros(count, 1, size, size)
    places = torch.randint(0, size - 7, (count, 2)).tolist()
    for i, (y, x) in enumerate(places):
        images[i, 0, y : y + 7, x : x + 5] = glyphs[labels[i]]
    return images + 0.1 * torch.randn_like(images), labels
