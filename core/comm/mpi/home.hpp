#pragma once
// What all MPI groups of one rank share: the engine, the tuning, and the notice of abort().

#include <mpi.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "comm/engine.hpp"
#include "comm/fabric.hpp"

namespace shardmark::mpi {

/// A communicator of MPI's that this rank frees.
class Handle {
 public:
  explicit Handle(MPI_Comm comm) : comm_(comm) {}
  Handle(Handle&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }
  static Handle duplicate(MPI_Comm comm);
  MPI_Comm get() const { return comm_; }
  /// After abort(): messages may still be on their way, and must not meet a later communicator that is given the same context.
  void keep_context() { comm_ = MPI_COMM_NULL; }
  int rank() const;
  int size() const;

 private:
  MPI_Comm comm_;
};

/// abort() reaches other processes by a small message, best effort: a rank sees it when it polls or waits. A rank that does neither is
/// ended by the MPI_Abort of the first session that unwinds.
class Home final : public Advancing {
 public:
  /// Collective over `world`.
  Home(MPI_Comm world, MpiTuning const& tuning, std::shared_ptr<Engine> engine);
  ~Home();
  Home(Home const&) = delete;

  std::shared_ptr<Engine> const& engine() const { return engine_; }
  MpiTuning const& tuning() const { return tuning_; }
  bool aborted() const { return aborted_; }
  std::string abort_reason() const { return text_.data(); }
  void abort(std::string_view reason) noexcept;
  bool advance() override;

 private:
  using Text = std::array<char, 256>;
  void note(Text const& text);
  Handle notices_;
  MpiTuning tuning_;
  std::shared_ptr<Engine> engine_;
  Text incoming_{}, text_{};
  MPI_Request receive_ = MPI_REQUEST_NULL;
  bool aborted_ = false;
  unsigned calls_ = 0;
};

}  // namespace shardmark::mpi
