"""The table as text: Markdown, the key figures with their targets, and the comparison of two tables."""

NOTES = [
    "A ratio above 1 means slower than the limit or peer. Ratios are medians over rounds in which case, limit and peers ran "
    "one after the other.",
    "ns_per_op comes from bursts without time stamps, percentiles from bursts with one stamp a call, the stamp's own cost "
    "subtracted. With several threads ns_per_op is wall time over the operations of all.",
    "Debian builds librocksdb and libleveldb with assertions on; release builds of them are faster (about 2.6 times when "
    "reading). Peers keep keys and an order, which a log does not.",
    "Peers of `mem` cases ran on tmpfs. LMDB commits one transaction a put.",
    "Nothing is pinned to a core.",
]

# What the project set out to reach: label, case, field, comparison, target, unit. Two cases: the field is the first's over
# the second's.
TARGETS = [
    *[(f"append {size} B, {fs}, p50", f"log/append/{fs}/{size}/1t", "p50_ns", "<=", limit, "ns")
      for fs in ("mem", "tmpfs") for size, limit in ((64, 25), (256, 55))],
    *[(f"append {size} B, {fs}, p99", f"log/append/{fs}/{size}/1t", "p99_ns", "<=", 250, "ns")
      for fs in ("mem", "tmpfs") for size in (64, 256)],
    *[(f"append {size} B, {fs}, p99.9", f"log/append/{fs}/{size}/1t", "p999_ns", "<=", 1000, "ns")
      for fs in ("mem", "tmpfs") for size in (64, 256)],
    *[(f"append 300 B over 256 B, {fs}, {what}", (f"log/append/{fs}/300/1t", f"log/append/{fs}/256/1t"), field, "<=",
       1.25, "x") for fs in ("mem", "tmpfs") for what, field in (("p50", "p50_ns"), ("mean", "ns_per_op"))],
    *[(f"append {size} B, {fs}, heap allocations, the committer's included", f"log/append/{fs}/{size}/1t",
       "allocs_per_op", "<=", 0.0005, "per append") for fs in ("mem", "tmpfs") for size in (64, 256)],
    *[(f"sustained 64 B, {fs}", f"log/sustained/{fs}/64/1t", "ops_per_s", ">=", 15e6, "records/s")
      for fs in ("mem", "tmpfs")],
    *[(f"sustained {size} B, {fs}", f"log/sustained/{fs}/{size}/1t", "bytes_per_s", ">=", 1e9, "B/s")
      for fs in ("mem", "tmpfs") for size in (256, 1024, 4096, 65536)],
    ("sync 128 B, 1 producer, of raw pwrite+fdatasync", ("log/sync/local/128/1t", "limit/pwrite+fdatasync/128"),
     "ops_per_s", ">=", 0.9, "x"),
    ("sync 128 B, 8 producers over 1", ("log/sync/local/128/8t", "log/sync/local/128/1t"), "ops_per_s", ">=", 3, "x"),
    ("replay 128 B", "log/replay/local/128/1t", "ops_per_s", ">=", 20e6, "records/s"),
    ("reopen 1 GiB after SIGKILL", "log/reopen/local/1GiB/1t", "ns_per_op", "<=", 30e6, "ns"),
    ("reopen 1 GiB over 64 MiB", ("log/reopen/local/1GiB/1t", "log/reopen/local/64MiB/1t"), "ns_per_op", "<=", 2, "x"),
    ("space beyond the payload, 128 B", "log/sustained/local/128/1t", "overhead_bytes_per_record", "<=", 12, "B/record"),
]

# For rooms without targets: what stands for the room.
PLAIN = ["base/crc32c/4096/1t", "fs/write/mem/4096/1t", "fs/write/local/4096/1t", "fs/read/mem/4096/1t",
         "engine/append/mem/64/1t", "engine/append/local/4096/1t", "engine/read/mem/64/1t"]


def quantity(value, unit=""):
    """A figure with three digits and a decimal prefix; times in ns, us, ms, s."""
    if value is None:
        return ""
    if unit == "ns":
        for scale, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
            if abs(value) >= scale:
                return f"{value / scale:.3g} {name}"
        return f"{value:.3g} ns"
    if unit in ("x", "B/record", "per append"):
        return f"{value:.3g} {unit}" if unit != "x" else f"{value:.3g}×"
    for scale, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {name}{unit}"
    return f"{value:.3g} {unit}".rstrip()


def _ratio(value):
    return "" if value is None else f"{value:.3g}"


def _table(header, rows):
    rule = ["---"] + ["--:"] * (len(header) - 1)
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join(rule) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _case_rows(cases):
    for c in cases:
        peers = ", ".join(f"{name} {_ratio(value)}" for name, value in c["peers"].items() if value is not None)
        limit = f"{c['limit']} {_ratio(c['ratio_to_limit'])}" if c["limit"] else ""
        blocks = f"{c['records_per_block']:.1f} / {c['bytes_per_block']:.0f}" if "records_per_block" in c else ""
        allocs = "" if c["allocs_per_op"] is None else f"{c['allocs_per_op']:.3g}"
        yield [f"`{c['name']}`", quantity(c["ns_per_op"], "ns"), quantity(c["p50_ns"], "ns"), quantity(c["p99_ns"], "ns"),
               quantity(c["p999_ns"], "ns"), quantity(c["ops_per_s"]), quantity(c["bytes_per_s"], "B/s"), allocs, limit,
               peers, blocks]


def _value(by_name, cases, field):
    if isinstance(cases, str):
        return by_name.get(cases, {}).get(field)
    if field == "ops_per_s" and by_name.get(cases[0], {}).get("limit") == cases[1]:
        ratio = by_name[cases[0]]["ratio_to_limit"]  # of the same rounds, better than the quotient of two medians
        return None if not ratio else 1 / ratio
    above, below = (by_name.get(name, {}).get(field) for name in cases)
    return above / below if above is not None and below else None


def key_figures(cases):
    """A table of what was measured, each figure beside its limit and, where there is one, the project's target."""
    by_name = {c["name"]: c for c in cases}
    rows = []
    for label, names, field, comparison, target, unit in TARGETS:
        value = _value(by_name, names, field)
        if value is None:
            continue
        reached = value <= target if comparison == "<=" else value >= target
        first = by_name[names if isinstance(names, str) else names[0]]
        limit = f"`{first['limit']}`" if first["limit"] else ""
        sign = "≤" if comparison == "<=" else "≥"
        wanted = "none by the producer" if field == "allocs_per_op" else f"{sign} {quantity(target, unit)}"
        rows.append([label, quantity(value, unit), wanted, "yes" if reached else "**no**", limit,
                     _ratio(first["ratio_to_limit"])])
    for name in PLAIN:
        c = by_name.get(name)
        if c and c["ns_per_op"] is not None:
            rows.append([name, quantity(c["ns_per_op"], "ns"), "", "", f"`{c['limit']}`" if c["limit"] else "",
                         _ratio(c["ratio_to_limit"])])
    if not rows:
        rows = [[c["name"], quantity(c["ns_per_op"], "ns"), "", "", f"`{c['limit']}`" if c["limit"] else "",
                 _ratio(c["ratio_to_limit"])] for c in cases]
    return _table(["key figure", "measured", "target", "reached", "limit", "ratio to limit"], rows)


def _machine_lines(m, document):
    disk = m["local"]["disk"] or {}
    clock = m.get("clock") or {}
    libraries = ", ".join(f"{k} {v}" for k, v in m["libraries"].items())
    memory = f", {m['memory_bytes'] / 2**30:.0f} GiB" if m["memory_bytes"] else ""
    yield f"{m['cpu']}, {m['cores']} cores{memory}, {m['kind']}; {m['system']}, kernel {m['kernel']}"
    device = disk.get("model") or disk.get("name") or "an unknown device"
    yield (f"local: {m['local']['file_system']} ({m['local']['options']}) on {device}"
           + (f", write cache: {disk['write_cache']}" if disk.get("write_cache") else ""))
    if clock:
        yield (f"clock: {clock['name']}, resolution {clock['resolution_ns']:.1f} ns, "
               f"a stamp costs {clock['stamp_cost_ns']:.1f} ns")
    yield f"{m['compiler']['version']}, {m['compiler']['build_type']} ({m['compiler']['flags']}); {libraries}"
    quick = ", --quick" if document["quick"] else ""
    yield f"commit {m['commit'] or 'none'}; {document['started']}, {document['seconds']} s{quick}"
    yield f"load average {m['load_at_start']:.2f} before, {m['load_at_end']:.2f} after"


def markdown(document, stem, plots):
    cases = document["cases"]
    lines = [f"# {stem}", ""]
    lines += [f"- {line}" for line in _machine_lines(document["machine"], document)]
    if document["machine"]["load_at_start"] > 0.5:
        lines.append("- **The machine was not quiet: figures, above all those with syncs, are not to be quoted.**")
    lines += [f"- {note}" for note in NOTES]
    for plot in plots:
        lines += ["", f"![{plot}]({plot})"]
    header = ["case", "per op", "p50", "p99", "p99.9", "op/s", "bytes/s", "allocs", "limit, ratio", "peers, ratio",
              "records / bytes a block"]
    rooms = {}
    for c in cases:
        rooms.setdefault(c["name"].split("/")[0], []).append(c)
    order = [r for r in rooms if r not in ("limit", "peer")] + [r for r in ("limit", "peer") if r in rooms]
    for room in order:
        lines += ["", f"## {room}", "", _table(header, _case_rows(rooms[room]))]
    failures = [c for c in cases if c.get("failure")]
    if failures:
        lines += ["", "## Failed", ""] + [f"- `{c['name']}`: {c['failure']}" for c in failures]
    lines += ["", "## Key figures", "", key_figures(cases), ""]
    return "\n".join(lines)


def comparison(old, new):
    """Ratios new / old of each case, and of its ratio to the limit, which drift of the machine does not touch."""
    before = {c["name"]: c for c in old["cases"]}
    rows = []
    for c in new["cases"]:
        o = before.get(c["name"])
        if not o or not o["ns_per_op"] or not c["ns_per_op"]:
            continue
        against_limit = ""
        if o["ratio_to_limit"] and c["ratio_to_limit"] and o["limit"] == c["limit"]:
            against_limit = f"{c['ratio_to_limit'] / o['ratio_to_limit']:.3f}"
        p50 = f"{c['p50_ns'] / o['p50_ns']:.3f}" if o["p50_ns"] and c["p50_ns"] else ""
        rows.append([c["name"], quantity(o["ns_per_op"], "ns"), quantity(c["ns_per_op"], "ns"),
                     f"{c['ns_per_op'] / o['ns_per_op']:.3f}", p50, against_limit])
    if not rows:
        return f"\nNo case in common with {old['started']}."
    text = _table(["case", "old", "new", "new / old", "p50 new / old", "ratio to limit, new / old"], rows)
    return (f"\nCompared with {old['started']} ({(old['machine'].get('commit') or 'no commit')[:12]}):\n\n{text}\n\n"
            "Above 1 is slower now. The two runs were not interleaved: a difference of absolute figures includes whatever the "
            "machine did in between. The last column compares ratios that were each measured within one run; trust it first.")
