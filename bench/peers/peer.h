/// Peer: another store that does the same job as a log, as far as it does: puts under keys that grow, durable or not.
///
/// Shape       one adapter a store, compiled in where its headers are installed; TIER_BENCH_PEERS names those.
/// Threads     one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "harness/case.h"
#include "harness/places.h"
#include "tier/types.h"

namespace tier::bench {

class PeerStore {
 public:
  virtual ~PeerStore() = default;
  /// False if it failed.
  virtual bool put(std::uint64_t key, ByteSpan value) = 0;
};

struct Peer {
  const char* name;
  /// `durable`: every put survives a power cut when it returns. nullptr and `error` if it cannot be opened.
  std::unique_ptr<PeerStore> (*open)(const std::string& directory, bool durable, std::string& error);
};

#if defined(TIER_BENCH_LEVELDB)
std::unique_ptr<PeerStore> open_leveldb(const std::string& directory, bool durable, std::string& error);
#endif
#if defined(TIER_BENCH_ROCKSDB)
std::unique_ptr<PeerStore> open_rocksdb(const std::string& directory, bool durable, std::string& error);
#endif
#if defined(TIER_BENCH_LMDB)
std::unique_ptr<PeerStore> open_lmdb(const std::string& directory, bool durable, std::string& error);
#endif
/// Those that were found when this was built.
std::span<const Peer> peers();

/// Adds peer/NAME/put[-durable]/KIND/SIZE/1t for every peer (memory is stood in for by tmpfs), and gives them as
/// Case::peers.
std::map<std::string, std::string> peer_puts(Registry& registry, const Place& place, std::size_t size, bool durable);

}  // namespace tier::bench
