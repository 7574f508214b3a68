#pragma once
// What is alive between actions: micro-batches, stashes, the tensors on boundaries, requests. Fixed capacity after warm-up.

#include <algorithm>
#include <vector>

#include "comm/communicator.hpp"
#include "model/layer.hpp"

namespace shardmark {

/// What stands in front of a block: its input, the gradient of it that its backward made, or an input that is kept for a recomputation.
enum class AtEdge : std::uint8_t { activation, gradient, kept_input };

/// Tensors in front of blocks.
class Boundaries {
 public:
  Boundaries() { live_.reserve(256); }
  void put(ChunkId edge, MicroId micro, AtEdge what, Tensor tensor) { live_.push_back({edge, micro, what, std::move(tensor)}); }
  Tensor take(ChunkId edge, MicroId micro, AtEdge what) {
    auto const at = find(edge, micro, what);
    expect(at != live_.end(), "an action needs a tensor that nothing has made");
    Tensor out = std::move(at->tensor);
    *at = std::move(live_.back());
    live_.pop_back();
    return out;
  }
  std::size_t size() const { return live_.size(); }

 private:
  struct Entry {
    ChunkId edge;
    MicroId micro;
    AtEdge what;
    Tensor tensor;
  };
  std::vector<Entry>::iterator find(ChunkId edge, MicroId micro, AtEdge what) {
    return std::find_if(live_.begin(), live_.end(), [&](Entry const& e) { return e.edge == edge && e.micro == micro && e.what == what; });
  }
  std::vector<Entry> live_;
};

/// Stashes by (block, micro-batch), reused.
class Stashes {
 public:
  Stash& open(ChunkId block, MicroId micro, std::size_t slots) {
    for (Entry& e : entries_)
      if (!e.used && e.stash->size() == slots) return claim(e, block, micro);
    entries_.push_back({block, micro, std::make_unique<Stash>(slots), false});
    return claim(entries_.back(), block, micro);
  }
  Stash& at(ChunkId block, MicroId micro) {
    for (Entry& e : entries_)
      if (e.used && e.block == block && e.micro == micro) return *e.stash;
    invariant(false, "a backward has no stash");
    return *entries_.front().stash;
  }
  void close(ChunkId block, MicroId micro) {
    for (Entry& e : entries_)
      if (e.used && e.block == block && e.micro == micro) {
        e.stash->drop(Until::weight);
        e.stash->restrict(Keep::all);
        e.used = false;
        --open_;
      }
  }
  int open_count() const { return open_; }
  int peak() const { return peak_; }

 private:
  struct Entry {
    ChunkId block;
    MicroId micro;
    std::unique_ptr<Stash> stash;
    bool used;
  };
  Stash& claim(Entry& e, ChunkId block, MicroId micro) {
    e.block = block;
    e.micro = micro;
    e.used = true;
    peak_ = std::max(peak_, ++open_);
    return *e.stash;
  }
  std::vector<Entry> entries_;
  int open_ = 0, peak_ = 0;
};

/// Posted and not yet waited for, in order of posting.
class OpenRequests {
 public:
  OpenRequests() { open_.reserve(256); }
  void add(Token token, Request request) { open_.emplace_back(token, std::move(request)); }
  void wait(Token token, Stream& consumer) {
    auto const at = std::find_if(open_.begin(), open_.end(), [&](auto const& e) { return e.first == token; });
    expect(at != open_.end(), "a wait for something that was not posted");
    Request request = std::move(at->second);
    open_.erase(at);
    request.wait(consumer);
  }
  bool empty() const { return open_.empty(); }

 private:
  std::vector<std::pair<Token, Request>> open_;
};

}  // namespace shardmark
