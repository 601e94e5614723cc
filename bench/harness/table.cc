#include "harness/table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tier::bench {
namespace {

using Json = nlohmann::ordered_json;

Json median(std::vector<double> values) {
  if (values.empty()) return nullptr;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Json inverse(const Json& ns) {
  return ns.is_number() && ns.get<double>() > 0 ? Json(1e9 / ns.get<double>()) : Json(nullptr);
}

}  // namespace

void Table::begin_round(const std::vector<const Case*>& members) {
  for (const Case* member : members) round_.erase(member->name);
}

std::string Table::add(const Case& c, const Sample& sample) {
  Entry& entry = entries_[c.name];
  if (!sample.failure.empty() || sample.ops == 0) {
    entry.failure = sample.failure.empty() ? "measured nothing" : sample.failure;
    return entry.failure;
  }
  const double ns = sample.ns_per_op();
  round_[c.name] = ns;
  entry.ns_per_op.push_back(ns);
  if (sample.bytes != 0) entry.bytes_per_s.push_back(static_cast<double>(sample.bytes) / (sample.ns * 1e-9));
  if (sample.allocation_ops != 0) {
    entry.allocs.push_back(static_cast<double>(sample.allocations) / static_cast<double>(sample.allocation_ops));
  }
  for (const auto& [key, value] : sample.extra) entry.extra[key].push_back(value);

  // A percentile needs a few calls beyond it to mean anything.
  const StampClock& clock = StampClock::instance();
  const std::uint64_t calls = sample.latency.count();
  entry.stamped_calls += calls;
  const auto note = [&](std::vector<double>& list, double p, std::uint64_t calls_min) {
    if (calls < calls_min) return;
    list.push_back(clock.ns(std::max(0.0, sample.latency.percentile(p) - sample.stamp_cost_ticks)));
  };
  note(entry.p50, 0.5, 20);
  note(entry.p99, 0.99, 300);
  note(entry.p999, 0.999, 3'000);
  return {};
}

void Table::end_round(const std::vector<const Case*>& judged) {
  const auto ratio = [&](const Case& c, const std::string& other, std::vector<double>& list) {
    const auto mine = round_.find(c.name);
    const auto theirs = round_.find(other);
    if (mine != round_.end() && theirs != round_.end() && theirs->second > 0)
      list.push_back(mine->second / theirs->second);
  };
  for (const Case* c : judged) {
    Entry& entry = entries_[c->name];
    if (!c->limit.empty()) ratio(*c, c->limit, entry.limit_ratio);
    for (const auto& [peer, name] : c->peers) ratio(*c, name, entry.peer_ratio[peer]);
  }
}

std::string Table::json(bool quick) const {
  const StampClock& clock = StampClock::instance();
  Json document;
  document["quick"] = quick;
  document["clock"] = {{"name", clock.name()},
                       {"resolution_ns", clock.ns(clock.step_ticks())},
                       {"stamp_cost_ns", clock.ns(clock.cost_ticks())}};
  Json list = Json::array();
  for (const Case& c : registry_.cases()) {
    const auto it = entries_.find(c.name);
    if (it == entries_.end()) continue;
    const Entry& e = it->second;
    Json one;
    one["name"] = c.name;
    one["ns_per_op"] = median(e.ns_per_op);
    one["ops_per_s"] = inverse(one["ns_per_op"]);
    one["bytes_per_s"] = median(e.bytes_per_s);
    one["p50_ns"] = median(e.p50);
    one["p99_ns"] = median(e.p99);
    one["p999_ns"] = median(e.p999);
    one["allocs_per_op"] = median(e.allocs);
    one["limit"] = c.limit.empty() ? Json(nullptr) : Json(c.limit);
    one["ratio_to_limit"] = median(e.limit_ratio);
    one["peers"] = Json::object();
    for (const auto& [peer, ratios] : e.peer_ratio) one["peers"][peer] = median(ratios);
    one["repetitions"] = e.ns_per_op.size();
    if (!e.ns_per_op.empty()) {
      one["ns_per_op_min"] = *std::min_element(e.ns_per_op.begin(), e.ns_per_op.end());
      one["ns_per_op_max"] = *std::max_element(e.ns_per_op.begin(), e.ns_per_op.end());
    }
    if (e.stamped_calls != 0) one["stamped_calls"] = e.stamped_calls;
    for (const auto& [key, values] : e.extra) one[key] = median(values);
    if (!c.note.empty()) one["note"] = c.note;
    if (!e.failure.empty()) one["failure"] = e.failure;
    list.push_back(std::move(one));
  }
  document["cases"] = std::move(list);
  return document.dump(1);
}

}  // namespace tier::bench
