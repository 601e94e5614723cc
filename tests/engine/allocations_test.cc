/// Goal: append, claim, overwrite and read allocate no memory, mapped and buffered.
/// Method: this program's operator new counts; segments are large enough to be there already.
#include "testing/allocation_count.h"
#include "engine_fixture.h"

namespace tier::testing {
namespace {

void expect_none(const std::shared_ptr<FileSystem>& fs, FileMode mode) {
  EngineOptions o;
  o.segment_size = 4_MiB;
  o.allocate_ahead = 4_MiB;
  o.prepared_segments = 0;
  o.mode = mode;
  o.create = Create::kIfMissing;
  auto engine = open_engine(fs, o);
  ASSERT_OK(engine->append(pattern(0, 64)));
  const auto bytes = pattern(0, 600);
  std::vector<std::byte> back(600);
  const std::size_t before = allocation_count();
  bool ok = true;
  for (int i = 0; i < 1000; ++i) {
    const auto at = engine->append(bytes);
    ok = ok && at.ok() && engine->write(*at, bytes).ok() && engine->read(*at, back).ok();
    auto lease = engine->claim(Bytes{bytes.size()}, {.alignment = 64, .one_segment = true});
    const ByteSpan parts[] = {ByteSpan(bytes).first(100), ByteSpan(bytes).subspan(100)};
    ok = ok && lease.ok() && lease->write(Bytes{0}, parts).ok();
    if (lease.ok()) lease->commit();
  }
  EXPECT_EQ(allocation_count() - before, 0u);
  EXPECT_TRUE(ok);
}

TEST(EngineAllocations, NoneOnMemory) { expect_none(open_fs("mem:"), FileMode::kBuffered); }
TEST(EngineAllocations, NoneOnADirectory) {
  TemporaryDirectory directory;
  expect_none(open_fs("local://" + directory.path()), FileMode::kBuffered);
}
TEST(EngineAllocations, NoneOnAMappedDirectory) {
  TemporaryDirectory directory;
  expect_none(open_fs("local://" + directory.path()), FileMode::kMapped);
}

}  // namespace
}  // namespace tier::testing
