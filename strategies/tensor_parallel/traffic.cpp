// The table "Cost" of README.md.

#include "strategies/tensor_parallel/traffic.hpp"

#include <fmt/format.h>

#include "app/recompute_rule.hpp"

namespace shardmark {
namespace {

class Forms {
 public:
  Forms(Options const& options, int ranks) : options_(options), ranks_(ranks) {}

  /// Activations. @param elements of the arrays, per sample; `formula` of what is sent
  void add(Collective what, char const* purpose, double calls, double elements, std::string formula) {
    if (calls > 0) put(what, {.purpose = purpose, .calls = calls, .elements_per_sample = elements}, options_.dtype, std::move(formula));
  }
  /// Numbers of the accumulator's type.
  void add_sums(Collective what, TrafficForm form, std::string formula) {
    put(what, std::move(form), accumulator(options_.dtype), std::move(formula));
  }
  std::vector<TrafficForm> take() { return std::move(out_); }

 private:
  void put(Collective what, TrafficForm form, DType type, std::string formula) {
    if (ranks_ == 1) return;
    form.axes = axes(Axis::tensor);
    form.what = what;
    form.members = ranks_;
    form.element_bytes = width(type);
    form.formula = std::move(formula);
    out_.push_back(std::move(form));
  }

  Options const& options_;
  int ranks_;
  std::vector<TrafficForm> out_;
};

constexpr Collective reduce = Collective::all_reduce, scatter = Collective::reduce_scatter, gather = Collective::all_gather;

/// How often each block's forward runs in a micro-batch: once, and once more where it is recomputed. What selective recomputation runs
/// again (attention) exchanges nothing.
std::vector<double> forwards(Options const& options, std::vector<BlockShape> const& blocks) {
  Schedule schedule = refine(plan_sequential("tensor_parallel", 1), blocks, {0, int(blocks.size())});
  if (auto const rule = recompute_rule(options, schedule, blocks)) schedule = recompute(schedule, *rule);
  std::vector<double> out(blocks.size());
  for (Action const& action : schedule.lanes.front().body) {
    bool const again = action.what == Do::recompute && action.keeps != Kept::selective;
    if (action.what == Do::forward || again) out[std::size_t(action.chunk.v)] += 1;
  }
  return out;
}

/// Two columns and two rows a block, the head one more column; embedding and cross-entropy once.
void gpt_forms(Options const& options, std::vector<BlockShape> const& blocks, int ranks, Forms& forms) {
  std::vector<double> const runs = forwards(options, blocks);
  double const rows = 2.0 * double(options.layers), columns = rows + 1, chunks = options.tp_chunks;
  double row_outputs = 0;
  for (std::size_t block = 1; block + 1 < blocks.size(); ++block) row_outputs += 2 * runs[block];
  double const column_inputs = row_outputs + runs.back(), embeddings = runs.front();
  double const activation = double(options.seq * options.hidden);
  auto const whole = [](double n) { return fmt::format("{} x 2 (t-1)/t b s h", n); };
  auto const half = [](double n) { return fmt::format("{} x (t-1)/t b s h", n); };
  if (options.sequence_parallel) {
    forms.add(gather, "column input", column_inputs, column_inputs * activation, half(column_inputs));
    forms.add(scatter, "row output", row_outputs * chunks, row_outputs * activation, half(row_outputs));
    forms.add(gather, "row output gradient", rows, rows * activation, half(rows));
    forms.add(gather, "column input again", columns, columns * activation, half(columns));
    forms.add(scatter, "column input gradient", columns, columns * activation, half(columns));
    forms.add(scatter, "embedding", embeddings, embeddings * activation, half(embeddings));
    forms.add(gather, "embedding gradient", 1, activation, half(1));
    double const norms = columns;
    forms.add_sums(reduce, {.purpose = "layer norm gradients", .calls = norms, .elements_per_micro = norms * 2 * double(options.hidden)},
                   fmt::format("{} x 2 (t-1)/t 2 h", norms));
  } else {
    forms.add(reduce, "row output", row_outputs * chunks, row_outputs * activation, whole(row_outputs));
    forms.add(reduce, "column input gradient", columns, columns * activation, whole(columns));
    forms.add(reduce, "embedding", embeddings, embeddings * activation, whole(embeddings));
  }
  forms.add_sums(gather, {.purpose = "softmax of vocabulary slices", .calls = 1, .elements_per_sample = 4.0 * ranks * double(options.seq)},
                 "4 (t-1) b s");
}

/// Outputs of layers, summed up where a column-cut layer reads or a row-cut one makes them.
struct MlpLayers {
  double rows = 0, row_outputs = 0, columns = 0, column_inputs = 0;  // rows count forwards
  void row(double output, double forwards) { rows += forwards, row_outputs += forwards * output; }
  void column(double input) { columns += 1, column_inputs += input; }
};

/// By columns and by rows in turns, the first from data, one without a partner whole; or the second layer alone, its neighbour cut to
/// match unless its columns are gathered or scattered.
MlpLayers mlp_layers(Options const& options, std::vector<BlockShape> const& blocks) {
  std::vector<double> const runs = forwards(options, blocks);
  auto const output = [&](std::size_t layer) { return double(blocks[layer].boundary_elements); };
  MlpLayers out;
  if (options.layer == LayerAlone::column) {
    out.column(output(0));
    if (!options.gather_output) out.row(output(2), runs[2]);
  } else if (options.layer == LayerAlone::row) {
    out.row(output(1), runs[1]);
  } else {
    for (std::size_t layer = 1; layer < blocks.size(); ++layer) {
      if (layer % 2 == 1) out.row(output(layer), runs[layer]);
      if (layer % 2 == 0 && layer + 1 < blocks.size()) out.column(output(layer - 1));
    }
  }
  return out;
}

void mlp_forms(Options const& options, std::vector<BlockShape> const& blocks, Forms& forms) {
  MlpLayers const layers = mlp_layers(options, blocks);
  auto const whole = [](double n) { return fmt::format("2 (t-1)/t b x {}", n); };
  auto const half = [](double n) { return fmt::format("(t-1)/t b x {}", n); };
  forms.add(reduce, "row output", layers.rows * options.tp_chunks, layers.row_outputs, whole(layers.row_outputs));
  forms.add(reduce, "column input gradient", layers.columns, layers.column_inputs, whole(layers.column_inputs));
  double const hidden = double(options.hidden);
  double const gathered = options.gather_output ? forwards(options, blocks)[1] : 0;
  forms.add(gather, "column output", gathered, gathered * hidden, half(gathered * hidden));
  if (options.scatter_input) forms.add(gather, "row input gradient", 1, hidden, half(hidden));
}

}  // namespace

std::vector<TrafficForm> tensor_traffic(Options const& options, std::vector<BlockShape> const& blocks, int ranks) {
  Forms forms(options, ranks);
  if (options.model == ModelKind::gpt) gpt_forms(options, blocks, ranks, forms);
  if (options.model == ModelKind::mlp) mlp_forms(options, blocks, forms);
  return forms.take();
}

}  // namespace shardmark
