// A follower that handles each event as soon as it is durable, and knows after a restart where it was.
//
//   follow [DIRECTORY]
//
// Here both sides live in one program. A follower in another process does the same with LogOptions::read_only.
#include <chrono>
#include <string>
#include <thread>

#include "example.h"
#include "tier/log.h"

namespace {

constexpr int kEvents = 20;

// Handles events from `from` on until "end"; says where it got to.
tier::Result<tier::Sequence> follow(tier::Log& log, tier::Sequence from) {
  TIER_TRY(auto cursor, log.scan(from));
  tier::Clock& clock = *tier::Runtime::system().clock;
  for (;;) {
    auto record = cursor->wait_next(clock.in(std::chrono::seconds(30)));
    if (!record.ok()) return record.status();
    const std::string event(tier::as_text(record->bytes));
    std::printf("%3llu %s\n", static_cast<unsigned long long>(record->sequence.value), event.c_str());
    if (event == "end") return cursor->position();
  }
}

tier::Status produce(tier::Log& log) {
  for (int i = 0; i < kEvents; ++i) {
    TIER_CHECK(log.append("event " + std::to_string(i)));
    if (i % 5 == 4) std::this_thread::sleep_for(std::chrono::milliseconds(15));
  }
  TIER_TRY(const tier::Sequence end, log.append("end"));
  return log.wait_durable(end + 1);
}

tier::Status run(const std::string& url) {
  TIER_TRY(auto log, tier::Log::open(url));
  const tier::Sequence from = log->cursors().durable;
  tier::Status produced;
  std::thread producer([&] { produced = produce(*log); });
  const auto followed = follow(*log, from);
  producer.join();
  TIER_CHECK(produced);
  TIER_CHECK(followed);
  std::printf("handled %llu events; a restart would go on at sequence %llu\n",
              static_cast<unsigned long long>(*followed - from), static_cast<unsigned long long>(followed->value));
  return log->close().status;
}

}  // namespace

int main(int argc, char** argv) {
  const example::Directory directory(argc, argv);
  return example::exit_code(run(directory.url("events")));
}
