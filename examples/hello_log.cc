// The first program of the README: append two records, make them durable, read everything back.
//
//   hello_log [DIRECTORY]      default: ./hello-log, made if it is missing; run it twice and the records are all there
#include <cstdio>
#include <filesystem>
#include <string>

#include "tier/log.h"

namespace {

tier::Status run(const std::string& url) {
  TIER_TRY(auto log, tier::Log::open(url));

  TIER_TRY(const tier::Sequence first, log->append("hello"));
  TIER_TRY(const tier::Sequence second, log->append("world"));
  TIER_CHECK(log->wait_durable(second + 1));  // survives a power cut from here on
  std::printf("appended sequences %llu and %llu\n", static_cast<unsigned long long>(first.value),
              static_cast<unsigned long long>(second.value));

  TIER_TRY(auto cursor, log->scan(log->cursors().first));
  for (;;) {
    TIER_TRY(const auto record, cursor->next());
    if (!record) break;
    const std::string text(tier::as_text(record->bytes));
    std::printf("%llu: %s\n", static_cast<unsigned long long>(record->sequence.value), text.c_str());
  }
  return log->close().status;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string directory = std::filesystem::absolute(argc > 1 ? argv[1] : "hello-log").lexically_normal();
  const tier::Status status = run("local://" + directory);
  if (!status.ok()) std::fprintf(stderr, "hello_log: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
