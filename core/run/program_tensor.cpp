// Norms of parameters that tensor-parallel ranks share: each part gives the squares of its own elements, copies count once (case 11).

#include "base/mutant.hpp"
#include "run/program.hpp"

namespace shardmark {

/// A serial twin's: what each rank would find of its part, added in the ranks' order.
void Program::take_norm_of_parts(ParamId param, View const& gradient) {
  ParamSpec const& p = parts_.model.spec[param];
  int const parts = tensor_->here();
  auto const make = [&](DType dtype, std::int64_t n) { return parts_.arena.make(dtype, {n}, Book::workspace, *compute_); };
  // [before, cut dimension, what is behind it]
  std::int64_t const extent = p.full[std::size_t(p.slice.dim)], run = p.layout().stride / extent, before = p.elements() / (extent * run);
  View const whole = reshape(gradient, {before, extent, run});
  Tensor const sums = make(DType::f64, parts);
  std::vector<View> of_part;
  for (int i = 0; i < parts; ++i) {
    View const mine = piece(whole, 1, i, parts);
    Tensor const part = make(gradient.dtype, mine.elements()), squares = make(DType::f64, (mine.elements() + norm_leaf - 1) / norm_leaf);
    parts_.ops.run(*compute_, Copy{mine, reshape(part.view, {before, mine.shape[1], run})});
    parts_.ops.run(*compute_, NormLeaves{part.view, squares.view});
    parts_.ops.run(*compute_, TreeTotal{squares.view, of_part.emplace_back(slice(sums.view, 0, i, i + 1))});
  }
  parts_.ops.run(*compute_, SumTree{of_part, slice(norms_.view, 0, param.v, param.v + 1)});
}

/// A rank's: copies are counted on the first rank alone.
void Program::add_norms_of_parts() {
  Tensor const& norms = norms_;
  if (tensor_->first() > 0 && !mutant("norm_counts_copies"))
    for (UnitId unit : store_.held())
      for (ParamId id : parts_.model.spec[unit].params)
        if ((parts_.model.spec[id].replicated & axes(Axis::tensor)) != 0)
          parts_.ops.run(*compute_, Fill{slice(norms.view, 0, id.v, id.v + 1), 0});
  parts_.mesh.over(axes(Axis::tensor))
      .post(*compute_, Exchange{.what = Collective::all_reduce, .send = norms, .recv = norms, .purpose = "decision"})
      .wait(*compute_);
}

}  // namespace shardmark
