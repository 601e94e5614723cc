#include "testing/sim_fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/assert.h"

#if defined(__SANITIZE_ADDRESS__)
#define TIER_SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TIER_SIM_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define TIER_SIM_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TIER_SIM_TSAN 1
#endif
#endif
#ifdef TIER_SIM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef TIER_SIM_TSAN
#include <sanitizer/tsan_interface.h>
#endif

// TIER_SIM_UCONTEXT forces the portable switch, so that it can be tested where the fast one exists.
#if defined(__x86_64__) && !defined(TIER_SIM_UCONTEXT)
#define TIER_SIM_FAST_SWITCH 1
#else
#include <ucontext.h>
#endif

#ifdef TIER_SIM_FAST_SWITCH
// Saves what the System V ABI lets a callee not change, parks the stack pointer in *rdi, and goes on at the one in rsi.
// The rounding modes of the FPU stay as they are: nobody here changes them.
extern "C" void tier_sim_switch(void** save, void* load) noexcept;
asm(R"(
.text
.globl tier_sim_switch
.hidden tier_sim_switch
.type tier_sim_switch, @function
.p2align 4
tier_sim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tier_sim_switch, .-tier_sim_switch
)");
#endif

namespace tier::testing {
namespace {

constexpr std::size_t kGuard = 4096;

/// Stacks of ended fibers, kept for the next ones: a simulation lives for microseconds, a mapping costs about as much.
class StackPool {
 public:
  ~StackPool() {
    for (std::byte* stack : free_) ::munmap(stack - kGuard, SimFiber::kStackSize + kGuard);
  }
  std::byte* take() {
    if (!free_.empty()) {
      std::byte* stack = free_.back();
      free_.pop_back();
      return stack;
    }
    void* p = ::mmap(nullptr, SimFiber::kStackSize + kGuard, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    TIER_ASSERT(p != MAP_FAILED);
    TIER_ASSERT(::mprotect(p, kGuard, PROT_NONE) == 0);
    return static_cast<std::byte*>(p) + kGuard;
  }
  void give(std::byte* stack) {
#ifdef TIER_SIM_ASAN
    // Frames that were never left have poisoned their surroundings.
    __asan_unpoison_memory_region(stack, SimFiber::kStackSize);
#endif
    free_.push_back(stack);
  }

 private:
  std::vector<std::byte*> free_;
};
thread_local StackPool stacks;

/// The fiber that runs on this thread, also handed to the one that starts.
thread_local SimFiber* running = nullptr;

}  // namespace

struct SimFiber::Context {
#ifdef TIER_SIM_FAST_SWITCH
  void* inside = nullptr;
  void* outside = nullptr;
#else
  ucontext_t inside;
  ucontext_t outside;
#endif
#ifdef TIER_SIM_ASAN
  void* inside_fake = nullptr;
  void* outside_fake = nullptr;
  const void* outside_bottom = nullptr;
  std::size_t outside_size = 0;
#endif
#ifdef TIER_SIM_TSAN
  void* inside_tsan = nullptr;
  void* outside_tsan = nullptr;
#endif
};

SimFiber::SimFiber(std::function<void()> body)
    : body_(std::move(body)), context_(std::make_unique<Context>()), stack_(stacks.take()) {
#ifdef TIER_SIM_TSAN
  context_->inside_tsan = __tsan_create_fiber(0);
#endif
#ifdef TIER_SIM_FAST_SWITCH
  // What tier_sim_switch pops: six registers, then enter() as the address to return to. The ABI wants the stack pointer
  // 8 off a multiple of 16 at a function's first instruction; the word there stands for its return address and ends
  // backtraces.
  std::byte* top = stack_ + kStackSize;
  std::memset(top - 64, 0, 64);
  const auto entry = reinterpret_cast<std::uintptr_t>(&SimFiber::enter);
  std::memcpy(top - 16, &entry, sizeof entry);
  context_->inside = top - 64;
#else
  TIER_ASSERT(::getcontext(&context_->inside) == 0);
  context_->inside.uc_stack.ss_sp = stack_;
  context_->inside.uc_stack.ss_size = kStackSize;
  context_->inside.uc_link = nullptr;
  ::makecontext(&context_->inside, &SimFiber::enter, 0);
#endif
}

SimFiber::~SimFiber() {
#ifdef TIER_SIM_TSAN
  __tsan_destroy_fiber(context_->inside_tsan);
#endif
  stacks.give(stack_);
}

void SimFiber::resume() {
  TIER_ASSERT(running == nullptr && !done_);  // B1
  running = this;
#ifdef TIER_SIM_TSAN
  context_->outside_tsan = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(context_->inside_tsan, 0);
#endif
#ifdef TIER_SIM_ASAN
  __sanitizer_start_switch_fiber(&context_->outside_fake, stack_, kStackSize);
#endif
#ifdef TIER_SIM_FAST_SWITCH
  tier_sim_switch(&context_->outside, context_->inside);
#else
  ::swapcontext(&context_->outside, &context_->inside);
#endif
#ifdef TIER_SIM_ASAN
  __sanitizer_finish_switch_fiber(context_->outside_fake, nullptr, nullptr);
#endif
  running = nullptr;
}

void SimFiber::suspend() {
  TIER_ASSERT(running == this);
  leave(false);
}

void SimFiber::leave([[maybe_unused]] bool for_ever) {
#ifdef TIER_SIM_TSAN
  __tsan_switch_to_fiber(context_->outside_tsan, 0);
#endif
#ifdef TIER_SIM_ASAN
  __sanitizer_start_switch_fiber(for_ever ? nullptr : &context_->inside_fake, context_->outside_bottom,
                                 context_->outside_size);
#endif
#ifdef TIER_SIM_FAST_SWITCH
  tier_sim_switch(&context_->inside, context_->outside);
#else
  ::swapcontext(&context_->inside, &context_->outside);
#endif
#ifdef TIER_SIM_ASAN
  __sanitizer_finish_switch_fiber(context_->inside_fake, &context_->outside_bottom, &context_->outside_size);
#endif
}

void SimFiber::enter() noexcept {
  SimFiber* self = running;
#ifdef TIER_SIM_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &self->context_->outside_bottom, &self->context_->outside_size);
#endif
  self->body_();
  self->body_ = nullptr;  // what it captured goes while the fiber still runs
  self->done_ = true;
  self->leave(true);
  TIER_ASSERT(false);  // nobody resumes a fiber that has ended (B1)
}

}  // namespace tier::testing
