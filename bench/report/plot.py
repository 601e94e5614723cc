"""Plots of the log's figures by record size, as SVG written by hand: no library, and the text stays text."""

import html
import math

COLOURS = {"mem": "#1b6ca8", "tmpfs": "#d1495b", "local": "#2e933c"}
MORE_COLOURS = ["#8f5ea2", "#b5651d", "#008b8b"]
GREY = "#7a7a7a"
INK = "#222222"
FONT = "font-family='Helvetica, Arial, sans-serif'"

WIDTH, HEIGHT = 720, 470
LEFT, RIGHT, TOP, BOTTOM = 88, 150, 64, 64


def _size_label(size):
    return f"{size // 1024} KiB" if size >= 1024 else f"{size}"


def _si(value, unit):
    for scale, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:g} {name}{unit}".rstrip()
    return f"{value:g} {unit}".rstrip()


def _time(ns):
    for scale, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= scale:
            return f"{ns / scale:g} {name}"
    return f"{ns:g} ns"


class Panel:
    """One pair of logarithmic axes; x is a record size, and 0 has a place of its own left of the smallest one."""

    def __init__(self, title, subtitle, y_label, y_format, sizes):
        self.title, self.subtitle, self.y_label, self.y_format = title, subtitle, y_label, y_format
        self.sizes = sorted(sizes)
        self.lines = []  # label, colour, dash, marker, points

    def add(self, label, colour, points, dash="", marker=True):
        points = sorted((x, y) for x, y in points if y is not None and y > 0)
        if points:
            self.lines.append((label, colour, dash, marker, points))

    def _scales(self):
        positive = [s for s in self.sizes if s > 0]
        low, high = math.log2(positive[0]), math.log2(positive[-1])
        zero = 0 in self.sizes
        span = max(high - low, 1)
        gap = span * 0.12 if zero else 0
        inner = WIDTH - LEFT - RIGHT - 24

        def x(size):
            at = 0 if size == 0 else gap + math.log2(size) - low
            return LEFT + 12 + inner * at / (span + gap)

        values = [y for line in self.lines for _, y in line[4]]
        bottom = math.floor(math.log10(min(values)))
        top = math.ceil(math.log10(max(values)))
        if top == bottom:
            top += 1
        # Room for the part of a decade that is used, not for whole decades around it.
        lowest = max(bottom, math.log10(min(values)) - 0.15)
        highest = min(top, math.log10(max(values)) + 0.15)

        def y(value):
            return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (math.log10(value) - lowest) / (highest - lowest)

        marks = []
        for decade in range(bottom, top + 1):
            for digit in range(1, 10):
                value = digit * 10.0 ** decade
                if lowest <= math.log10(value) <= highest:
                    marks.append((value, digit))
        # Few decades: label 1, 2 and 5; many: 1 only.
        labelled = (1, 2, 5) if highest - lowest < 3.2 else (1,)
        return x, y, marks, labelled

    def draw(self, dx):
        x, y, marks, labelled = self._scales()
        right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
        out = [f"<g transform='translate({dx} 0)'>",
               f"<text x='{LEFT}' y='26' font-size='17' font-weight='bold' fill='{INK}'>{html.escape(self.title)}</text>",
               f"<text x='{LEFT}' y='45' font-size='12' fill='{GREY}'>{html.escape(self.subtitle)}</text>"]
        for value, digit in marks:
            strong = digit == 1
            out.append(f"<line x1='{LEFT}' y1='{y(value):.1f}' x2='{right}' y2='{y(value):.1f}' "
                       f"stroke='{'#c9c9c9' if strong else '#ececec'}' stroke-width='1'/>")
            if digit in labelled:
                out.append(f"<text x='{LEFT - 8}' y='{y(value) + 4:.1f}' text-anchor='end' font-size='11.5' fill='{INK}'>"
                           f"{html.escape(self.y_format(value))}</text>")
        last = -1e9
        for size in self.sizes:
            at = x(size)
            out.append(f"<line x1='{at:.1f}' y1='{floor}' x2='{at:.1f}' y2='{floor + 5}' stroke='{INK}'/>")
            if at - last >= 21 + 5 * (size >= 1024):  # labels that would touch are left out, their ticks are not
                out.append(f"<text x='{at:.1f}' y='{floor + 19}' text-anchor='middle' font-size='11' fill='{INK}'>"
                           f"{_size_label(size).replace(' KiB', 'K')}</text>")
                last = at
        out.append(f"<line x1='{LEFT}' y1='{floor}' x2='{right}' y2='{floor}' stroke='{INK}'/>")
        out.append(f"<line x1='{LEFT}' y1='{TOP}' x2='{LEFT}' y2='{floor}' stroke='{INK}'/>")
        if 0 in self.sizes:
            cut = (x(0) + x(min(s for s in self.sizes if s))) / 2
            out.append(f"<path d='M{cut - 5:.1f} {floor + 5} l4 -10 M{cut + 1:.1f} {floor + 5} l4 -10' stroke='{INK}' fill='none'/>")
        out.append(f"<text x='{(LEFT + right) / 2}' y='{HEIGHT - 20}' text-anchor='middle' font-size='12.5' fill='{INK}'>"
                   "record size, bytes (logarithmic)</text>")
        out.append(f"<text transform='translate(18 {(TOP + floor) / 2}) rotate(-90)' text-anchor='middle' font-size='12.5' "
                   f"fill='{INK}'>{html.escape(self.y_label)}</text>")
        for label, colour, dash, marker, points in self.lines:
            # A point at size 0 stands apart: no line bridges the break of the axis.
            joined = [(s, v) for s, v in points if s > 0]
            path = " ".join(f"{'M' if i == 0 else 'L'}{x(s):.1f} {y(v):.1f}" for i, (s, v) in enumerate(joined))
            out.append(f"<path d='{path}' fill='none' stroke='{colour}' stroke-width='2' stroke-linejoin='round'"
                       + (f" stroke-dasharray='{dash}'" if dash else "") + "/>")
            for s, v in points:
                if marker or s == 0:
                    out.append(f"<circle cx='{x(s):.1f}' cy='{y(v):.1f}' r='3.2' fill='{'white' if dash else colour}' "
                               f"stroke='{colour}' stroke-width='1.6'><title>{html.escape(label)}, {_size_label(s)}: "
                               f"{html.escape(self.y_format(float(f'{v:.3g}')))}</title></circle>")
        for i, (label, colour, dash, marker, _) in enumerate(self.lines):
            at = TOP + 12 + 21 * i
            out.append(f"<line x1='{right + 14}' y1='{at}' x2='{right + 42}' y2='{at}' stroke='{colour}' stroke-width='2'"
                       + (f" stroke-dasharray='{dash}'" if dash else "") + "/>")
            if marker:
                out.append(f"<circle cx='{right + 28}' cy='{at}' r='3.2' fill='{'white' if dash else colour}' stroke='{colour}' "
                           "stroke-width='1.6'/>")
            out.append(f"<text x='{right + 49}' y='{at + 4}' font-size='12' fill='{INK}'>{html.escape(label)}</text>")
        out.append("</g>")
        return "\n".join(out)


def _svg(panels):
    width = WIDTH * len(panels)
    body = "\n".join(panel.draw(WIDTH * i) for i, panel in enumerate(panels))
    return (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {HEIGHT}' width='{width}' height='{HEIGHT}' {FONT}>\n"
            f"<rect width='{width}' height='{HEIGHT}' fill='white'/>\n{body}\n</svg>\n")


def _by_kind(cases, verb):
    """file system -> size -> case, one producer."""
    table = {}
    for c in cases:
        parts = c["name"].split("/")
        if parts[:2] == ["log", verb] and len(parts) == 5 and parts[4] == "1t" and c["ns_per_op"] is not None:
            table.setdefault(parts[2], {})[int(parts[3])] = c
    return table


def _colour(kind, table):
    return COLOURS.get(kind) or MORE_COLOURS[sorted(table).index(kind) % len(MORE_COLOURS)]


def _latency(cases):
    table = _by_kind(cases, "append")
    sizes = {s for line in table.values() for s in line}
    if len({s for s in sizes if s > 0}) < 2:
        return None
    panel = Panel("log append: what one call costs its producer",
                  "async, one producer, committer active, ring not full, the copy included", "time of one append", _time, sizes)
    for kind, line in table.items():
        panel.add(f"{kind}, p50", _colour(kind, table), [(s, c["p50_ns"]) for s, c in line.items()])
        panel.add(f"{kind}, p99", _colour(kind, table), [(s, c["p99_ns"]) for s, c in line.items()], dash="5 4")
    by_name = {c["name"]: c for c in cases}
    limits = {s: by_name.get(c["limit"]) for line in table.values() for s, c in line.items()}
    panel.add("limit, p50", GREY, [(s, c["p50_ns"] or c["ns_per_op"]) for s, c in limits.items() if c], dash="2 3", marker=False)
    return _svg([panel]) if panel.lines else None


def _throughput(cases):
    table = _by_kind(cases, "sustained")
    sizes = {s for line in table.values() for s in line}
    if len({s for s in sizes if s > 0}) < 2:
        return None
    what = "async, one producer, no pause, flush included"
    records = Panel("log sustained: records", what, "records per second", lambda v: _si(v, ""), sizes)
    volume = Panel("log sustained: bytes", what, "payload per second", lambda v: _si(v, "B/s"), {s for s in sizes if s > 0})
    by_name = {c["name"]: c for c in cases}
    for kind, line in table.items():
        colour = _colour(kind, table)
        limit = {s: by_name.get(c["limit"]) for s, c in line.items()}
        records.add(kind, colour, [(s, c["ops_per_s"]) for s, c in line.items()])
        records.add(f"{kind}, limit", colour, [(s, c["ops_per_s"]) for s, c in limit.items() if c], dash="2 3", marker=False)
        volume.add(kind, colour, [(s, c["bytes_per_s"]) for s, c in line.items()])
        volume.add(f"{kind}, limit", colour, [(s, c["bytes_per_s"]) for s, c in limit.items() if c], dash="2 3", marker=False)
    return _svg([records, volume])


def pictures(cases):
    """(suffix, SVG) of what can be drawn from these cases."""
    drawn = [("append-latency", _latency(cases)), ("sustained", _throughput(cases))]
    return [(suffix, picture) for suffix, picture in drawn if picture]
