#pragma once
// Hands every tensor of a run's first step to a sink, as it is made. Nothing is kept: at full size there is no room for copies.

#include "backend/reference/rows.hpp"
#include "verify/catalogue.hpp"

namespace shardmark {

/// A part of a tensor. `before`: of an updated weight, what it was.
struct Piece {
  int tensor = 0;
  Range range;         // flat indices in the tensor
  SliceLayout layout;  // of the values in that range: all of it, or a tensor-parallel rank's part
  View values, before = {};

  std::int64_t index(std::int64_t i) const { return range.begin + layout(i); }
  bool fits() const { return values.elements() == layout.elements(range.size()); }
};

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void take(Piece const& piece) = 0;
};

/// Which of the twin's micro-batches a run has: `count` from `first` on.
struct MicroSpan {
  int first = 0, count = 1;
};

/// Observer and hook of one run; host backends, whose work is complete when an observer is called.
/// Under AdamW updated weights are left out: they are held against the candidate's own gradient (own_gradient.hpp).
class Capture final : public Observer, public Hook {
 public:
  /// @param model this rank's
  Capture(Catalogue const& catalogue, Model const& model, MicroSpan micros, Sink& sink)
      : catalogue_(catalogue), model_(model), micros_(micros), sink_(sink) {}
  void see(MicroId micro, std::string_view module, std::string_view kind, View const& view) override;
  void before(Program& program, Action const& action, std::int64_t window) override;
  void after(Program& program, Action const& action, std::int64_t window) override;

 private:
  void gradients(Program& program);
  Piece piece(int tensor, ParamSpec const& param, OwnPart const& part) const;
  void scalar(TensorKind kind, double value);
  void updated(Program& program, UnitId unit);

  Catalogue const& catalogue_;
  Model const& model_;
  MicroSpan micros_;
  Sink& sink_;
  std::vector<std::byte> old_;  // weights of the unit that is being updated
};

/// The actions that make the first update.
inline bool makes_first_version(Action const& action, Do what) { return action.what == what && action.version.v == 1; }
/// The sum of a unit's gradient on this rank, once its slots are added, where the update reads it: of the unit's own_range().
View gradient_total(Program& program, UnitId unit);
/// One parameter's part of a flat view of its unit.
View part_of(View const& flat, ParamSpec const& param);
/// Calls f(index, value as double) for every element of a contiguous view of floating-point numbers.
template <class F>
void each_value(View const& view, F&& f) {
  std::int64_t const n = view.elements();
  reference::with_floating(view.dtype, [&](auto tag) {
    auto const* const x = view.as<decltype(tag)>();
    for (std::int64_t i = 0; i < n; ++i) f(i, double(x[i]));
  });
}

/// Proof of life from inside a run.
class BeatHook final : public Hook {
 public:
  explicit BeatHook(std::function<void()> const& beat) : beat_(beat) {}
  void before(Program&, Action const&, std::int64_t) override {
    if (beat_) beat_();
  }

 private:
  std::function<void()> const& beat_;
};

}  // namespace shardmark
