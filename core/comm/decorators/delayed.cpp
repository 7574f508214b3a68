#include "comm/decorators/delayed.hpp"

#include <chrono>
#include <thread>

namespace shardmark {
namespace {

using Clock = std::chrono::steady_clock;

class DelayedRequest final : public RequestState {
 public:
  DelayedRequest(Request inner, Clock::time_point not_before) : inner_(std::move(inner)), not_before_(not_before) {}
  bool poll() override { return Clock::now() >= not_before_ && inner_.test(); }
  void order(Stream& consumer) override {
    std::this_thread::sleep_until(not_before_);
    inner_.wait(consumer);
  }

 private:
  Request inner_;
  Clock::time_point not_before_;
};

class Delayed final : public Communicator {
 public:
  Delayed(Communicator& inner, Delays delays)
      : inner_(inner), delays_(delays), randoms_(delays.seed, Purpose::delay, std::uint64_t(inner.rank())) {}
  Delayed(std::unique_ptr<Communicator> inner, Delays delays) : Delayed(*inner, delays) { owned_ = std::move(inner); }
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Request post(Stream& producer, std::span<Message const> group) override {
    std::this_thread::sleep_for(delay());
    return later(inner_.post(producer, group));
  }
  Request post(Stream& producer, Exchange const& exchange) override {
    std::this_thread::sleep_for(delay());
    return later(inner_.post(producer, exchange));
  }
  void progress() override { inner_.progress(); }
  int outstanding() const override { return inner_.outstanding(); }
  void abort(std::string_view reason) noexcept override { inner_.abort(reason); }
  std::unique_ptr<Communicator> split(std::span<int const> colours) override {
    auto group = inner_.split(colours);
    if (group == nullptr) return nullptr;
    return std::make_unique<Delayed>(std::move(group), Delays{delays_.seed + ++splits_, delays_.longest_seconds});
  }
  std::optional<Region> symmetric(std::size_t bytes) override { return inner_.symmetric(bytes); }
  std::string_view name() const override { return inner_.name(); }

 private:
  Clock::duration delay() {
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(delays_.longest_seconds * randoms_.uniform(events_++)));
  }
  Request later(Request inner) { return Request(std::make_shared<DelayedRequest>(std::move(inner), Clock::now() + delay())); }

  std::unique_ptr<Communicator> owned_;
  Communicator& inner_;
  Delays delays_;
  Randoms randoms_;
  std::uint64_t events_ = 0, splits_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_delayed(Communicator& inner, Delays delays) { return std::make_unique<Delayed>(inner, delays); }

}  // namespace shardmark
