#include "backend/decorators/hazards.hpp"

#include <algorithm>
#include <deque>

#include <fmt/format.h>

#include "backend/op_access.hpp"

namespace shardmark {
namespace {

using Clock = HazardsBackend::Clock;

void join(Clock& into, Clock const& from) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}

bool covers(Clock const& later, Clock const& earlier) {
  return std::equal(earlier.begin(), earlier.end(), later.begin(), std::less_equal<>{});
}

/// Whether every element of `inner` is one of `outer`.
bool contains(View const& outer, View const& inner) {
  if (outer.data == inner.data && same_shape(outer, inner) && outer.stride == inner.stride && outer.dtype == inner.dtype) return true;
  auto const [o0, o1] = extent(outer);
  auto const [i0, i1] = extent(inner);
  return outer.contiguous() && o0 <= i0 && i1 <= o1;
}

}  // namespace

/// A stream that keeps a vector clock beside the stream which does the work.
class HazardStream final : public Stream {
 public:
  HazardStream(HazardsBackend& owner, std::unique_ptr<Stream> inner) : owner_(owner), inner_(std::move(inner)) {
    owner_.streams_.push_back(this);
  }
  ~HazardStream() override { std::erase(owner_.streams_, this); }

  unsigned index() const override { return inner_->index(); }
  Event record() override {
    ++owner_.submissions_;
    marks_.push_back({clock(), inner_->record()});
    return {this, ++tickets_};
  }
  void wait(Event event) override {
    ++owner_.submissions_;
    HazardStream& on = owner_.own(*event.on);
    if (Mark const* mark = on.mark(event)) {
      join(clock_, mark->clock);
      inner_->wait(mark->inner);
    }
  }
  bool done(Event event) override {
    HazardStream& on = owner_.own(*event.on);
    Mark const* const mark = on.mark(event);
    if (mark == nullptr || covers(owner_.host_, mark->clock)) return true;
    bool const spins = asked_.on == event.on && asked_.ticket == event.ticket && asked_at_ == owner_.submissions_;
    asked_ = event;
    asked_at_ = owner_.submissions_;
    if (!spins || !inner_->done(mark->inner)) return false;
    owner_.host_has_seen(mark->clock);
    return true;
  }
  double seconds(Event event) override {
    Mark const* const mark = owner_.own(*event.on).mark(event);
    return mark == nullptr ? 0 : inner_->seconds(mark->inner);
  }
  void synchronize() override {
    ++owner_.submissions_;
    inner_->synchronize();
    owner_.host_has_seen(clock());
    // Every event so far is complete, which an absent mark says too.
    marks_.clear();
    forgotten_ = tickets_;
  }
  void tick() override { inner_->tick(); }

  Stream& inner() { return *inner_; }
  /// What is ordered before the next operation: everything that this stream waited for and what the host has seen.
  Clock& clock() {
    join(clock_, owner_.host_);
    return clock_;
  }

 private:
  struct Mark {
    Clock clock;
    Event inner;
  };
  Mark const* mark(Event event) const { return event.ticket <= forgotten_ ? nullptr : &marks_[std::size_t(event.ticket - forgotten_ - 1)]; }

  HazardsBackend& owner_;
  std::unique_ptr<Stream> inner_;
  Clock clock_{};
  std::deque<Mark> marks_;  // of tickets forgotten_ + 1 ...
  std::uint64_t tickets_ = 0, forgotten_ = 0;
  Event asked_;
  std::uint64_t asked_at_ = 0;
};

void HazardsBackend::run(Stream& stream, Op const& op) {
  validate(op);
  mark_touched(stream, op);
  ++submissions_;
  HazardStream& on = own(stream);
  Clock& clock = on.clock();
  std::uint64_t const time = ++clock[on.index()];
  std::string_view const op_name = shardmark::name(op);
  auto each_access = [&](auto&& f) {
    each_view(op, [&](View const& view, shardmark::Access access) {
      if (view.elements() > 0) f(Access{view, writes_to(access), on.index(), time, op_name});
    });
  };
  each_access([&](Access const& access) { check(access, clock); });
  each_access([&](Access const& access) { remember(access); });
  inner().run(on.inner(), op);
}

std::unique_ptr<Stream> HazardsBackend::stream() { return std::make_unique<HazardStream>(*this, inner().stream()); }

void HazardsBackend::check(Access const& now, Clock const& clock) const {
  for (Access const& before : accesses_) {
    if (!before.writes && !now.writes) continue;
    if (clock[before.stream] >= before.time || !share_elements(before.view, now.view)) continue;
    throw RankFailure(fmt::format("hazard: {} on stream {} {} memory that {} on stream {} {}, and no event orders them", now.op, now.stream,
                                  now.writes ? "writes" : "reads", before.op, before.stream, before.writes ? "writes" : "reads"));
  }
}

void HazardsBackend::remember(Access const& now) {
  // An access that `now` stands for needn't be kept: whoever is ordered after `now` is ordered after it.
  std::erase_if(accesses_, [&](Access const& before) {
    bool const ordered = now.writes || (!before.writes && before.stream == now.stream);
    bool const same_op = before.stream == now.stream && before.time == now.time;
    return ordered && !same_op && contains(now.view, before.view);
  });
  accesses_.push_back(now);
}

void HazardsBackend::host_has_seen(Clock const& clock) {
  join(host_, clock);
  std::erase_if(accesses_, [&](Access const& a) { return a.time <= host_[a.stream]; });
}

HazardStream& HazardsBackend::own(Stream& stream) const {
  auto const at = std::find(streams_.begin(), streams_.end(), &stream);
  expect(at != streams_.end(), "a stream or event of another backend");
  return **at;
}

}  // namespace shardmark
