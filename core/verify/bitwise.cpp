#include "verify/bitwise.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "comm/fabric.hpp"

namespace shardmark {
namespace {

struct Difference {
  double elements = 0;
  double first = -1;
  double compared = 0;
};

/// `a` has `elements` that lie in `b` where `layout` says.
Difference difference(std::byte const* a, std::byte const* b, std::int64_t elements, std::size_t element_bytes, SliceLayout layout = {}) {
  Difference out;
  out.compared = double(elements);
  for (std::int64_t i = 0; i < elements; ++i) {
    std::int64_t const at = layout(i);
    if (std::memcmp(a + std::size_t(i) * element_bytes, b + std::size_t(at) * element_bytes, element_bytes) == 0) continue;
    if (out.elements == 0) out.first = double(at);
    out.elements += 1;
  }
  return out;
}

/// The serial twin after all its steps; only rank 0 has one.
class Twin {
 public:
  Twin(BitwiseParts const& parts, std::int64_t updates)
      : self_(make_self()),
        backend_(parts.backend(parts.dtype)),
        beat_(parts.beat),
        rig_(parts.twin, {.ops = *backend_, .world = *self_, .observer = nullptr, .hooks = {&beat_}}) {
    rig_.program().advance(updates);
    rig_.program().drain();
  }
  Program& program() { return rig_.program(); }

 private:
  std::unique_ptr<Communicator> self_;
  std::unique_ptr<Backend> backend_;
  BeatHook beat_;
  Rig rig_;
};

struct Kind {
  char const* prefix;
  int order;  // behind the tensors of the first step
  View (*of)(Program&, UnitId);
};

/// Of the unit's own_range().
View state(Program& program, UnitId unit, Part part) { return program.store().own(part, unit, program.store().latest(unit)); }

constexpr std::array<Kind, 4> kinds = {{
    {"last gradient of ", 0, [](Program& p, UnitId u) { return gradient_total(p, u); }},
    {"final ", 1, [](Program& p, UnitId u) { return state(p, u, Part::master); }},
    {"optimizer state 0 of ", 2, [](Program& p, UnitId u) { return state(p, u, Part::state0); }},
    {"optimizer state 1 of ", 3, [](Program& p, UnitId u) { return state(p, u, Part::state1); }},
}};

constexpr int buffers_order = 4;

class Comparer {
 public:
  Comparer(BitwiseParts const& parts, Candidate& candidate, Assembly& ranks)
      : parts_(parts), program_(candidate.rig().program()), updates_(std::int64_t(program_.history().size())), ranks_(ranks) {
    if (ranks.rank() == 0) twin_ = std::make_unique<Twin>(parts, updates_);
  }

  std::vector<Check> run() {
    history("loss of each update", program_.sees_loss(), [](WindowResult const& r) { return r.loss; });
    if (program_.parts().schedule.decides_jointly())
      history("gradient norm of each update", true, [](WindowResult const& r) { return r.norm; });
    ModelSpec const& spec = program_.store().spec();
    int const states = program_.parts().optimizer.states();
    for (Kind const& kind : kinds) {
      if (kind.order >= 2 && kind.order - 2 >= states) continue;
      for (std::size_t u = 0; u < spec.units.size(); ++u) unit(kind, UnitId{std::int32_t(u)});
    }
    Sharing const sharing = program_.parts().schedule.sharing;
    if (sharing != Sharing::replicated && sharing != Sharing::parameters)
      for (std::size_t u = 0; u < spec.units.size(); ++u) gathered(UnitId{std::int32_t(u)});
    for (std::size_t b = 0; b < spec.buffers.size(); ++b) buffer(BufferId{std::int32_t(b)});
    return conclude();
  }

 private:
  /// Running statistics are replica 0's; with synchronised batch normalisation every replica's.
  void buffer(BufferId id) {
    BufferSpec const& spec = program_.store().spec()[id];
    auto const& held = program_.store().held();
    bool const here = std::find(held.begin(), held.end(), spec.unit) != held.end();
    bool const ours = program_.parts().batch_norm == BatchNormPolicy::sync || program_.parts().mesh.coordinate(Axis::data) == 0;
    DType const type = spec.type(parts_.dtype);
    std::vector<std::byte> expected(std::size_t(spec.elements()) * width(type));
    if (twin_) std::memcpy(expected.data(), twin_->program().store().buffer(id).data, expected.size());
    ranks_.from_first(expected);
    Difference found;
    if (here && ours) found = difference(program_.store().buffer(id).data, expected.data(), spec.elements(), width(type));
    ParamId const neighbour = program_.store().spec()[spec.unit].params.front();
    int const updated = parts_.catalogue.find(TensorKind::updated_weight, neighbour.v);
    add("final " + spec.name, parts_.catalogue[updated].module, parts_.catalogue[updated].order + buffers_order, spec.elements(), found);
  }

  void add(std::string tensor, std::string module, int order, std::int64_t elements, Difference found) {
    Check check{.part = parts_.part, .tensor = std::move(tensor), .module = std::move(module), .kind = CheckKind::bitwise};
    check.order = order;
    check.elements = elements;
    checks_.push_back(std::move(check));
    found_.push_back(found);
  }

  /// @param here  whether this rank knows the values
  template <class F>
  void history(std::string tensor, bool here, F&& value) {
    auto const values = [&](Program& program) {
      std::vector<double> out;
      for (WindowResult const& r : program.history()) out.push_back(value(r));
      return out;
    };
    std::vector<double> const mine = values(program_);
    std::vector<double> theirs = twin_ ? values(twin_->program()) : std::vector<double>(std::size_t(updates_));
    ranks_.from_first(std::as_writable_bytes(std::span(theirs)));
    int const forward_end = int(program_.parts().model.blocks.size());
    auto const bytes = [](std::vector<double> const& v) { return reinterpret_cast<std::byte const*>(v.data()); };
    add(std::move(tensor), program_.parts().model.blocks.back().name, forward_end, updates_,
        here ? difference(bytes(mine), bytes(theirs), updates_, sizeof(double)) : Difference{});
  }

  void unit(Kind const& kind, UnitId unit) {
    ModelSpec const &spec = program_.store().spec(), &whole = parts_.twin.model->spec;
    std::size_t const element = width(accumulator(parts_.dtype));
    std::vector<std::byte> expected(std::size_t(whole[unit].elements) * element);
    if (twin_) std::memcpy(expected.data(), kind.of(twin_->program(), unit).data, expected.size());
    ranks_.from_first(expected);
    auto const& held = program_.store().held();
    bool const here = std::find(held.begin(), held.end(), unit) != held.end();
    for (ParamId id : spec[unit].params) {
      ParamSpec const& p = spec[id];
      int const gradient = parts_.catalogue.find(TensorKind::weight_gradient, id.v);
      int const updated = parts_.catalogue.find(TensorKind::updated_weight, id.v);
      int const order = kind.order == 0 ? parts_.catalogue[gradient].order : parts_.catalogue[updated].order + kind.order;
      Difference found;
      if (here) {
        OwnPart const mine = own_part(kind.of(program_, unit), program_.store().own_range(unit), p);
        SliceLayout const layout = p.layout();
        std::byte const* const theirs = expected.data() + std::size_t(whole[id].offset + mine.range.begin) * element;
        found = difference(mine.values.data, theirs, mine.range.size(), element, layout);
        if (found.elements > 0) found.first += double(mine.range.begin);
      }
      add(kind.prefix + p.name, parts_.catalogue[gradient].module, order, whole[id].elements(), found);
    }
  }

  /// Weights as forwards read them, which the ranks have gathered from each other.
  void gathered(UnitId unit) {
    ModelSpec const& spec = program_.store().spec();
    auto const whole = [&](Program& program) { return program.store().flat(Part::compute, unit, program.store().latest(unit)); };
    std::size_t const element = width(parts_.dtype);
    std::vector<std::byte> expected(std::size_t(spec[unit].elements) * element);
    if (twin_) std::memcpy(expected.data(), whole(twin_->program()).data, expected.size());
    ranks_.from_first(expected);
    int const updated = parts_.catalogue.find(TensorKind::updated_weight, spec[unit].params.front().v);
    TensorInfo const& info = parts_.catalogue[updated];
    add("gathered weights of " + spec[unit].name, info.module, info.order + buffers_order, spec[unit].elements,
        difference(whole(program_).data, expected.data(), spec[unit].elements, element));
  }

  std::vector<Check> conclude() {
    std::vector<double> mine(found_.size() * 3);
    for (std::size_t i = 0; i < found_.size(); ++i) {
      mine[3 * i] = found_[i].elements;
      mine[3 * i + 1] = found_[i].first;
      mine[3 * i + 2] = found_[i].compared;
    }
    std::vector<double> const all = ranks_.gather(mine);
    for (std::size_t i = 0; i < checks_.size(); ++i) {
      Check& check = checks_[i];
      double compared = 0;
      for (int r = 0; r < ranks_.ranks(); ++r) {
        double const* const at = &all[(std::size_t(r) * checks_.size() + i) * 3];
        compared += at[2];
        if (at[0] <= check.error) continue;
        check.error = at[0];
        check.index = std::int64_t(at[1]);
        check.rank = r;
      }
      check.ratio = check.power = check.frobenius = std::numeric_limits<double>::quiet_NaN();
      if (check.error > 0) check.verdict = Verdict::failed;
      if (compared < double(check.elements)) {
        check.verdict = Verdict::failed;
        check.note = "no rank holds it";
      }
    }
    return std::move(checks_);
  }

  BitwiseParts const& parts_;
  Program& program_;
  std::int64_t updates_;
  Assembly& ranks_;
  std::unique_ptr<Twin> twin_;
  std::vector<Check> checks_;
  std::vector<Difference> found_;
};

}  // namespace

std::vector<Check> compare_bitwise(BitwiseParts const& parts, Candidate& candidate, Assembly& ranks) {
  return Comparer(parts, candidate, ranks).run();
}

}  // namespace shardmark
