#include <leveldb/db.h>
#include <leveldb/options.h>
#include <leveldb/write_batch.h>

#include "peers/big_endian.h"
#include "peers/peer.h"

namespace tier::bench {
namespace {

class LevelDbStore : public PeerStore {
 public:
  LevelDbStore(leveldb::DB* db, bool durable) : db_(db) { write_.sync = durable; }
  bool put(std::uint64_t key, ByteSpan value) override {
    const BigEndian k(key);
    const leveldb::Slice data(reinterpret_cast<const char*>(value.data()), value.size());
    return db_->Put(write_, leveldb::Slice(k.bytes, sizeof(k.bytes)), data).ok();
  }

 private:
  std::unique_ptr<leveldb::DB> db_;
  leveldb::WriteOptions write_;
};

}  // namespace

std::unique_ptr<PeerStore> open_leveldb(const std::string& directory, bool durable, std::string& error) {
  leveldb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 64u << 20;  // as RocksDB's default
  leveldb::DB* db = nullptr;
  const leveldb::Status status = leveldb::DB::Open(options, directory, &db);
  if (!status.ok()) {
    error = status.ToString();
    return nullptr;
  }
  return std::make_unique<LevelDbStore>(db, durable);
}

}  // namespace tier::bench
