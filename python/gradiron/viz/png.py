"""A picture as PNG, drawn pixel by pixel with smooth edges: slow for a raster program, quick enough for a graph."""

from __future__ import annotations

from math import ceil, hypot
from struct import pack
from zlib import compress, crc32

from . import font
from .picture import ADVANCE, HEAD, LINE, Curve, Picture, Polyline, Rectangle, Text

MOST_PIXELS = 10_000_000
Mask = dict[tuple[int, int], float]  # how much of each pixel is covered


def png(picture: Picture, scale: float) -> bytes:
    """The bytes of a PNG file with `scale` pixels to a unit."""
    scale = min(scale, (MOST_PIXELS / (picture.width * picture.height)) ** 0.5)
    canvas = _Canvas(max(1, ceil(picture.width * scale)), max(1, ceil(picture.height * scale)))
    letters = _Letters(scale)
    for shape in picture.shapes:
        if isinstance(shape, Rectangle):
            _draw_rectangle(canvas, shape, scale)
        elif isinstance(shape, Curve):
            _draw_curve(canvas, shape, scale)
        elif isinstance(shape, Polyline):
            points = [(x * scale, y * scale) for x, y in shape.points]
            canvas.paint(_stroke([points], shape.width * scale), 0, 0, _bytes(shape.colour))
        else:
            _draw_text(canvas, shape, scale, letters)
    return canvas.encoded()


class _Canvas:
    """White paper that takes paint."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.pixels = bytearray(b"\xff") * (3 * width * height)

    def fill(self, x: int, y: int, width: int, height: int, colour: bytes) -> None:
        left, right = max(x, 0), min(x + width, self.width)
        if left >= right:
            return
        row = colour * (right - left)
        for line in range(max(y, 0), min(y + height, self.height)):
            start = 3 * (line * self.width + left)
            self.pixels[start : start + len(row)] = row

    def paint(self, mask: Mask, x: int, y: int, colour: bytes) -> None:
        """Lay colour on through a mask whose origin is put at (x, y)."""
        pixels, width, height = self.pixels, self.width, self.height
        red, green, blue = colour
        for (dx, dy), cover in mask.items():
            px, py = x + dx, y + dy
            if 0 <= px < width and 0 <= py < height:
                at = 3 * (py * width + px)
                rest = 1.0 - cover
                pixels[at] = int(pixels[at] * rest + red * cover + 0.5)
                pixels[at + 1] = int(pixels[at + 1] * rest + green * cover + 0.5)
                pixels[at + 2] = int(pixels[at + 2] * rest + blue * cover + 0.5)

    def encoded(self) -> bytes:
        size = 3 * self.width
        rows = b"".join(b"\0" + self.pixels[y * size : (y + 1) * size] for y in range(self.height))
        header = pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        chunks = [(b"IHDR", header), (b"IDAT", compress(rows, 6)), (b"IEND", b"")]
        body = b"".join(pack(">I", len(data)) + kind + data + pack(">I", crc32(kind + data)) for kind, data in chunks)
        return b"\x89PNG\r\n\x1a\n" + body


def _bytes(colour: str) -> bytes:
    return bytes.fromhex(colour.removeprefix("#"))


def _clamped(cover: float) -> float:
    return min(max(cover, 0.0), 1.0)


def _draw_rectangle(canvas: _Canvas, box: Rectangle, scale: float) -> None:
    fill, stroke = _bytes(box.colours.fill), _bytes(box.colours.stroke)
    x, y = round(box.x * scale), round(box.y * scale)
    width, height = round(box.width * scale), round(box.height * scale)
    line = max(1, round(1.1 * scale))
    corner = min(ceil(box.radius * scale), width // 2, height // 2)
    canvas.fill(x + corner, y, width - 2 * corner, height, stroke)
    canvas.fill(x, y + corner, width, height - 2 * corner, stroke)
    canvas.fill(x + corner, y + line, width - 2 * corner, height - 2 * line, fill)
    canvas.fill(x + line, y + corner, width - 2 * line, height - 2 * corner, fill)
    for mask, colour in ((_corner(corner, 0), stroke), (_corner(corner, line), fill)):
        for flip_x in (False, True):
            for flip_y in (False, True):
                turned = {
                    (corner - 1 - i if flip_x else i, corner - 1 - j if flip_y else j): cover for (i, j), cover in mask.items()
                }
                canvas.paint(
                    turned,
                    x + width - corner if flip_x else x,
                    y + height - corner if flip_y else y,
                    colour,
                )


def _corner(radius: int, inset: int) -> Mask:
    """The upper left corner of a rounded rectangle, `inset` pixels inside of its edge."""
    mask: Mask = {}
    for j in range(radius):
        for i in range(radius):
            cover = _clamped(radius - inset + 0.5 - hypot(radius - i - 0.5, radius - j - 0.5))
            if cover > 0:
                mask[i, j] = cover
    return mask


def _draw_curve(canvas: _Canvas, curve: Curve, scale: float) -> None:
    points = [(curve.start[0] * scale, curve.start[1] * scale)]
    for piece in curve.pieces:
        x0, y0 = points[-1]
        x1, y1, x2, y2, x3, y3 = (value * scale for value in piece)
        straight = abs(x0 - x1) + abs(x1 - x2) + abs(x2 - x3) < 1
        steps = 1 if straight else max(4, min(32, int(hypot(x3 - x0, y3 - y0) / 8)))
        for step in range(1, steps + 1):
            t = step / steps
            a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
            points.append((a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3))
    colour = _bytes(LINE)
    canvas.paint(_stroke([points], 1.3 * scale), 0, 0, colour)
    if curve.head:
        x, y = points[-1]
        canvas.paint(_head(HEAD * scale, x % 1), int(x), round(y - scale), colour)


def _head(size: float, shift: float) -> Mask:
    """A triangle that points down, its tip `size` below the origin."""
    mask: Mask = {}
    steep = hypot(1, 0.5)
    reach = ceil(size)
    for j in range(reach):
        for i in range(-reach, reach + 1):
            from_side = (size - j - 0.5) * 0.5 - abs(i + 0.5 - shift)
            cover = _clamped(from_side / steep + 0.5)
            if cover > 0:
                mask[i, j] = cover
    return mask


def _stroke(lines: list[list[tuple[float, float]]], width: float) -> Mask:
    """Polylines of a certain width with round ends and joints."""
    mask: Mask = {}
    reach = width / 2 + 0.5
    limit = reach * reach
    for points in lines:
        for (x0, y0), (x1, y1) in zip(points, points[1:] or points, strict=False):
            dx, dy = x1 - x0, y1 - y0
            length = dx * dx + dy * dy or 1.0
            for py in range(int(min(y0, y1) - reach), int(max(y0, y1) + reach) + 1):
                # Only the pixels near the line: it crosses this row of pixels between these two points.
                if abs(dy) > 1e-9:
                    t0, t1 = sorted(((py - reach - y0) / dy, (py + 1 + reach - y0) / dy))
                    t0, t1 = max(t0, 0.0), min(t1, 1.0)
                else:
                    t0, t1 = 0.0, 1.0
                left, right = sorted((x0 + t0 * dx, x0 + t1 * dx))
                ry = py + 0.5 - y0
                for px in range(int(left - reach), int(right + reach) + 1):
                    rx = px + 0.5 - x0
                    t = (rx * dx + ry * dy) / length
                    t = 0.0 if t < 0.0 else 1.0 if t > 1.0 else t
                    off_x, off_y = rx - t * dx, ry - t * dy
                    square = off_x * off_x + off_y * off_y
                    if square < limit:
                        cover = reach - square**0.5
                        if cover > mask.get((px, py), 0.0):
                            mask[px, py] = cover if cover < 1.0 else 1.0
    return mask


class _Letters:
    """Masks of letters, each made once."""

    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.masks: dict[tuple[str, float, bool], Mask] = {}

    def mask(self, letter: str, size: float, bold: bool) -> Mask:
        key = (letter, size, bold)
        if key not in self.masks:
            unit = size * self.scale / font.EM
            lines = [[(x * unit + 8, 40 * self.scale - y * unit) for x, y in line] for line in font.strokes(letter)]
            width = (2.0 if bold else 1.5) * unit + 0.1
            shifted = _stroke([line for line in lines if len(line) > 1], width)
            shifted |= _stroke([line for line in lines if len(line) == 1], width * 1.5)
            base = round(40 * self.scale)
            self.masks[key] = {(x - 8, y - base): cover for (x, y), cover in shifted.items()}
        return self.masks[key]


def _draw_text(canvas: _Canvas, text: Text, scale: float, letters: _Letters) -> None:
    advance = text.size * ADVANCE * scale
    x = text.x * scale - advance * len(text.text) / 2
    y = round(text.y * scale)
    colour = _bytes(text.colour)
    for letter in text.text:
        canvas.paint(letters.mask(letter, text.size, text.bold), round(x), y, colour)
        x += advance
