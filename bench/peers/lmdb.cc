#include <lmdb.h>

#include "peers/big_endian.h"
#include "peers/peer.h"

namespace tier::bench {
namespace {

/// One transaction a put: what a caller does who wants each record on its own.
class LmdbStore : public PeerStore {
 public:
  ~LmdbStore() override { mdb_env_close(env_); }

  int open(const std::string& directory, bool durable) {
    if (const int e = mdb_env_create(&env_); e != 0) return e;
    if (const int e = mdb_env_set_mapsize(env_, std::size_t{4} << 30); e != 0) return e;
    if (const int e = mdb_env_open(env_, directory.c_str(), durable ? 0u : unsigned{MDB_NOSYNC}, 0600); e != 0)
      return e;
    MDB_txn* transaction = nullptr;
    if (const int e = mdb_txn_begin(env_, nullptr, 0, &transaction); e != 0) return e;
    if (const int e = mdb_dbi_open(transaction, nullptr, 0, &table_); e != 0) {
      mdb_txn_abort(transaction);
      return e;
    }
    return mdb_txn_commit(transaction);
  }

  bool put(std::uint64_t key, ByteSpan value) override {
    BigEndian k(key);
    MDB_val name{sizeof(k.bytes), k.bytes};
    MDB_val data{value.size(), const_cast<std::byte*>(value.data())};  // LMDB's type has no const; it only reads
    MDB_txn* transaction = nullptr;
    if (mdb_txn_begin(env_, nullptr, 0, &transaction) != 0) return false;
    if (mdb_put(transaction, table_, &name, &data, MDB_APPEND) != 0) {
      mdb_txn_abort(transaction);
      return false;
    }
    return mdb_txn_commit(transaction) == 0;
  }

 private:
  MDB_env* env_ = nullptr;
  MDB_dbi table_ = 0;
};

}  // namespace

std::unique_ptr<PeerStore> open_lmdb(const std::string& directory, bool durable, std::string& error) {
  auto store = std::make_unique<LmdbStore>();
  if (const int e = store->open(directory, durable); e != 0) {
    error = mdb_strerror(e);
    return nullptr;
  }
  return store;
}

}  // namespace tier::bench
