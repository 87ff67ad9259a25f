"""A picture as SVG, self-contained: no style sheet, no font and no script from elsewhere."""

from __future__ import annotations

from html import escape

from .picture import ADVANCE, HEAD, LINE, Curve, Picture, Polyline, Rectangle, Text

FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def svg(picture: Picture) -> str:
    """The text of an SVG document."""
    width, height = _n(picture.width), _n(picture.height)
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' font-family="{FONT}" text-anchor="middle">',
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
    ]
    for shape in picture.shapes:
        if isinstance(shape, Rectangle):
            rows.append(_rectangle(shape))
        elif isinstance(shape, Curve):
            rows.append(_curve(shape))
        elif isinstance(shape, Polyline):
            points = " ".join(f"{_n(x)},{_n(y)}" for x, y in shape.points)
            stroke = f'stroke="{shape.colour}" stroke-width="{_n(shape.width)}" stroke-linejoin="round" stroke-linecap="round"'
            rows.append(f'<polyline points="{points}" fill="none" {stroke}/>')
        else:
            rows.append(_text(shape))
    return "\n".join([*rows, "</svg>", ""])


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _rectangle(box: Rectangle) -> str:
    place = f'x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}"'
    look = f'rx="{_n(box.radius)}" fill="{box.colours.fill}" stroke="{box.colours.stroke}" stroke-width="1.2"'
    return f"<rect {place} {look}/>"


def _curve(curve: Curve) -> str:
    path = f"M{_n(curve.start[0])} {_n(curve.start[1])}"
    for piece in curve.pieces:
        path += "C" + " ".join(map(_n, piece))
    stroke = f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="1.3"/>'
    if not curve.head:
        return stroke
    x, y = curve.pieces[-1][-2:]
    half = HEAD * 0.5
    head = f"M{_n(x - half)} {_n(y - 1)}L{_n(x)} {_n(y + HEAD - 1)}L{_n(x + half)} {_n(y - 1)}Z"
    return f'{stroke}<path d="{head}" fill="{LINE}"/>'


def _text(text: Text) -> str:
    weight = ' font-weight="600"' if text.bold else ""
    # The length is stated, so that the text fits its box in whatever font the viewer has.
    length = _n(len(text.text) * text.size * ADVANCE)
    place = f'x="{_n(text.x)}" y="{_n(text.y)}" textLength="{length}" lengthAdjust="spacingAndGlyphs"'
    return f'<text {place} font-size="{_n(text.size)}" fill="{text.colour}"{weight}>{escape(text.text)}</text>'
