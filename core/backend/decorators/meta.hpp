#pragma once
// Meta: the dry run. Operations are validated and counted, never computed; memory is address space that faults when touched.
// The same program on this backend and a recording communicator gives the memory, flops and bytes of a plan.

#include <array>
#include <variant>
#include <vector>

#include "backend/backend.hpp"
#include "backend/op_access.hpp"

namespace shardmark {

/// What operations of one kind add up to.
struct OpCount {
  std::uint64_t calls = 0;
  double flops = 0;
  double bytes = 0;
};

class MetaBackend final : public Backend {
 public:
  MetaBackend() = default;
  MetaBackend(MetaBackend const&) = delete;
  MetaBackend& operator=(MetaBackend const&) = delete;
  ~MetaBackend() override;

  void run(Stream& stream, Op const& op) override;
  std::unique_ptr<Stream> stream() override { return std::make_unique<HostStream>(streams_++); }
  /// Address space without memory behind it: any access ends the process.
  Region reserve(std::size_t bytes, Place place) override;
  std::string name() const override { return "meta"; }

  /// Since construction or the last restart(), for operations of `op`'s kind ("matmul", ...). @throws Error for an unknown name.
  OpCount count(std::string_view op) const;
  OpCount total() const;
  /// Calls f(name, OpCount) for every kind that ran.
  template <class F>
  void each(F&& f) const {
    for (std::size_t i = 0; i < counts_.size(); ++i)
      if (counts_[i].calls > 0) f(name_of_kind(i), counts_[i]);
  }
  void restart() { counts_ = {}; }

 private:
  unsigned streams_ = 0;
  std::array<OpCount, std::variant_size_v<Op>> counts_{};
  std::vector<std::pair<void*, std::size_t>> slabs_;
};

std::unique_ptr<MetaBackend> make_meta_backend();

}  // namespace shardmark
