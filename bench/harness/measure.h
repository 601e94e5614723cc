/// measure(): calls in bursts on one or more threads, every other burst with a time stamp after each call.
///
/// Shape       burst, between, burst, between, ...   `between` is not timed: it drains what the burst left behind.
///             bare bursts give ns_per_op; stamped bursts give the percentiles (harness/clock.h says why not both from
///             one). What the stamps cost is the difference of the two kinds' median bursts, at most the cost in an
///             empty loop: a short call overlaps with its stamp, and taking the full cost off would flatter it.
/// Units       several threads: ns is wall time from the first start to the last end, ops the sum of all.
/// Cost        bare: the call and a loop counter. Stamped: one stamp and one 4-byte store a call, into memory touched
///             before.
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/allocations.h"
#include "harness/case.h"
#include "harness/clock.h"
#include "tier/result.h"

namespace tier::bench {

/// The calling thread and threads - 1 others, which wait between bursts.
class Crew {
 public:
  struct Span {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
  };

  explicit Crew(unsigned threads) : spans_(threads), gate_(threads) {
    for (unsigned i = 1; i < threads; ++i) members_.emplace_back([this, i] { follow(i); });
  }
  ~Crew() {
    work_ = nullptr;
    if (!members_.empty()) gate_.arrive_and_wait();
    for (std::thread& member : members_) member.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  unsigned threads() const noexcept { return static_cast<unsigned>(spans_.size()); }

  /// work(thread_idx) on all; gives the ticks from the first start to the last end.
  template <class Work>
  std::uint64_t run(Work& work) {
    context_ = &work;
    work_ = [](void* context, unsigned i) { return (*static_cast<Work*>(context))(i); };
    if (members_.empty()) {
      spans_[0] = work(0u);
    } else {
      gate_.arrive_and_wait();
      spans_[0] = work(0u);
      gate_.arrive_and_wait();
    }
    Span all = spans_[0];
    for (const Span& s : spans_) all = {std::min(all.start, s.start), std::max(all.end, s.end)};
    return all.end - all.start;
  }

 private:
  void follow(unsigned i) {
    for (;;) {
      gate_.arrive_and_wait();
      if (work_ == nullptr) return;
      spans_[i] = work_(context_, i);
      gate_.arrive_and_wait();
    }
  }

  std::vector<Span> spans_;
  std::barrier<> gate_;
  Span (*work_)(void*, unsigned) = nullptr;  // written before the gate opens, read after
  void* context_ = nullptr;
  std::vector<std::thread> members_;
};

struct BurstPlan {
  unsigned threads = 1;
  std::uint64_t calls_per_burst = 10'000;       ///< by each thread
  std::uint64_t calls_max = ~std::uint64_t{0};  ///< by all threads in all bursts; at least two bursts are run
  double seconds = 0.2;                         ///< with what happens between bursts
  std::uint64_t bytes_per_call = 0;
};

/// call(thread, i) is the measured call, i counts each thread's calls; between() runs after each burst.
template <class Call, class Between>
void measure(const BurstPlan& plan, Sample& sample, Call&& call, Between&& between) {
  const StampClock& clock = StampClock::instance();
  const std::uint64_t n = std::max<std::uint64_t>(plan.calls_per_burst, 1);
  // Zeroed, hence touched: the first stamps must not pay for page faults.
  std::vector<std::vector<std::uint32_t>> gaps(plan.threads, std::vector<std::uint32_t>(n));
  std::uint64_t base = 0;
  Crew crew(plan.threads);

  auto bare = [&](unsigned thread) {
    const std::uint64_t start = clock.now();
    for (std::uint64_t i = 0; i < n; ++i) call(thread, base + i);
    return Crew::Span{start, clock.now()};
  };
  auto stamped = [&](unsigned thread) {
    std::uint32_t* const out = gaps[thread].data();
    const std::uint64_t start = clock.now();
    std::uint64_t last = start;
    for (std::uint64_t i = 0; i < n; ++i) {
      call(thread, base + i);
      const std::uint64_t next = clock.now();
      out[i] =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(next - last, std::numeric_limits<std::uint32_t>::max()));
      last = next;
    }
    return Crew::Span{start, last};
  };

  std::vector<double> ticks_a_call[2];  // of each burst; bare, stamped
  const double until = seconds_now() + plan.seconds;
  std::uint64_t done = 0;
  for (unsigned burst = 0; burst < 2 || (done < plan.calls_max && seconds_now() < until); ++burst) {
    const bool stamp = burst % 2 != 0;
    const std::uint64_t before = allocations();
    const std::uint64_t ticks = stamp ? crew.run(stamped) : crew.run(bare);
    sample.allocations += allocations() - before;
    const std::uint64_t calls = n * plan.threads;
    sample.allocation_ops += calls;
    ticks_a_call[stamp].push_back(static_cast<double>(ticks) / static_cast<double>(n));
    if (stamp) {
      for (const auto& list : gaps) {
        for (const std::uint32_t gap : list) sample.latency.record(gap);
      }
    } else {
      sample.ns += clock.ns(ticks);
      sample.ops += calls;
      sample.bytes += calls * plan.bytes_per_call;
    }
    base += n;
    done += calls;
    between();
  }
  const auto middle = [](std::vector<double>& list) {
    std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2), list.end());
    return list[list.size() / 2];
  };
  sample.stamp_cost_ticks = std::clamp(middle(ticks_a_call[1]) - middle(ticks_a_call[0]), 0.0, clock.cost_ticks());
}

template <class Call>
void measure(const BurstPlan& plan, Sample& sample, Call&& call) {
  measure(plan, sample, std::forward<Call>(call), [] {});
}

/// The first failure that any thread of a repetition met; a failed repetition gives no figure.
class FirstFailure {
 public:
  template <class Outcome>
  void check(const Outcome& outcome) noexcept {
    if (!outcome.ok()) [[unlikely]]
      note(outcome);
  }
  bool any() const noexcept { return noted_.load(std::memory_order_acquire) == 2; }  // [F1] pairs with note()
  void report(Sample& sample) const {
    if (any() && sample.failure.empty()) sample.failure = text_;
  }

 private:
  static std::string message(const Status& status) { return status.message(); }
  template <class T>
  static std::string message(const Result<T>& result) {
    return result.status().message();
  }
  template <class Outcome>
  [[gnu::cold]] [[gnu::noinline]] void note(const Outcome& outcome) noexcept {
    int none = 0;
    // relaxed: only picks who writes the text; [F1] publishes it.
    if (noted_.compare_exchange_strong(none, 1, std::memory_order_relaxed)) {
      text_ = message(outcome);
      noted_.store(2, std::memory_order_release);  // [F1]
    }
  }
  std::atomic<int> noted_{0};
  std::string text_;
};

}  // namespace tier::bench
