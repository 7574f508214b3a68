#pragma once
// A backend runs operations on streams and hands out memory. One virtual call per operation, never per element.

#include <cstddef>
#include <memory>
#include <string>

#include "backend/ops.hpp"
#include "tensor/arena.hpp"
#include "tensor/stream.hpp"

namespace shardmark {

/// Deterministic: bits depend on values and logical indices alone, not on splits, threads or addresses.
enum class Determinism : std::uint8_t { fastest, deterministic };

class Backend {
 public:
  virtual ~Backend() = default;
  /// Validates, marks the regions as touched by `stream`, and enqueues. Outputs may alias inputs only where Op says so.
  virtual void run(Stream& stream, Op const& op) = 0;
  /// A stream of this backend; indices count up from 0.
  virtual std::unique_ptr<Stream> stream() = 0;
  /// Memory that lives as long as the backend. Unit: bytes. Host memory is page-aligned, with huge pages advised.
  virtual Region reserve(std::size_t bytes, Place place) = 0;
  /// One word for records: "reference", "cpu", ...
  virtual std::string name() const = 0;
  /// Instruction set in use, for records and for agreeing on the lowest among ranks ("scalar", "avx2", "avx512").
  virtual std::string instruction_set() const { return "scalar"; }
};

/// Marks every region that `op` touches with `stream`'s bit; what each run() does first, after validate().
void mark_touched(Stream const& stream, Op const& op);

/// Pages from the system, kept for as long as the owner lives. Host only.
class Pages {
 public:
  explicit Pages(std::size_t bytes);
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&&) = delete;
  ~Pages();
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A stream on which work completes at once. `tick` calls what progress() was given.
class HostStream final : public Stream {
 public:
  explicit HostStream(unsigned index) : index_(index) {}
  unsigned index() const override { return index_; }
  Event record() override { return {this, 0}; }
  void wait(Event) override {}
  bool done(Event) override { return true; }
  double seconds(Event) override { return 0; }
  void synchronize() override {}
  void tick() override {
    if (progress_ != nullptr) progress_(argument_);
  }
  /// What every tick calls, to let communication advance; nullptr: nothing.
  void progress(void (*function)(void*), void* argument) {
    progress_ = function;
    argument_ = argument;
  }

 private:
  unsigned index_;
  void (*progress_)(void*) = nullptr;
  void* argument_ = nullptr;
};

/// Naive templated loops in fp64 and fp32 that a person can check by eye: the oracle.
std::unique_ptr<Backend> make_reference_backend();
/// oneDNN for speed; an own split-invariant matmul in deterministic mode and for fp64; vectorised passes chosen at run time.
/// @param highest  the best instruction set to use ("", "scalar", "avx2", "avx512"); "" = what the machine has.
std::unique_ptr<Backend> make_cpu_backend(Determinism determinism, std::string const& highest = "");
/// @throws not_built in this version.
std::unique_ptr<Backend> make_cuda_backend();

}  // namespace shardmark
