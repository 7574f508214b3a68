#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "base/mutant.hpp"
#include "data/batch.hpp"
#include "data/dataset.hpp"

namespace shardmark {
namespace {

/// Reads one micro-batch after the other; knows nothing of threads.
class Reader {
 public:
  Reader(Dataset const& data, Sampler const& sampler, Cut cut, std::int64_t first_batch)
      : data_(data), sampler_(sampler), cut_(cut), first_(first_batch), batch_(first_batch), buffer_(std::size_t(sampler.global_batch())) {
    expect(cut.replicas > 0 && cut.micros > 0, "an update is cut into at least one piece");
    expect(cut.replica >= 0 && cut.replica < cut.replicas, "a replica among the replicas");
    expect(cut.update == UpdateOf::batch || cut.replicas == 1, "an update of one micro-batch has one replica");
  }

  int micros_per_batch() const { return cut_.all_replicas ? cut_.replicas * cut_.micros : cut_.micros; }
  int micros_per_update() const { return cut_.update == UpdateOf::micro ? 1 : micros_per_batch(); }
  /// The first piece of the first piece is never smaller than any other.
  std::int64_t largest_rows() const { return piece_of(piece_of(sampler_.global_batch(), cut_.replicas, 0).size(), cut_.micros, 0).size(); }

  void read(HostBatch& out) {
    if (micro_ == 0) {
      window_ = sampler_.samples_of(batch_, buffer_);
      window_counted_ = counted_of(data_, window_);
    }
    int replica = cut_.all_replicas ? micro_ / cut_.micros : cut_.replica;
    if (mutant("same_data_everywhere") && distributed()) replica = 0;
    Range const part = piece_of(std::int64_t(window_.size()), cut_.replicas, replica);
    Range piece = piece_of(part.size(), cut_.micros, micro_ % cut_.micros);
    if (mutant("drop_sample") && distributed() && piece.size() > 0) --piece.end;
    bool const own = cut_.update == UpdateOf::micro;
    std::int64_t const batch = batch_ - (mutant("resume_with_first_dropout_keys") ? first_ : 0);
    fill(out, data_, own ? batch * cut_.micros + micro_ : batch,
         window_.subspan(std::size_t(part.begin + piece.begin), std::size_t(piece.size())));
    out.window_counted = own ? out.counted : window_counted_;
    if (++micro_ == micros_per_batch()) {
      micro_ = 0;
      ++batch_;
    }
  }

 private:
  /// One of several ranks: where mutants act, so that the serial twin stays right.
  bool distributed() const { return cut_.replicas > 1 && !cut_.all_replicas; }

  Dataset const& data_;
  Sampler sampler_;
  Cut cut_;
  std::int64_t first_, batch_;
  int micro_ = 0;
  std::vector<std::int64_t> buffer_;
  std::span<std::int64_t const> window_;
  std::int64_t window_counted_ = 0;
};

}  // namespace

/// A ring of depth + 1 batches: one belongs to the caller of next(), the others to the thread that reads ahead.
struct Loader::State {
  using Clock = std::chrono::steady_clock;

  State(Dataset const& data, Sampler const& sampler, Cut cut, int depth, std::int64_t first_update)
      : reader(data, sampler, cut, first_update), ring(std::size_t(depth) + 1) {
    for (HostBatch& batch : ring) reserve(batch, data.shape(), reader.largest_rows());
    if (depth > 0) thread = std::thread([this] { read_ahead(); });
  }

  ~State() {
    if (!thread.joinable()) return;
    {
      std::lock_guard lock(mutex);
      stop = true;
    }
    room.notify_one();
    thread.join();
  }

  void read_ahead() {
    pthread_setname_np(pthread_self(), "shardmark-load");
    for (;;) {
      HostBatch* free = nullptr;
      {
        std::unique_lock lock(mutex);
        // The batch given out last is still in the caller's hands; its slot is the one that `depth` leaves over.
        room.wait(lock, [&] { return stop || ready < handed + depth(); });
        if (stop) return;
        free = &ring[ready % ring.size()];
      }
      std::exception_ptr error;
      try {
        reader.read(*free);
      } catch (...) {
        error = std::current_exception();
      }
      {
        std::lock_guard lock(mutex);
        if (error) {
          failure = error;
        } else {
          ++ready;
        }
      }
      filled.notify_one();
      if (error) return;
    }
  }

  HostBatch const& next() {
    if (depth() == 0) {
      reader.read(ring[0]);
      return ring[0];
    }
    std::unique_lock lock(mutex);
    filled.wait(lock, [&] { return ready > handed || failure; });
    if (ready == handed) std::rethrow_exception(failure);
    HostBatch const& batch = ring[handed % ring.size()];
    ++handed;
    room.notify_one();
    return batch;
  }

  std::size_t depth() const { return ring.size() - 1; }

  Reader reader;
  std::vector<HostBatch> ring;
  double blocked_seconds = 0;

  std::mutex mutex;
  std::condition_variable room, filled;
  std::uint64_t ready = 0, handed = 0;  // batches read, batches given out
  std::exception_ptr failure;           // of batch number `ready`
  bool stop = false;
  std::thread thread;
};

Loader::Loader(Dataset const& data, Sampler const& sampler, Cut cut, int depth, std::int64_t first_update) {
  expect(depth >= 0 && first_update >= 0, "depth and first update are counts");
  state_ = std::make_unique<State>(data, sampler, cut, depth, first_update);
}

Loader::~Loader() = default;

HostBatch const& Loader::next() {
  auto const begin = State::Clock::now();
  HostBatch const& batch = state_->next();
  state_->blocked_seconds += std::chrono::duration<double>(State::Clock::now() - begin).count();
  return batch;
}

double Loader::blocked_seconds() const { return state_->blocked_seconds; }
int Loader::micros_per_update() const { return state_->reader.micros_per_update(); }

}  // namespace shardmark
