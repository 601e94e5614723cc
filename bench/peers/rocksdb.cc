#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include "peers/big_endian.h"
#include "peers/peer.h"

namespace tier::bench {
namespace {

class RocksDbStore : public PeerStore {
 public:
  RocksDbStore(rocksdb::DB* db, bool durable) : db_(db) { write_.sync = durable; }
  bool put(std::uint64_t key, ByteSpan value) override {
    const BigEndian k(key);
    const rocksdb::Slice data(reinterpret_cast<const char*>(value.data()), value.size());
    return db_->Put(write_, rocksdb::Slice(k.bytes, sizeof(k.bytes)), data).ok();
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteOptions write_;
};

}  // namespace

std::unique_ptr<PeerStore> open_rocksdb(const std::string& directory, bool durable, std::string& error) {
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, directory, &db);
  if (!status.ok()) {
    error = status.ToString();
    return nullptr;
  }
  return std::make_unique<RocksDbStore>(db, durable);
}

}  // namespace tier::bench
