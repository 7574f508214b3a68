#include "backend/decorators/adversarial.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "backend/op_access.hpp"

namespace shardmark {
namespace {

/// An operation that owns what it points to: SumTree's list of inputs. Regions are left out, since the tensor's book-keeping
/// may be gone before the operation runs (its bytes may not).
class QueuedOp {
 public:
  explicit QueuedOp(Op const& op) : op_(op) {
    if (auto* sum = std::get_if<SumTree>(&op_)) {
      inputs_.assign(sum->in.begin(), sum->in.end());
      sum->in = inputs_;
    }
    each_view(op_, [](View& view, Access) { view.region = nullptr; });
  }
  QueuedOp(QueuedOp&&) = default;  // a moved vector keeps its elements' addresses
  Op const& op() const { return op_; }

 private:
  Op op_;
  std::vector<View> inputs_;
};

/// One entry of a queue: an operation, a wait, or (neither) an event to complete.
struct Item {
  std::optional<QueuedOp> op;
  std::optional<Event> wait;
};

}  // namespace

class AdversarialStream final : public Stream {
 public:
  AdversarialStream(AdversarialBackend& owner, std::unique_ptr<Stream> inner) : owner_(owner), inner_(std::move(inner)) {
    owner_.streams_.push_back(this);
  }
  ~AdversarialStream() override { std::erase(owner_.streams_, this); }

  unsigned index() const override { return inner_->index(); }
  Event record() override {
    queue_.emplace_back();
    return {this, ++recorded_};
  }
  void wait(Event event) override {
    owner_.own(*event.on);
    queue_.push_back({std::nullopt, event});
  }
  bool done(Event event) override {
    owner_.stir();
    return owner_.own(*event.on).complete(event);
  }
  double seconds(Event) override { return 0; }
  void synchronize() override {
    while (!queue_.empty()) invariant(owner_.step(), "streams wait for each other in a circle");
  }
  void tick() override { inner_->tick(); }

  void push(Op const& op) { queue_.push_back({QueuedOp(op), std::nullopt}); }
  bool complete(Event event) const { return event.ticket <= completed_; }
  bool ready() const {
    if (queue_.empty()) return false;
    auto const& wait = queue_.front().wait;
    return !wait || owner_.own(*wait->on).complete(*wait);
  }
  void execute() {
    Item const item = std::move(queue_.front());
    queue_.pop_front();
    if (item.op)
      owner_.inner().run(*inner_, item.op->op());
    else if (!item.wait)
      ++completed_;
  }

 private:
  AdversarialBackend& owner_;
  std::unique_ptr<Stream> inner_;
  std::deque<Item> queue_;
  std::uint64_t recorded_ = 0, completed_ = 0;
};

void AdversarialBackend::run(Stream& stream, Op const& op) {
  validate(op);
  mark_touched(stream, op);
  own(stream).push(op);
  stir();
}

std::unique_ptr<Stream> AdversarialBackend::stream() { return std::make_unique<AdversarialStream>(*this, inner().stream()); }

Region AdversarialBackend::reserve(std::size_t bytes, Place place) {
  Region const region = inner().reserve(bytes, place);
  std::memset(region.data, 0xff, bytes);  // a NaN in every floating type
  return region;
}

bool AdversarialBackend::step() {
  ready_.clear();
  std::copy_if(streams_.begin(), streams_.end(), std::back_inserter(ready_), [](AdversarialStream const* s) { return s->ready(); });
  if (ready_.empty()) return false;
  ready_[throw_dice(ready_.size())]->execute();
  return true;
}

void AdversarialBackend::stir() {
  // Mostly nothing, so that queues grow long and much can be reordered; sometimes a burst.
  if (throw_dice(4) != 0) return;
  for (std::uint64_t steps = throw_dice(8); steps > 0 && step(); --steps) {
  }
}

AdversarialStream& AdversarialBackend::own(Stream& stream) const {
  auto const at = std::find(streams_.begin(), streams_.end(), &stream);
  expect(at != streams_.end(), "a stream or event of another backend");
  return **at;
}

std::unique_ptr<Backend> make_adversarial_backend(Backend& inner, std::uint64_t seed) {
  return std::make_unique<AdversarialBackend>(inner, seed);
}

}  // namespace shardmark
