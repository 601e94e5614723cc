/// SimRuntime: a whole program on one thread, virtual time and one seed.
///
/// Shape       implements tier::Runtime: tasks are fibers, a scheduler picks which runs next, parking runs another.
///             When nobody can run, the clock jumps to the earliest deadline; when there is none, the run is a
///             deadlock: every waiting task is named on stderr and the process aborts (EXPECT_DEATH sees it).
/// Invariants  (R1) same seed, same product code: same choices, same times, same trace().
///             (R2) a fiber loses the processor only in park, unpark, yield, sleep, join, start and preempt(), so code
///                  between those is atomic. A loop that spins without one of them never ends.
///             (R3) Clock::monotonic_ns never goes back; each reading and each choice moves it on a little.
/// Threads     one: the thread that made it. Mutexes of the product spin only through the Parker, so that is enough.
/// Source      FoundationDB's simulation (SIGMOD'21) and loom's parking; here fibers take the place of coroutines.
///
///   tier::testing::SimRuntime sim(seed);
///   sim.run([&] {                                     // the test's own body is a fiber, too
///     tier::Worker worker(sim.runtime(), "worker");   // anything that takes a Runtime&
///     ...
///   });
///   EXPECT_EQ(sim.trace(), trace_of_the_same_seed);
///
/// Outside run() the same Runtime works as well: a park, sleep or join made there runs the fibers until it may return,
/// so objects may be built before run() and destroyed after it. Every task must have ended before the SimRuntime goes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "testing/sim_random.h"
#include "tier/runtime.h"

namespace tier::testing {

struct SimRuntimeOptions {
  /// How often, in 1,024, a point where it could (R2) gives the processor to another fiber. Zero: only when it must.
  std::uint32_t preempt = 256;
  /// How often, in 1,024, a park returns for no reason, as the contract allows.
  std::uint32_t spurious = 16;
  /// The clock at the start.
  std::uint64_t monotonic_ns = 1'000'000'000;
  std::uint64_t wall_ns = 1'700'000'000'000'000'000;
  /// Choices after which the run counts as a livelock, which is reported as a deadlock is.
  std::uint64_t steps = 20'000'000;
};

class SimRuntime {
 public:
  explicit SimRuntime(std::uint64_t seed, const SimRuntimeOptions& options = {});
  ~SimRuntime();
  SimRuntime(const SimRuntime&) = delete;
  SimRuntime& operator=(const SimRuntime&) = delete;

  /// Runs `body` as the fiber "main" until it returns; tasks it left behind stay where they are. May be called again.
  void run(std::function<void()> body);

  Runtime& runtime() noexcept { return runtime_; }
  /// The one whose runtime() this is, or nullptr.
  static SimRuntime* of(const Runtime* runtime) noexcept;

  /// A point where another fiber may run (seeded). For code that stands for an instruction others can see, such as a
  /// call to the disk, or a test's TIER_POINT hook.
  void preempt();
  /// Virtual time passes for the caller, which others use.
  void sleep(Duration d);
  /// The wall clock jumps, both ways; the monotonic clock does not notice.
  void jump_wall(Duration by) noexcept { wall_offset_ += static_cast<std::uint64_t>(by.count()); }
  std::uint64_t now_ns() const noexcept { return now_; }

  /// The simulation's own numbers, apart from runtime().random, which the product draws from.
  SimRandom& random() noexcept { return random_; }
  std::uint64_t seed() const noexcept { return seed_; }
  /// Hash of every choice and every mixed-in value so far.
  std::uint64_t trace() const noexcept { return trace_; }
  void mix(std::uint64_t value) noexcept { trace_ = sim_mix(trace_, value); }
  std::uint64_t steps() const noexcept { return steps_; }

 private:
  struct Fiber;
  class ClockPart;
  class ParkerPart;
  class ExecutorPart;
  class TaskPart;
  using Word = std::atomic<std::uint32_t>;

  void park(const Word& word, std::uint32_t expected, Deadline until);
  void unpark(const Word& word, bool all);
  void yield();
  std::shared_ptr<Fiber> start(std::string name, std::function<void()> body);
  void join(const std::shared_ptr<Fiber>& fiber);
  /// The running fiber waits for `until` or for somebody to make it ready.
  void wait(const Word* word, const Fiber* joins, Deadline until);
  void make_ready(std::size_t waiting_idx);
  void expire();
  /// Makes one choice and runs one fiber until it stops.
  void step();
  template <class Done>
  void step_until(Done done);
  [[noreturn]] void give_up(const char* what);

  const std::uint64_t seed_;
  const SimRuntimeOptions options_;
  SimRandom random_;
  SimRandom product_random_;
  std::uint64_t now_;
  std::uint64_t wall_offset_;
  std::uint64_t trace_;
  std::uint64_t steps_ = 0;
  std::uint64_t fibers_made_ = 0;
  std::uint32_t lonely_yields_ = 0;
  Fiber* running_ = nullptr;
  Fiber* yielded_ = nullptr;  // the one that gave way last, not chosen again at once
  std::vector<std::shared_ptr<Fiber>> fibers_;
  std::vector<Fiber*> ready_;
  std::vector<Fiber*> waiting_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Parker> parker_;
  std::unique_ptr<Executor> executor_;
  Runtime runtime_;
};

}  // namespace tier::testing
