#!/usr/bin/env python3
"""Checks that system calls, threads and time are used only in the rooms that own them.

    check_calls.py [--self-test] [ROOT]

Everything else in src/ and include/ waits, sleeps, starts tasks, reads clocks and draws random numbers through tier::Runtime,
and touches files through tier::File, so that the simulator sees all of it. The rooms are in ROOMS; single exceptions, with
their reasons, in EXCEPTIONS. Ends with 1 when something is wrong, each place named as FILE:LINE.
"""
import fnmatch
import pathlib
import re
import sys
import tempfile

# Files that may call the system.
ROOMS = ["src/base/system_*.cc", "src/base/ring_memory*.cc", "src/fs/local_*", "src/fs/mem_*"]

# (file, rule, why)
EXCEPTIONS = [
    ("src/base/crc32c.cc", "environment", "TIER_CRC32C chooses the checksum's path, once, before any store exists"),
    ("src/base/assert.cc", "stdio", "the last words of a process that must end"),
]

HEADERS = r"""unistd\.h fcntl\.h poll\.h pthread\.h sched\.h signal\.h csignal semaphore\.h spawn\.h dirent\.h time\.h ctime dlfcn\.h
  sys/[a-z_]+\.h linux/[a-z_]+\.h asm/[a-z_]+\.h liburing\.h thread mutex shared_mutex condition_variable semaphore latch
  barrier future stop_token random fstream filesystem iostream""".split()
CALLS = """read write open close pread pwrite preadv pwritev readv writev openat openat2 creat lseek fsync fdatasync
  sync_file_range syncfs fallocate posix_fallocate posix_fadvise ftruncate truncate rename renameat unlink unlinkat mkdir
  mkdirat rmdir opendir readdir stat fstat statx fstatat statfs statvfs fstatfs flock fcntl ioctl mmap munmap mremap msync
  madvise mlock mincore memfd_create shm_open syscall fork vfork execve kill raise poll select epoll_wait eventfd pipe
  socket sched_yield sleep usleep nanosleep clock_nanosleep clock_gettime gettimeofday time getpid gettid getuid
  geteuid getrandom getentropy""".split()
# Names that nobody would give to a function of their own, so they count without `::` too.
DISTINCT = """pread pwrite preadv pwritev openat openat2 fsync fdatasync fallocate posix_fallocate posix_fadvise ftruncate
  renameat unlinkat mkdirat opendir readdir fstat statx fstatat statvfs flock fcntl ioctl mmap munmap mremap madvise mincore
  memfd_create shm_open syscall vfork execve epoll_wait sched_yield usleep nanosleep clock_nanosleep clock_gettime
  gettimeofday getpid gettid getrandom getentropy""".split()

RULES = {
    "header": (
        re.compile(rf'^\s*#\s*include\s*<(?:{"|".join(HEADERS)})>'),
        "this header is the system's",
    ),
    "call": (
        re.compile(
            rf'(?<![\w:>.])::(?:{"|".join(CALLS)})\s*\(|(?<![\w:>.])(?:{"|".join(DISTINCT)})\s*\('
            r"|\b(?:pthread|io_uring|sem|timer|aio)_\w+\s*\("
        ),
        "a system call",
    ),
    "thread": (
        re.compile(
            r"\bstd::(?:j?thread|this_thread|async|promise|packaged_task|call_once|(?:recursive_|shared_|timed_)*mutex"
            r"|condition_variable\w*|counting_semaphore|binary_semaphore|latch|barrier|lock_guard|scoped_lock|unique_lock"
            r"|shared_lock|stop_token)\b|\bnotify_(?:one|all)\s*\("
        ),
        "a thread, lock or wait of the standard library",
    ),
    "fence": (re.compile(r"\batomic_(?:thread|signal)_fence\b"), "a fence that the thread sanitizer cannot see"),
    "time": (
        re.compile(r"\b(?:steady_clock|system_clock|high_resolution_clock|utc_clock|file_clock)\b|\bstd::time\s*\("),
        "a clock",
    ),
    "random": (re.compile(r"\bstd::random_device\b|(?<![\w:>.])(?:std::)?s?rand\s*\("), "randomness"),
    "stdio": (
        re.compile(r"\b(?:f|fd|p|tmp)open\s*\(|\b(?:v?f?printf|fwrite|fread|fputs|puts|perror)\s*\(|\bstd::(?:system\s*\(|c(?:out|err|log)\b)"),
        "input or output beside tier::File",
    ),
    "environment": (re.compile(r"\b(?:secure_)?getenv\s*\(|\b(?:un)?setenv\s*\("), "the process's environment"),
}


def code_of(text):
    """The text with comments blanked and strings emptied, line by line; include lines stay as they are."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S
    )
    return token.sub(lambda m: '""' + "\n" * m[0].count("\n") if m[0][0] in 'R"' else "\n" * m[0].count("\n"), text)


def check(root):
    """Returns the offences below `root`, as text."""
    offences = []
    for folder in ("src", "include"):
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in (".h", ".cc") or any(fnmatch.fnmatch(name, room) for room in ROOMS):
                continue
            excused = {rule for file, rule, _ in EXCEPTIONS if file == name}
            for number, line in enumerate(code_of(path.read_text()).split("\n"), 1):
                for rule, (pattern, what) in RULES.items():
                    match = pattern.search(line)
                    if match and rule not in excused:
                        offences.append(f"{name}:{number}: {match[0].strip()}: {what} ({rule}); go through tier::Runtime or "
                                        "tier::File, or see ROOMS and EXCEPTIONS in tools/check_calls.py")
    return offences


CLEAN = """
#include <atomic>
#include <chrono>
#include "tier/runtime.h"
// std::mutex, ::read(fd) and sleep(1) are words here
/* pread(
   fsync( */
const char* text = "::write(fd); std::thread";
constexpr auto kMillion = 1'000'000; constexpr auto kMore = 2'000'000;
Status s = file->read(0, into); file->open("x"); Ring::open(); fs.stat("p"); tier::File::open(); runtime.parker->sleep(1ms);
std::chrono::nanoseconds d; Runtime::system(); Result<int> read(int); event.wait(ticket, until); auto t = std::snprintf(b, 1, "%d", 1);
"""
PLANTED = {
    "header": ["#include <thread>", "#  include <sys/mman.h>", "#include <liburing.h>", "#include <mutex>  // why not"],
    "call": ["::fsync(fd);", "if (::read (fd, p, n) < 0) {", "x = pwrite(fd, p, n, 0);", "pthread_self();", "io_uring_submit(&r);",
             'f("//"); ::close(fd);', "const char c = '\"'; ::close(fd);"],
    "thread": ["std::thread t;", "std::lock_guard lock(m);", "std::this_thread::yield();", "word.notify_one();", "std::shared_mutex m;"],
    "fence": ["std::atomic_thread_fence(std::memory_order_seq_cst);"],
    "time": ["auto t = std::chrono::steady_clock::now();"],
    "random": ["std::random_device r;", "int x = rand();"],
    "stdio": ['FILE* f = std::fopen("x", "r");', 'std::fprintf(stderr, "x");', "std::cerr << 1;", 'std::system("ls");'],
    "environment": ['std::getenv("X");'],
}


def self_test():
    """Plants each offence in a tree of its own, beside what only looks like one."""
    failures = []

    def offences(name, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True)
            path.write_text(text)
            return check(pathlib.Path(folder))

    failures += [f"clean: {o}" for o in offences("src/fs/clean.cc", CLEAN)]
    for rule, lines in PLANTED.items():
        for line in lines:
            found = offences("src/fs/offence.cc", CLEAN + line + "\n")
            wanted_place = f"src/fs/offence.cc:{CLEAN.count(chr(10)) + 1}:"
            if not any(f"({rule})" in o and o.startswith(wanted_place) for o in found):
                failures.append(f"{line!r}: wanted an offence against {rule} at {wanted_place} got {found}")
            for room in ("src/base/system_runtime.cc", "src/fs/local_file.cc"):
                if offences(room, line + "\n"):
                    failures.append(f"{line!r}: not allowed in {room}")
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
