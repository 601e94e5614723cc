#!/usr/bin/env python3
"""Cuts the C++ blocks that documents promise to compile out of them.

    doc_programs.py DIRECTORY FILE.md...

A block is promised by a line `<!-- compile -->` before its ```cpp fence. Each goes to DIRECTORY, its line numbers those of
the document, and is printed as `program PATH` when it has a main(), else `fragment PATH`. A promise without a block, or a
fence without an end, is an error.
"""
import pathlib
import re
import sys

MARK = "<!-- compile -->"


def blocks(document):
    """Yields (line of the first line of code, code)."""
    lines = document.read_text().split("\n")
    promised = None
    idx = 0
    while idx < len(lines):
        line = lines[idx].strip()
        if line == MARK:
            promised = idx + 1
        elif line.startswith("```"):
            start = idx + 1
            end = next((i for i in range(start, len(lines)) if lines[i].strip() == "```"), None)
            if end is None:
                raise SystemExit(f"{document}:{start}: this fence has no end")
            if promised is not None:
                if line != "```cpp":
                    raise SystemExit(f"{document}:{start}: a {MARK} block must open with ```cpp")
                yield start + 1, "\n".join(lines[start:end]) + "\n"
                promised = None
            idx = end
        elif line and promised is not None:
            break
        idx += 1
    if promised is not None:
        raise SystemExit(f"{document}:{promised}: {MARK} must be followed by a ```cpp block")


def main(arguments):
    directory = pathlib.Path(arguments[0])
    directory.mkdir(parents=True, exist_ok=True)
    kept = set()
    for name in arguments[1:]:
        document = pathlib.Path(name)
        if not document.exists():
            continue
        for number, (line, code) in enumerate(blocks(document), 1):
            path = directory / f"{document.stem.lower()}_{number}.cc"
            if path in kept:
                raise SystemExit(f"{document}: another document has the same name; rename one")
            kept.add(path)
            text = f'#line {line} "{document}"\n{code}'
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
            print("program" if re.search(r"^int main\(", code, re.M) else "fragment", path)
    for stale in set(directory.glob("*.cc")) - kept:
        stale.unlink()


if __name__ == "__main__":
    main(sys.argv[1:])
