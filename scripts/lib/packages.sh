# Debian packages by purpose, and the function that installs what is missing. To be sourced, by sh or bash:
#
#   . "$(dirname "$0")/lib/packages.sh"
#   tier_install_packages build            # scripts/quickstart
#   tier_install_packages build test       # scripts/test
#   tier_install_packages build bench      # scripts/bench
#
# tier_install_packages PURPOSE...   installs what the purposes need and this machine lacks (apt-get, through sudo when not
#                                    root). Says nothing and touches nothing when all is there. Elsewhere than on Debian it
#                                    prints what to install and exits 1.
# tier_packages PURPOSE...           prints the names, one a line.
# tier_jobs                          prints how many compilers to run at once: one a core, and 2 GiB of memory for each.

tier_packages() {
  for purpose in "$@"; do
    case $purpose in
      build) # compilers and the libraries that Tier links
        echo g++ cmake ninja-build pkg-config libisal-dev liburing-dev libexpected-dev
        echo libcli11-dev nlohmann-json3-dev libfmt-dev
        ;;
      test) # clang for the fuzzers, python for the checks of the source
        echo libgtest-dev clang-19 libclang-rt-19-dev python3 mount e2fsprogs util-linux
        ;;
      bench) # limits and peers
        echo libbenchmark-dev libleveldb-dev librocksdb-dev liblmdb-dev python3
        ;;
      *)
        echo "tier_packages: unknown purpose '$purpose'; use build, test or bench" >&2
        return 1
        ;;
    esac
  done | tr ' ' '\n' | sort -u
}

tier_jobs() {
  cores=$(nproc 2>/dev/null || echo 1)
  by_memory=$(awk '/^MemAvailable:/ { print int($2 / 2097152) }' /proc/meminfo 2>/dev/null)
  if [ "${by_memory:-$cores}" -lt "$cores" ]; then cores=$by_memory; fi
  if [ "$cores" -lt 1 ]; then cores=1; fi
  echo "$cores"
}

tier_install_packages() {
  wanted=$(tier_packages "$@") || exit 1
  if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-query >/dev/null 2>&1; then
    echo "This is no Debian system. Please install what these Debian 12 packages hold, then build with cmake --preset release:" >&2
    echo "$wanted" | tr '\n' ' ' >&2
    echo >&2
    exit 1
  fi
  missing=
  for package in $wanted; do
    if ! dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed; then
      missing="$missing $package"
    fi
  done
  if [ -z "$missing" ]; then return 0; fi

  as_root=
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
      echo "Not root, and no sudo here. Please run as root: apt-get install --no-install-recommends$missing" >&2
      exit 1
    fi
    as_root=sudo
  fi
  echo "Installing$missing"
  apt_options="-qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300"
  # shellcheck disable=SC2086  # lists of words
  if ! $as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get $apt_options update ||
    ! $as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get $apt_options -o Dpkg::Use-Pty=0 \
      install -y --no-install-recommends $missing >/dev/null; then
    echo "apt-get could not install these. Please install them by hand, then run this again:$missing" >&2
    exit 1
  fi
}
