#include "lane/branches.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "lane/error.h"

namespace lane {
namespace {

/// Streams of one captured step. More than this many independent launches of a step are rare, and each fork costs an
/// event.
constexpr int kMaxStreams = 4;
/// Threads that keep a multiprocessor busy.
constexpr int64_t kBusyThreads = 1024;

/// Whether the launch leaves multiprocessors, or room on them, to one that runs beside it. Else a fork is an event for
/// nothing.
bool leaves_room(const Launch& launch, const Chip& chip) {
  const int64_t blocks = int64_t(launch.grid.x) * launch.grid.y * launch.grid.z;
  return blocks * launch.block.x < chip.multiprocessors * kBusyThreads;
}

/// A thing that launches touch: what it is and which one.
using Thing = std::pair<Touch::What, int>;

struct Toucher {
  int launch = 0;
  bool writes = false;
};

/// The launches that touch each thing, in the Schedule's order.
std::map<Thing, std::vector<Toucher>> touchers(const Schedule& schedule) {
  std::map<Thing, std::vector<Toucher>> all;
  for (size_t i = 0; i < schedule.launches.size(); ++i) {
    for (const Touch& t : touches(schedule.launches[i])) all[{t.what, t.index}].push_back({int(i), t.writes});
  }
  return all;
}

/// For each launch, the earlier ones that must have finished: two that touch the same thing, one of them writing.
std::vector<std::vector<int>> dependences(const Schedule& schedule) {
  std::vector<std::vector<int>> needs(schedule.launches.size());
  for (const auto& [thing, list] : touchers(schedule)) {
    for (size_t i = 0; i < list.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if ((list[i].writes || list[j].writes) && list[i].launch != list[j].launch) {
          needs[size_t(list[i].launch)].push_back(list[j].launch);
        }
      }
    }
  }
  for (std::vector<int>& n : needs) {
    std::sort(n.begin(), n.end());
    n.erase(std::unique(n.begin(), n.end()), n.end());
  }
  return needs;
}

/// Puts launches on streams, one after the other.
class Forker {
 public:
  explicit Forker(size_t launches) { branches_.after.resize(launches); }

  /// may_fork: it may begin a stream of its own.
  void place(const std::vector<int>& needs, bool may_fork) {
    const int i = int(branches_.stream.size());
    const int stream = choose(needs, may_fork);
    branches_.stream.push_back(stream);
    std::vector<int> seen = stream < int(tail_.size()) && tail_[size_t(stream)] >= 0
                                ? last_[size_t(tail_[size_t(stream)])]
                                : std::vector<int>(size_t(kMaxStreams), -1);
    // Latest first: an edge to it often implies the ones to earlier launches.
    for (auto need = needs.rbegin(); need != needs.rend(); ++need) {
      if (seen[size_t(branches_.stream[size_t(*need)])] >= *need) continue;
      branches_.after[size_t(i)].push_back(*need);
      merge(seen, last_[size_t(*need)]);
    }
    std::sort(branches_.after[size_t(i)].begin(), branches_.after[size_t(i)].end());
    seen[size_t(stream)] = i;
    last_.push_back(seen);
    if (stream == int(tail_.size())) tail_.push_back(-1);
    tail_[size_t(stream)] = i;
  }

  Branches take() {
    branches_.streams = std::max(1, int(tail_.size()));
    return std::move(branches_);
  }

 private:
  static void merge(std::vector<int>& into, const std::vector<int>& other) {
    for (size_t s = 0; s < into.size(); ++s) into[s] = std::max(into[s], other[s]);
  }

  /// A launch without needs starts on the main stream: a captured stream must begin with a fork from it. Else behind
  /// the latest launch it needs, if that one is last on its stream; else on a stream whose work it waits for anyway;
  /// else on a new one, where it may.
  int choose(const std::vector<int>& needs, bool may_fork) const {
    if (needs.empty()) return 0;
    for (auto need = needs.rbegin(); need != needs.rend(); ++need) {
      const int stream = branches_.stream[size_t(*need)];
      if (tail_[size_t(stream)] == *need) return stream;
    }
    std::vector<int> seen(size_t(kMaxStreams), -1);
    for (int need : needs) merge(seen, last_[size_t(need)]);
    for (size_t s = 0; s < tail_.size(); ++s) {
      if (seen[s] >= tail_[s]) return int(s);
    }
    return may_fork && tail_.size() < size_t(kMaxStreams) ? int(tail_.size()) : 0;
  }

  Branches branches_;
  std::vector<std::vector<int>> last_;  // as in LaunchOrder
  std::vector<int> tail_;               // of each stream: its last launch so far
};

const char* what_name(Touch::What what) {
  constexpr const char* kNames[] = {"buffer", "state", "io", "logits"};
  return kNames[int(what)];
}

}  // namespace

LaunchOrder::LaunchOrder(const Branches& branches) : stream_(branches.stream) {
  std::vector<int> none(size_t(branches.streams), -1);
  std::vector<int> tail = none;
  for (size_t i = 0; i < stream_.size(); ++i) {
    const size_t stream = size_t(stream_[i]);
    std::vector<int> seen = tail[stream] < 0 ? none : last_[size_t(tail[stream])];
    for (int a : branches.after[i]) {
      const std::vector<int>& other = last_[size_t(a)];
      for (size_t s = 0; s < seen.size(); ++s) seen[s] = std::max(seen[s], other[s]);
    }
    seen[stream] = tail[stream] = int(i);
    last_.push_back(std::move(seen));
  }
}

std::vector<Touch> touches(const Launch& launch) {
  std::vector<Touch> list;
  for (const Arg& arg : launch.args) {
    if (const auto* b = std::get_if<BufferArg>(&arg)) {
      list.push_back({Touch::What::Buffer, b->buffer, b->access != Access::Read});
    } else if (const auto* s = std::get_if<StateArg>(&arg)) {
      list.push_back({Touch::What::State, s->state, s->access != Access::Read});
    } else if (const auto* io = std::get_if<IoArg>(&arg)) {
      list.push_back({Touch::What::Io, int(io->io), io->access != Access::Read});
    } else if (std::holds_alternative<LogitsArg>(arg)) {
      list.push_back({Touch::What::Logits, 0, true});  // the argument does not say; writing is the safe reading
    }
  }
  return list;
}

Branches branch(const Schedule& schedule, const Options& options, const Chip& chip) {
  // The host chip runs one stream after the other: forks would only cost events.
  if (!options.branches || chip.capability == 0) {
    Branches straight;
    straight.stream.assign(schedule.launches.size(), 0);
    straight.after.resize(schedule.launches.size());
    return straight;
  }
  Forker forker(schedule.launches.size());
  const std::vector<std::vector<int>> needs = dependences(schedule);
  for (size_t i = 0; i < needs.size(); ++i) forker.place(needs[i], leaves_room(schedule.launches[i], chip));
  return forker.take();
}

void verify(const Branches& branches, const Schedule& schedule) {
  const size_t n = schedule.launches.size();
  if (branches.stream.size() != n || branches.after.size() != n) {
    throw InternalError(fmt::format("branches: {} streams and {} edge lists for {} launches", branches.stream.size(),
                                    branches.after.size(), n));
  }
  std::vector<bool> begun(size_t(std::max(branches.streams, 1)), false);
  for (size_t i = 0; i < n; ++i) {
    const int stream = branches.stream[i];
    if (stream < 0 || stream >= branches.streams)
      throw InternalError(fmt::format("branches: launch {} is on stream {}", i, stream));
    for (int a : branches.after[i]) {
      if (a < 0 || a >= int(i)) throw InternalError(fmt::format("branches: launch {} is after {}", i, a));
    }
    if (stream != 0 && !begun[size_t(stream)] && branches.after[i].empty()) {
      throw InternalError(fmt::format("branches: stream {} begins without a fork at launch {}", stream, i));
    }
    begun[size_t(stream)] = true;
  }
  const LaunchOrder order(branches);
  for (const auto& [thing, list] : touchers(schedule)) {
    for (const Toucher& a : list) {
      for (const Toucher& b : list) {
        if (a.launch >= b.launch || !(a.writes || b.writes) || order.before(a.launch, b.launch)) continue;
        throw InternalError(fmt::format("branches: launches {} and {} touch {} {} unordered", a.launch, b.launch,
                                        what_name(thing.first), thing.second));
      }
    }
  }
}

std::string to_text(const Branches& branches, const Schedule& schedule) {
  std::string text = fmt::format("streams {}\n", branches.streams);
  for (size_t i = 0; i < branches.stream.size(); ++i) {
    text += fmt::format("{:4} {:3} {}", i, branches.stream[i], schedule.launches[i].kernel->name);
    for (size_t k = 0; k < branches.after[i].size(); ++k) {
      text += fmt::format("{}{}", k == 0 ? " after " : ", ", branches.after[i][k]);
    }
    text += '\n';
  }
  return text;
}

}  // namespace lane
