#include "log/read_state.h"

#include "log/follower.h"

namespace tier {

ReadState::ReadState(Runtime& runtime_in, std::shared_ptr<Engine> engine_in, std::uint32_t index_stride)
    : runtime(runtime_in),
      engine(std::move(engine_in)),
      progress(*runtime_in.parker),
      index(*runtime_in.parker, engine->segment_size().value, index_stride),
      first_mutex_(*runtime_in.parker) {}

ReadState::~ReadState() = default;

Status ReadState::given_up(std::uint64_t sequence) const {
  return fail(Code::kTruncated, 0, "the record was given up by truncation; go on from the first available sequence",
              "wanted %llu, first available %llu", static_cast<unsigned long long>(sequence),
              static_cast<unsigned long long>(first.sequence()));
}

}  // namespace tier
