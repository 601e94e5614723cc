#!/usr/bin/env python3
"""Checks that includes go only downward, floor by floor.

    check_layers.py [--self-test] [ROOT]

src/FLOOR/ may include its own files, those of the floors that FLOORS lists for it, and the public headers of both. A public
header include/tier/NAME.h belongs to the floor of its name, else to base; it includes public headers only. Examples are what
users write, so they see public headers alone. Ends with 1 when something is wrong, each place named as FILE:LINE.
"""
import pathlib
import re
import sys
import tempfile

# A floor and what it stands on.
FLOORS = {
    "base": [],
    "fs": ["base"],
    "engine": ["base", "fs"],
    "log": ["base", "fs", "engine"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
SOURCES = (".h", ".cc")


def floor_of_public(path):
    """The floor of a public header, given as "tier/NAME.h" or "tier/FLOOR/NAME.h"."""
    parts = pathlib.PurePosixPath(path).parts
    name = parts[1] if len(parts) > 2 else parts[1].removesuffix(".h")
    return name if name in FLOORS else "base"


def includes(path):
    """Yields (line, what is included, whether in quotes)."""
    for number, line in enumerate(path.read_text().split("\n"), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1] or match[2], match[1] is not None


def sources(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in SOURCES) if folder.is_dir() else []


def check(root):
    """Returns the offences below `root`, as text."""
    offences = []

    def offend(path, line, text):
        offences.append(f"{path.relative_to(root)}:{line}: {text}")

    for folder in sorted(p for p in (root / "src").iterdir() if p.is_dir()):
        floor = folder.name
        if floor not in FLOORS:
            offences.append(f"src/{floor}: unknown floor; add it to FLOORS in tools/check_layers.py")
            continue
        allowed = {floor, *FLOORS[floor]}
        for path in sources(folder):
            for line, what, quoted in includes(path):
                first = what.split("/")[0]
                if first == "tier":
                    if floor_of_public(what) not in allowed:
                        offend(path, line, f'{floor} is below "{what}"')
                elif first in FLOORS and "/" in what:
                    if first not in allowed:
                        offend(path, line, f'{floor} is below {first}, whose "{what}" this is')
                elif quoted:
                    offend(path, line, f'"{what}": spell it from the floor, as "{floor}/{what}"')

    public = root / "include"
    for path in sources(public):
        floor = floor_of_public(path.relative_to(public).as_posix())
        for line, what, quoted in includes(path):
            if what.startswith("tier/"):
                if floor_of_public(what) not in {floor, *FLOORS[floor]}:
                    offend(path, line, f'the public header of {floor} is below "{what}"')
            elif quoted:
                offend(path, line, f'"{what}": a public header includes public headers only')

    for path in sources(root / "examples"):
        for line, what, quoted in includes(path):
            if quoted and not what.startswith("tier/") and not (path.parent / what).is_file():
                offend(path, line, f'"{what}": an example includes public headers only')
    return offences


def self_test():
    """Plants each offence and clean neighbours in a tree of its own."""
    files = {
        "include/tier/types.h": "#include <span>\n",
        "include/tier/fs.h": '#include "tier/types.h"\n',
        "include/tier/log.h": '#include "tier/fs.h"\n',
        "src/base/a.h": '#include "tier/types.h"\n',
        "src/fs/b.cc": '#include "base/a.h"\n#include "fs/b.h"\n#include <unistd.h>\n',
        "src/fs/b.h": '#include "tier/fs.h"\n',
        "src/engine/c.cc": '#include "fs/b.h"\n',
        "src/log/d.cc": '#include "engine/c.h"\n#include "tier/log.h"\n',
        "examples/e.cc": '#include "tier/log.h"\n#include <string>\n#include "shared.h"\n',
        "examples/shared.h": "\n",
    }
    planted = {
        "src/base/a.h": '#include "fs/b.h"\n',
        "src/fs/b.cc": '#  include "tier/log.h"\n',
        "src/fs/b.h": "#include <engine/c.h>\n",
        "src/engine/c.cc": '#include "c.h"\n',
        "src/kv/f.cc": "\n",
        "include/tier/types.h": '#include "base/a.h"\n',
        "include/tier/fs.h": '#include "tier/log.h"\n',
        "examples/e.cc": '#include "log/d.h"\n',
    }

    def offences(tree):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            for path, text in tree.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            return check(root)

    failures = [f"clean tree: {o}" for o in offences(files)]
    for path, text in planted.items():
        found = offences({**files, path: files.get(path, "") + text})
        if len(found) != 1 or path.removesuffix("/f.cc") not in found[0]:
            failures.append(f"{path} with {text.strip()!r}: wanted one offence there, got {found}")
    return failures


def main():
    arguments = sys.argv[1:]
    if "--self-test" in arguments:
        found = self_test()
    else:
        found = check(pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent).resolve())
    print("\n".join(found) or "ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
