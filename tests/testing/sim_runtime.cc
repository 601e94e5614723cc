#include "testing/sim_runtime.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/assert.h"
#include "testing/sim_fiber.h"

namespace tier::testing {
namespace {

constexpr std::uint64_t kStepNs = 100;       // what a choice costs
constexpr std::uint64_t kReadingNs = 20;     // what reading the clock costs, so that a loop on it ends (R3)
constexpr std::uint32_t kLonelyYields = 16;  // then a spinning fiber that is alone waits for the next deadline

// The living simulations of this thread, for of().
thread_local std::vector<SimRuntime*> alive;

enum Mixed : std::uint64_t { kRun = 1, kStart, kUnpark, kSpurious };

}  // namespace

struct SimRuntime::Fiber {
  Fiber(std::string label, std::uint64_t number, std::function<void()> body)
      : name(std::move(label)), id(number), stack(std::move(body)) {}
  std::string name;
  std::uint64_t id;
  SimFiber stack;
  // While it waits: for a change of *word, for the end of `joins`, or (neither) for the time alone.
  const Word* word = nullptr;
  const Fiber* joins = nullptr;
  std::uint32_t expected = 0;
  Deadline until = Deadline::never();
};

class SimRuntime::ClockPart final : public Clock {
 public:
  explicit ClockPart(SimRuntime& sim) noexcept : sim_(sim) {}
  std::uint64_t monotonic_ns() noexcept override { return sim_.now_ += kReadingNs; }
  std::uint64_t wall_ns() noexcept override { return (sim_.now_ += kReadingNs) + sim_.wall_offset_; }

 private:
  SimRuntime& sim_;
};

class SimRuntime::ParkerPart final : public Parker {
 public:
  explicit ParkerPart(SimRuntime& sim) noexcept : sim_(sim) {}
  void park(const Word& word, std::uint32_t expected, Deadline until) noexcept override {
    sim_.park(word, expected, until);
  }
  void unpark_one(const Word& word) noexcept override { sim_.unpark(word, false); }
  void unpark_all(const Word& word) noexcept override { sim_.unpark(word, true); }
  void yield() noexcept override { sim_.yield(); }
  void sleep(Duration d) noexcept override { sim_.sleep(d); }

 private:
  SimRuntime& sim_;
};

class SimRuntime::TaskPart final : public Task {
 public:
  TaskPart(SimRuntime& sim, std::shared_ptr<Fiber> fiber) noexcept : sim_(sim), fiber_(std::move(fiber)) {}
  ~TaskPart() override { join(); }
  void join() noexcept override {
    if (fiber_ == nullptr) return;
    sim_.join(fiber_);
    fiber_.reset();
  }

 private:
  SimRuntime& sim_;
  std::shared_ptr<Fiber> fiber_;
};

class SimRuntime::ExecutorPart final : public Executor {
 public:
  explicit ExecutorPart(SimRuntime& sim) noexcept : sim_(sim) {}
  Result<std::unique_ptr<Task>> start(const char* name, std::function<void()> body) override {
    std::unique_ptr<Task> task = std::make_unique<TaskPart>(sim_, sim_.start(name, std::move(body)));
    sim_.preempt();
    return task;
  }

 private:
  SimRuntime& sim_;
};

SimRuntime::SimRuntime(std::uint64_t seed, const SimRuntimeOptions& options)
    : seed_(seed),
      options_(options),
      random_(sim_mix(seed, 1)),
      product_random_(sim_mix(seed, 2)),
      now_(options.monotonic_ns),
      wall_offset_(options.wall_ns - options.monotonic_ns),
      trace_(sim_mix(seed, 3)),
      clock_(std::make_unique<ClockPart>(*this)),
      parker_(std::make_unique<ParkerPart>(*this)),
      executor_(std::make_unique<ExecutorPart>(*this)),
      runtime_{clock_.get(), &product_random_, parker_.get(), executor_.get()} {
  alive.push_back(this);
}

SimRuntime::~SimRuntime() {
  if (!ready_.empty() || !waiting_.empty()) give_up("destroyed while tasks still run; join them first");
  std::erase(alive, this);
}

SimRuntime* SimRuntime::of(const Runtime* runtime) noexcept {
  for (SimRuntime* sim : alive)
    if (&sim->runtime_ == runtime) return sim;
  return nullptr;
}

void SimRuntime::run(std::function<void()> body) {
  TIER_ASSERT(running_ == nullptr);
  join(start("main", std::move(body)));
}

std::shared_ptr<SimRuntime::Fiber> SimRuntime::start(std::string name, std::function<void()> body) {
  auto fiber = std::make_shared<Fiber>(std::move(name), ++fibers_made_, std::move(body));
  mix(kStart);
  fibers_.push_back(fiber);
  ready_.push_back(fiber.get());
  return fiber;
}

template <class Done>
void SimRuntime::step_until(Done done) {
  while (!done()) step();
}

void SimRuntime::join(const std::shared_ptr<Fiber>& fiber) {
  if (running_ == nullptr) return step_until([&] { return fiber->stack.done(); });
  while (!fiber->stack.done()) wait(nullptr, fiber.get(), Deadline::never());
}

void SimRuntime::park(const Word& word, std::uint32_t expected, Deadline until) {
  preempt();
  // relaxed: there is one thread.
  if (word.load(std::memory_order_relaxed) != expected || until.ns <= now_) return;
  if (random_.chance(options_.spurious)) return mix(kSpurious);
  if (running_ != nullptr) {
    running_->expected = expected;
    return wait(&word, nullptr, until);
  }
  step_until([&] {
    if (word.load(std::memory_order_relaxed) != expected || until.ns <= now_) return true;
    if (!ready_.empty() || until == Deadline::never()) return false;
    // Nobody can run: time passes, to the earliest deadline, which may be this one.
    std::uint64_t next = until.ns;
    for (const Fiber* f : waiting_) next = std::min(next, f->until.ns);
    now_ = std::max(now_, next);
    expire();
    return until.ns <= now_;
  });
}

void SimRuntime::unpark(const Word& word, bool all) {
  std::size_t parked = 0;
  for (const Fiber* f : waiting_) parked += f->word == &word ? 1 : 0;
  if (parked == 0) return;
  std::size_t chosen = all ? 0 : random_.below(parked);
  for (std::size_t i = 0; i < waiting_.size();) {
    if (waiting_[i]->word != &word || (!all && chosen-- != 0)) {
      ++i;
      continue;
    }
    mix(sim_mix(kUnpark, waiting_[i]->id));
    make_ready(i);
    if (!all) break;
  }
  preempt();
}

void SimRuntime::yield() {
  if (running_ == nullptr) {
    if (!ready_.empty()) step();
    return;
  }
  now_ += kStepNs;
  expire();
  if (ready_.empty()) {
    // Alone: whoever it spins for can only come with time.
    if (++lonely_yields_ < kLonelyYields) return;
    lonely_yields_ = 0;
    if (++steps_ > options_.steps) give_up("livelock: one task spins for ever");
    std::uint64_t next = ~std::uint64_t{0};
    for (const Fiber* f : waiting_) next = std::min(next, f->until.ns);
    if (next == ~std::uint64_t{0}) return;
    now_ = std::max(now_, next);
    expire();
  }
  Fiber* self = running_;
  ready_.push_back(self);
  yielded_ = self;
  self->stack.suspend();
}

void SimRuntime::preempt() {
  if (running_ == nullptr || ready_.empty() || !random_.chance(options_.preempt)) return;
  yield();
}

void SimRuntime::sleep(Duration d) {
  if (d.count() <= 0) return;
  const std::uint64_t end = now_ + static_cast<std::uint64_t>(d.count());
  if (running_ != nullptr) {
    while (now_ < end) wait(nullptr, nullptr, Deadline{end});
    return;
  }
  const Word never{0};
  while (now_ < end) park(never, 0, Deadline{end});
}

void SimRuntime::wait(const Word* word, const Fiber* joins, Deadline until) {
  Fiber* self = running_;
  self->word = word;
  self->joins = joins;
  self->until = until;
  waiting_.push_back(self);
  self->stack.suspend();
}

void SimRuntime::make_ready(std::size_t waiting_idx) {
  Fiber* fiber = waiting_[waiting_idx];
  waiting_[waiting_idx] = waiting_.back();
  waiting_.pop_back();
  fiber->word = nullptr;
  fiber->joins = nullptr;
  fiber->until = Deadline::never();
  ready_.push_back(fiber);
}

void SimRuntime::expire() {
  for (std::size_t i = 0; i < waiting_.size();) {
    if (waiting_[i]->until.ns <= now_)
      make_ready(i);
    else
      ++i;
  }
}

void SimRuntime::step() {
  if (++steps_ > options_.steps) give_up("livelock: too many choices");
  now_ += kStepNs;
  expire();
  if (ready_.empty()) {
    std::uint64_t next = ~std::uint64_t{0};
    for (const Fiber* f : waiting_) next = std::min(next, f->until.ns);
    if (next == ~std::uint64_t{0}) give_up("deadlock");
    now_ = std::max(now_, next);
    expire();
  }
  std::size_t pick = random_.below(ready_.size());
  if (ready_[pick] == yielded_ && ready_.size() > 1)
    pick = (pick + 1 + random_.below(ready_.size() - 1)) % ready_.size();
  yielded_ = nullptr;
  Fiber* fiber = ready_[pick];
  ready_[pick] = ready_.back();
  ready_.pop_back();
  mix(sim_mix(kRun, fiber->id));
  if (ready_.size() > 0) lonely_yields_ = 0;
  running_ = fiber;
  fiber->stack.resume();
  running_ = nullptr;
  if (!fiber->stack.done()) return;
  for (std::size_t i = 0; i < waiting_.size();) {
    if (waiting_[i]->joins == fiber)
      make_ready(i);
    else
      ++i;
  }
  std::erase_if(fibers_, [&](const std::shared_ptr<Fiber>& f) { return f.get() == fiber; });
}

void SimRuntime::give_up(const char* what) {
  std::fprintf(stderr, "SimRuntime: %s: seed %" PRIu64 ", time %" PRIu64 " ns, %" PRIu64 " choices\n", what, seed_,
               now_, steps_);
  for (const auto& fiber : fibers_) {
    std::fprintf(stderr, "  task '%s' #%" PRIu64 ": ", fiber->name.c_str(), fiber->id);
    if (fiber.get() == running_)
      std::fprintf(stderr, "runs\n");
    else if (fiber->joins != nullptr)
      std::fprintf(stderr, "joins task '%s' #%" PRIu64 "\n", fiber->joins->name.c_str(), fiber->joins->id);
    else if (fiber->word != nullptr)
      std::fprintf(stderr, "parked on word %p, which is %" PRIu32 " and was %" PRIu32 "\n",
                   static_cast<const void*>(fiber->word), fiber->word->load(std::memory_order_relaxed),
                   fiber->expected);
    else if (fiber->until != Deadline::never())
      std::fprintf(stderr, "sleeps until %" PRIu64 "\n", fiber->until.ns);
    else
      std::fprintf(stderr, "ready\n");
  }
  std::fflush(stderr);
  std::abort();
}

}  // namespace tier::testing
