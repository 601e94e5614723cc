// A bank of accounts that survives crashes: every transfer goes to a log before it changes memory, and opening replays
// it.
//
//   write_ahead_log [DIRECTORY]
//
// A transfer is one batch of two records, so a crash leaves both or neither: the sum over all accounts is always zero.
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "example.h"
#include "tier/log.h"

namespace {

struct Change {
  std::uint32_t account;
  std::int32_t amount;
};

tier::ByteSpan bytes_of(const Change& change) { return std::as_bytes(std::span(&change, 1)); }

class Bank {
 public:
  // Opens or makes the log and brings memory to where the log ends.
  static tier::Result<std::unique_ptr<Bank>> open(const std::string& url) {
    tier::LogOptions options;
    options.durability = tier::Durability::kSync;  // a transfer that was confirmed must survive
    TIER_TRY(auto log, tier::Log::open(url, options));
    auto bank = std::unique_ptr<Bank>(new Bank(std::move(log)));
    TIER_CHECK(bank->replay());
    return bank;
  }

  // Durable when it returns; on an error memory is as it was.
  tier::Status transfer(std::uint32_t from, std::uint32_t to, std::int32_t amount) {
    const std::array<Change, 2> changes = {{{from, -amount}, {to, amount}}};
    const std::array<tier::ByteSpan, 2> records = {bytes_of(changes[0]), bytes_of(changes[1])};
    TIER_CHECK(log_->append_batch(records));
    for (const Change& change : changes) apply(change);
    return {};
  }

  std::int64_t balance(std::uint32_t account) const {
    const auto found = balances_.find(account);
    return found == balances_.end() ? 0 : found->second;
  }
  std::int64_t sum() const {
    std::int64_t total = 0;
    for (const auto& [account, balance] : balances_) total += balance;
    return total;
  }
  const tier::LogRecovery& recovery() const { return log_->recovery(); }

 private:
  explicit Bank(std::unique_ptr<tier::Log> log) : log_(std::move(log)) {}

  tier::Status replay() {
    TIER_TRY(auto cursor, log_->scan(log_->cursors().first));
    for (;;) {
      TIER_TRY(const auto record, cursor->next());
      if (!record) return {};
      Change change;
      if (record->bytes.size() != sizeof change) return {tier::Code::kInvalid, "this log holds something else"};
      std::memcpy(&change, record->bytes.data(), sizeof change);
      apply(change);
    }
  }
  void apply(const Change& change) { balances_[change.account] += change.amount; }

  std::unique_ptr<tier::Log> log_;
  std::map<std::uint32_t, std::int64_t> balances_;
};

tier::Status run(const std::string& url) {
  std::int64_t before = 0;
  {
    TIER_TRY(auto bank, Bank::open(url));
    for (std::uint32_t i = 0; i < 100; ++i) TIER_CHECK(bank->transfer(1, 2 + i % 3, 10));
    before = bank->balance(2);
    std::printf("made 100 transfers; account 2 holds %lld\n", static_cast<long long>(before));
    // No close: as if the program had crashed here.
  }
  TIER_TRY(auto bank, Bank::open(url));
  const tier::LogRecovery& recovery = bank->recovery();
  std::printf("recovered %llu records (closed cleanly: %s); account 2 holds %lld, the sum over all is %lld\n",
              static_cast<unsigned long long>(recovery.to - recovery.from), recovery.clean ? "yes" : "no",
              static_cast<long long>(bank->balance(2)), static_cast<long long>(bank->sum()));
  if (bank->balance(2) != before || bank->sum() != 0) return {tier::Code::kCorruption, "money is lost"};
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const example::Directory directory(argc, argv);
  return example::exit_code(run(directory.url("wal")));
}
