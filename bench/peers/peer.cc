#include "peers/peer.h"

#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "harness/measure.h"
#include "harness/payload.h"

namespace tier::bench {

std::span<const Peer> peers() {
  static const std::vector<Peer> all = {
#if defined(TIER_BENCH_LEVELDB)
    {"leveldb", open_leveldb},
#endif
#if defined(TIER_BENCH_LMDB)
    {"lmdb", open_lmdb},
#endif
#if defined(TIER_BENCH_ROCKSDB)
    {"rocksdb", open_rocksdb},
#endif
  };
  return all;
}

std::map<std::string, std::string> peer_puts(Registry& registry, const Place& place, std::size_t size, bool durable) {
  std::map<std::string, std::string> named;
  const Place files = place_of_files(place);
  if (files.directory.empty()) return named;
  for (const Peer& peer : peers()) {
    std::string name = case_name("peer/", peer.name, durable ? "/put-durable/" : "/put/", files.kind, "/", size, "/1t");
    BurstPlan plan;
    plan.bytes_per_call = size;
    plan.seconds = registry.effort().pick(durable ? 1.5 : 0.3, durable ? 0.3 : 0.06);
    plan.calls_per_burst =
        durable ? 100 : std::clamp<std::uint64_t>((4u << 20) / std::max<std::size_t>(size, 64), 8, 4'000);
    plan.calls_max = (128u << 20) / std::max<std::size_t>(size, 64);
    auto repetition = [plan, size, durable, files, open = peer.open](Sample& s) {
      const std::string path = fresh_path(files);
      if (::mkdir(path.c_str(), 0700) != 0) {
        s.failure = "cannot make " + path;
        return;
      }
      {
        const auto store = open(path, durable, s.failure);
        if (store != nullptr) {
          const Payload payload(size, 1);
          bool failed = false;
          measure(plan, s, [&](unsigned, std::uint64_t i) { failed |= !store->put(i, payload.at(0, i)); });
          if (failed) s.failure = "a put failed";
        }
      }
      remove_path(path);
    };
    const char* note =
        durable ? "every put synced" : "puts with its write-ahead log on, not synced, keys in ascending order";
    registry.add(name, repetition, {}, {}, note);
    named.emplace(peer.name, name);
  }
  return named;
}

}  // namespace tier::bench
