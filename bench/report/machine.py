"""What the figures were measured on: everything that a reader needs to judge them, and nothing that names the machine."""

import os
import pathlib
import platform
import re
import shutil
import subprocess


def _text(path):
    try:
        return pathlib.Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _output(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        return done.stdout.strip()
    except OSError:
        return ""


def _first(pattern, text):
    match = re.search(pattern, text, re.MULTILINE)
    return match.group(1).strip() if match else None


def file_system_of(path):
    """The mount that `path` lies on: type, options, device."""
    best = {"type": "unknown", "options": "", "device": ""}
    longest = -1
    real = os.path.realpath(path)
    for line in _text("/proc/self/mounts").splitlines():
        device, where, kind, options = line.split()[:4]
        where = where.encode().decode("unicode_escape")
        inside = real == where or real.startswith(where.rstrip("/") + "/")
        if inside and len(where) >= longest:  # a later mount on the same place hides the earlier
            longest = len(where)
            best = {"type": kind, "options": options, "device": device}
    return best


def _disk(path):
    """Kind and model of the block device below `path`, as far as the kernel says."""
    try:
        number = os.stat(path).st_dev
    except OSError:
        return None
    base = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not base.exists():
        return None
    device = base.resolve()
    if (device / "partition").exists():
        device = device.parent
    rotational = _text(device / "queue/rotational").strip()
    return {
        "name": device.name,
        "model": _text(device / "device/model").strip() or None,
        "rotational": rotational == "1" if rotational else None,
        "scheduler": _first(r"\[(.+?)\]", _text(device / "queue/scheduler")),
        "write_cache": _text(device / "queue/write_cache").strip() or None,
    }


def _kind():
    """VM, container, WSL2, bare metal; a container in a VM is both."""
    if "microsoft" in platform.release().lower():
        return "WSL2"
    layers = []
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv") or \
            re.search(r"docker|lxc|kubepods|containerd", _text("/proc/1/cgroup")):
        layers.append("container")
    if re.search(r"^flags.*\bhypervisor\b", _text("/proc/cpuinfo"), re.MULTILINE):
        vendor = _text("/sys/class/dmi/id/sys_vendor").strip()
        layers.append(f"VM ({vendor})" if vendor else "VM")
    return " in a ".join(layers) if layers else "bare metal"


def _compiler(build):
    cache = _text(build / "CMakeCache.txt")
    path = _first(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache)
    version = _output(path, "--version").splitlines()[:1] if path else []
    return {
        "version": version[0] if version else None,
        "build_type": _first(r"^CMAKE_BUILD_TYPE:\w+=(.+)$", cache),
        "flags": _first(r"^CMAKE_CXX_FLAGS_RELEASE:\w+=(.+)$", cache),
    }


def _commit(root):
    commit = _output("git", "-C", str(root), "rev-parse", "HEAD")
    if not re.fullmatch(r"[0-9a-f]{40,64}", commit):
        return None
    dirty = _output("git", "-C", str(root), "status", "--porcelain", "--untracked-files=no")
    return commit + ("-dirty" if dirty else "")


def _peers():
    """Versions of the peers, where dpkg knows them."""
    if not shutil.which("dpkg-query"):
        return {}
    lines = _output("dpkg-query", "-W", "-f", "${Package} ${Version}\n", "libleveldb1d", "librocksdb7*", "liblmdb0",
                    "libbenchmark1debian", "libisal2")
    return dict(line.split(" ", 1) for line in lines.splitlines() if len(line.split()) == 2)


def describe(root, build, disk_folder):
    cpu = _text("/proc/cpuinfo")
    memory = _first(r"^MemTotal:\s+(\d+) kB", _text("/proc/meminfo"))
    mount = file_system_of(disk_folder)
    return {
        "cpu": _first(r"^model name\s*:\s*(.+)$", cpu) or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": int(memory) * 1024 if memory else None,
        "kernel": platform.release(),
        "system": _first(r'^PRETTY_NAME="?(.+?)"?$', _text("/etc/os-release")),
        "kind": _kind(),
        "local": {"file_system": mount["type"], "options": mount["options"], "disk": _disk(disk_folder)},
        "compiler": _compiler(build),
        "libraries": _peers(),
        "commit": _commit(root),
        "pinned": False,
        "load_at_start": os.getloadavg()[0],
    }
