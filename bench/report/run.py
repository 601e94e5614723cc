"""Runs the benchmark programs and writes their tables as one document. Called by scripts/bench, which says how to use it."""

import argparse
import datetime
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import figures
import machine
import plot

ROOM_SECONDS_QUICK = 540  # --quick promises 10 minutes a room; opening, building a table and cleaning up take the rest


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/bench", add_help=False)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--compare", type=pathlib.Path)
    parser.add_argument("--fs", default=os.environ.get("TIER_BENCH_FS", ""))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("filter", nargs="?", default="")
    return parser.parse_args(arguments)


def on_disk(folder, needed):
    """Whether `folder` exists, has room and does not lie in memory."""
    return folder and os.path.isdir(folder) and os.access(folder, os.W_OK) and \
        shutil.disk_usage(folder).free >= needed and machine.file_system_of(folder)["type"] not in ("tmpfs", "ramfs")


def disk_parent(root, needed):
    candidates = [os.environ.get("TIER_BENCH_DIR"), os.environ.get("TMPDIR"), "/tmp", "/var/tmp", str(root)]
    return next((c for c in candidates if on_disk(c, needed)), None)


def case_names(program, options, environment):
    command = [program, "--list"] + (["--quick"] if options.quick else [])
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.split()


def run_program(program, options, environment, seconds, table):
    command = [str(program), "--json", str(table)]
    if options.filter:
        command += ["--filter", options.filter]
    if options.quick:
        command += ["--quick"]
    if options.repetitions:
        command += ["--repetitions", str(options.repetitions)]
    if seconds:
        command += ["--seconds", f"{seconds:.0f}"]
    print(f"== {program.name}", file=sys.stderr, flush=True)
    if subprocess.run(command, env=environment).returncode != 0:
        return None
    return json.loads(table.read_text())


def run_all(programs, options, environment, scratch):
    """One table of all programs. A room's programs share its time by the number of their cases."""
    merged = {}
    clock = None
    broken = []
    rooms = {}
    for program, names in programs.items():
        rooms.setdefault(program.name.split("-")[0], []).append((len(names), program))
    for room in rooms.values():
        deadline = time.monotonic() + ROOM_SECONDS_QUICK
        cases_left = sum(count for count, _ in room)
        for count, program in sorted(room):
            # Small programs come first and are let finish; what they leave is for the large ones.
            left = deadline - time.monotonic()
            seconds = max(left * count / cases_left, min(60, left)) if options.quick else None
            cases_left -= count
            table = run_program(program, options, environment, seconds, scratch / f"{program.name}.json")
            if table is None:
                broken.append(program.name)
                continue
            clock = clock or table["clock"]
            for case in table["cases"]:
                case["program"] = program.name
                first = merged.setdefault(case["name"], case)
                if first is not case:
                    # A limit that several programs measured: ratios are each program's own, the figure is the first's.
                    first.setdefault("also_ns_per_op", {})[program.name] = case["ns_per_op"]
    return list(merged.values()), clock, broken


def main():
    options = parse(sys.argv[1:])
    environment = dict(os.environ)
    if options.fs:
        environment["TIER_BENCH_FS"] = options.fs
    found = sorted(p for p in (options.build / "bin" / "bench").iterdir() if os.access(p, os.X_OK) and p.is_file())
    programs = {}
    for program in found:
        names = [n for n in case_names(program, options, environment) if options.filter in n]
        if names:
            programs[program] = names
    if options.list:
        print("\n".join(sorted({n for names in programs.values() for n in names})))
        return 0
    if not programs:
        print(f"no case name contains '{options.filter}'; scripts/bench --list prints them", file=sys.stderr)
        return 2
    old = json.loads(options.compare.read_text()) if options.compare else None

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parent = disk_parent(options.root, (1 if options.quick else 5) << 30)
    disk = pathlib.Path(tempfile.mkdtemp(prefix="tier-bench-", dir=parent))
    memory = pathlib.Path(tempfile.mkdtemp(prefix="tier-bench-", dir="/dev/shm")) if os.path.isdir("/dev/shm") else None
    environment["TIER_BENCH_DIR"] = str(disk)
    if memory:
        environment["TIER_BENCH_SHM"] = str(memory)
    try:
        started = datetime.datetime.now(datetime.timezone.utc)
        document = {
            "format": "tier-bench-1",
            "started": started.isoformat(timespec="seconds"),
            "command": ["scripts/bench"] + [a for a in sys.argv[1:] if a not in
                                            ("--root", str(options.root), "--build", str(options.build))],
            "quick": options.quick,
            "machine": machine.describe(options.root, options.build, str(disk)),
        }
        cases, clock, broken = run_all(programs, options, environment, disk)
        document["machine"]["clock"] = clock
        document["machine"]["load_at_end"] = os.getloadavg()[0]
        document["seconds"] = round((datetime.datetime.now(datetime.timezone.utc) - started).total_seconds(), 1)
        document["notes"] = figures.NOTES
        document["cases"] = cases
    finally:
        shutil.rmtree(disk, ignore_errors=True)
        if memory:
            shutil.rmtree(memory, ignore_errors=True)

    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
        print(f"wrote {options.json}", file=sys.stderr)
    else:
        folder = options.root / "benchmark-results"
        folder.mkdir(exist_ok=True)
        stem = folder / f"bench-{started.strftime('%Y%m%d-%H%M%S')}"
        plots = []
        for suffix, picture in plot.pictures(cases):
            path = folder / f"{stem.name}-{suffix}.svg"
            path.write_text(picture)
            plots.append(path.name)
        stem.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
        stem.with_suffix(".md").write_text(figures.markdown(document, stem.name, plots))
        print(f"wrote benchmark-results/{stem.name}.json, .md" + "".join(f", {p}" for p in plots), file=sys.stderr)
    print(figures.key_figures(cases))
    if old:
        print(figures.comparison(old, document))
    failures = [f"{c['name']}: {c['failure']}" for c in cases if c.get("failure")] + \
        [f"{name} did not finish" for name in broken]
    for failure in failures:
        print(f"FAILED {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
