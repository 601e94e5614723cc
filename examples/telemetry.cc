// Many threads record measurements into one log: no lock, no allocation, no system call in their way.
//
//   telemetry [DIRECTORY]
//
// Measurements are worth little one by one, so the mode is kAsync: they reach the disk in the background, and the end
// of the run makes them durable. reserve() builds a record right in the log's ring instead of copying it there.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "example.h"
#include "tier/log.h"

namespace {

struct Measurement {
  std::uint64_t time_ns;
  std::uint32_t sensor;
  std::uint32_t value;
};

constexpr std::uint32_t kSensors = 4;
constexpr std::uint32_t kEach = 50'000;

tier::Status record_all(tier::Log& log, std::uint32_t sensor) {
  for (std::uint32_t i = 0; i < kEach; ++i) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const Measurement m{static_cast<std::uint64_t>(now.count()), sensor, i};
    TIER_TRY(tier::Reservation place, log.reserve(sizeof m));
    std::memcpy(place.bytes().data(), &m, sizeof m);
    place.publish();
  }
  return {};
}

tier::Status run(const std::string& url) {
  tier::LogOptions options;
  options.durability = tier::Durability::kAsync;
  TIER_TRY(auto log, tier::Log::open(url, options));
  const tier::Sequence start = log->cursors().claimed;

  std::vector<tier::Status> outcomes(kSensors);
  std::vector<std::thread> producers;
  for (std::uint32_t sensor = 0; sensor < kSensors; ++sensor) {
    producers.emplace_back([&, sensor] { outcomes[sensor] = record_all(*log, sensor); });
  }
  for (std::thread& producer : producers) producer.join();
  for (const tier::Status& outcome : outcomes) TIER_CHECK(outcome);
  TIER_CHECK(log->flush());

  // Each sensor's measurements come back in the order in which it made them.
  std::vector<std::uint32_t> next(kSensors, 0);
  TIER_TRY(auto cursor, log->scan(start));
  for (;;) {
    TIER_TRY(const auto record, cursor->next());
    if (!record) break;
    Measurement m;
    std::memcpy(&m, record->bytes.data(), sizeof m);
    if (m.sensor >= kSensors || m.value != next[m.sensor]++)
      return {tier::Code::kCorruption, "a measurement is missing"};
  }
  for (const std::uint32_t count : next) {
    if (count != kEach) return {tier::Code::kCorruption, "measurements are missing at the end"};
  }
  const tier::LogStatistics statistics = log->statistics();
  std::printf("%u sensors recorded %u measurements each: %llu blocks, %llu syncs\n", kSensors, kEach,
              static_cast<unsigned long long>(statistics.blocks), static_cast<unsigned long long>(statistics.syncs));
  return log->close().status;
}

}  // namespace

int main(int argc, char** argv) {
  const example::Directory directory(argc, argv);
  return example::exit_code(run(directory.url("telemetry")));
}
