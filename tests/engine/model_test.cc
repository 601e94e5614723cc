/// Goal: a random history of every verb, with reopenings, equals the same history on an array of bytes.
/// Method: seeds printed on failure; many segment sizes and options; mem:, and a directory for a few.
#include <algorithm>
#include <random>

#include "engine_fixture.h"

namespace tier::testing {
namespace {

void run_history(const std::shared_ptr<FileSystem>& fs, std::uint64_t seed, FileMode mode) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  EngineOptions o;
  o.segment_size = Bytes{512ull << below(7)};
  o.allow_small_segments = true;
  o.allocate_ahead = Bytes{512ull << below(6)};
  o.prepared_segments = static_cast<std::uint32_t>(below(4));
  o.zero_ahead = below(3) == 0;
  o.mode = mode;
  o.create = Create::kIfMissing;
  std::vector<std::byte> model;
  std::uint64_t begin = 0;
  auto engine = open_engine(fs, o);
  for (int i = 0; i < 300; ++i) {
    ASSERT_NE(engine, nullptr);
    switch (below(12)) {
      case 0:
      case 1:
      case 2: {
        const auto bytes = pattern(random(), 1 + below(3000));
        const auto at = engine->append(bytes);
        ASSERT_OK(at);
        ASSERT_EQ(at->value, model.size());
        model.insert(model.end(), bytes.begin(), bytes.end());
        break;
      }
      case 3: {
        const std::uint64_t n = 1 + below(o.segment_size.value);
        auto lease = engine->claim(Bytes{n}, {.alignment = 1u << below(13), .one_segment = true});
        ASSERT_OK(lease);
        ASSERT_GE(lease->address().value, model.size());
        model.resize(lease->address().value);
        const auto bytes = pattern(random(), n);
        const ByteSpan parts[] = {ByteSpan(bytes).first(n / 3), ByteSpan(bytes).subspan(n / 3)};
        ASSERT_OK(lease->write(Bytes{0}, parts));
        lease->commit();
        model.insert(model.end(), bytes.begin(), bytes.end());
        break;
      }
      case 4: {
        const std::uint64_t n = 1 + below(5000);
        ASSERT_OK(engine->allocate(Bytes{n}));
        model.resize(model.size() + n);
        break;
      }
      case 5:
      case 6: {
        if (model.size() == begin) break;
        const std::uint64_t at = begin + below(model.size() - begin);
        const auto bytes = pattern(random(), 1 + below(std::min<std::uint64_t>(model.size() - at, 4000)));
        ASSERT_OK(engine->write(Address{at}, bytes));
        std::copy(bytes.begin(), bytes.end(), model.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      }
      case 7: ASSERT_OK(engine->sync()); break;
      case 8: {
        if (below(3) != 0) break;
        ASSERT_OK(engine->sync());
        begin += below(model.size() - begin + 1);
        ASSERT_OK(engine->reclaim_head(Address{begin}));
        break;
      }
      case 9: {
        if (below(3) != 0) break;
        model.resize(begin + below(model.size() - begin + 1));
        ASSERT_OK(engine->reclaim_tail(Address{model.size()}));
        break;
      }
      case 10: {
        if (below(4) != 0) break;
        ASSERT_OK(below(2) == 0 ? engine->close() : engine->sync());
        engine.reset();
        engine = open_engine(fs, o);
        break;
      }
      default: {
        const Tails t = engine->tails();
        ASSERT_EQ(t.begin.value, begin);
        ASSERT_EQ(t.committed.value, model.size());
        ASSERT_EQ(t.allocated.value, model.size());
        if (model.size() == begin) break;
        const std::uint64_t at = begin + below(model.size() - begin);
        const std::uint64_t n = 1 + below(model.size() - at);
        std::vector<std::byte> bytes(n);
        ASSERT_OK(engine->read(Address{at}, bytes));
        ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), model.begin() + static_cast<std::ptrdiff_t>(at)));
        const auto view = engine->view(Address{at}, Bytes{std::min<std::uint64_t>(n, 700)});
        ASSERT_OK(view);
        ASSERT_TRUE(std::ranges::equal(view->bytes(), std::span(bytes).first(view->bytes().size())));
      }
    }
  }
}

TEST(EngineModel, HistoriesOnMemory) {
  for (std::uint64_t seed = 1; seed <= 150 && !::testing::Test::HasFailure(); ++seed)
    run_history(open_fs("mem:"), seed, FileMode::kBuffered);
}

TEST(EngineModel, HistoriesOnADirectory) {
  for (std::uint64_t seed = 1001; seed <= 1004 && !::testing::Test::HasFailure(); ++seed) {
    TemporaryDirectory directory;
    run_history(open_fs("local://" + directory.path()), seed, seed % 2 == 0 ? FileMode::kMapped : FileMode::kBuffered);
  }
}

}  // namespace
}  // namespace tier::testing
