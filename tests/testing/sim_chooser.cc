#include "testing/sim_chooser.h"

#include <iterator>

#include "testing/sim_image.h"

namespace tier::testing {

std::uint64_t SimChooser::grown(std::uint64_t, std::uint64_t to) { return to; }
SimChooser::Fate SimChooser::fate(const SimChoice&) { return Fate::kWhole; }
bool SimChooser::stale(const SimChoice&) { return false; }

bool SimEveryCrash::next() {
  asked_ = 0;
  if (!begun_) {
    begun_ = true;
    return true;
  }
  // Counts in binary, the choice asked last being the lowest digit: what follows a changed choice is asked anew.
  while (!choices_.empty() && choices_.back()) choices_.pop_back();
  if (choices_.empty()) return false;
  choices_.back() = true;
  return true;
}

bool SimEveryCrash::keep(const SimChoice&) {
  if (asked_ == choices_.size()) choices_.push_back(false);
  return choices_[asked_++];
}

SimSeededCrash::SimSeededCrash(std::uint64_t seed, SimProfile profile, std::uint64_t first_order,
                               std::uint64_t last_order)
    : seed_(seed), random_(sim_mix(seed, 0x6372617368u)), hostile_(profile == SimProfile::kHostile) {
  const std::uint64_t strategy = random_.below(16);
  coins_ = strategy > 3;
  if (strategy == 1) limit_ = last_order;
  if (strategy == 2 || strategy == 3) limit_ = first_order + random_.below(last_order - first_order + 1);
  garbage_ = hostile_ && random_.chance(512) ? 32 : 0;
}

bool SimSeededCrash::keep(const SimChoice& choice) {
  if (!coins_) return choice.order <= limit_;
  constexpr std::uint32_t kBias[] = {0, 24, 256, 512, 512, 768, 1000, 1024};
  std::uint64_t kind = 3;
  if (choice.kind == SimChoice::Kind::kSector) kind = 1;
  if (choice.kind == SimChoice::Kind::kName) kind = 2;
  return random_.chance(kBias[sim_mix(seed_ + kind, choice.inode) % std::size(kBias)]);
}

std::uint64_t SimSeededCrash::grown(std::uint64_t from, std::uint64_t to) {
  if (!coins_ || !random_.chance(256)) return to;
  const std::uint64_t between = align_down(from + 1 + random_.below(to - from), kSimSector);  // D2
  return between > from ? between : to;
}

SimChooser::Fate SimSeededCrash::fate(const SimChoice&) {
  if (garbage_ == 0 || !random_.chance(garbage_)) return Fate::kWhole;
  return random_.chance(768) ? Fate::kGarbage : Fate::kUnreadable;
}

bool SimSeededCrash::stale(const SimChoice&) { return hostile_ && random_.chance(256); }

}  // namespace tier::testing
