#pragma once
// The parts of rounding.cpp, by theme.

#include "backend/decorators/dense.hpp"
#include "backend/decorators/rounding.hpp"

namespace shardmark::rounding {

/// Where the analysis of one operation writes its outputs.
struct Analysis {
  Bench bench;
  std::vector<OutputRounding> outputs;

  void add(View const& output, Dense&& absolute, double terms, StoredAs stored) {
    if (!output || output.elements() == 0) return;
    // Gradients, and the totals of losses and norms, are kept in the accumulator's type, whichever operation makes them.
    Book const book = output.region != nullptr ? output.region->book : Book::activations;
    if (stored == StoredAs::storage && (book == Book::gradients || book == Book::workspace)) stored = StoredAs::accumulator;
    outputs.push_back({output, std::move(absolute.values()), terms, stored});
  }
};

void attention(Analysis& to, Attention const& op);
void attention_input(Analysis& to, AttentionInput const& op);
void layer_norm(Analysis& to, LayerNorm const& op);
void layer_norm_input(Analysis& to, LayerNormInput const& op);
void layer_norm_weight(Analysis& to, LayerNormWeight const& op);
void cross_entropy(Analysis& to, CrossEntropy const& op);
void softmax_part(Analysis& to, SoftmaxPart const& op);
void sliced_cross_entropy(Analysis& to, SlicedCrossEntropy const& op);
void squared_error(Analysis& to, SquaredError const& op);
void convolution(Analysis& to, Convolution const& op);
void convolution_input(Analysis& to, ConvolutionInput const& op);
void convolution_weight(Analysis& to, ConvolutionWeight const& op);
void average_pool(Analysis& to, AveragePool const& op);
void average_pool_input(Analysis& to, AveragePoolInput const& op);
void batch_moments(Analysis& to, BatchMoments const& op);
void merge_moments(Analysis& to, MergeMoments const& op);
void batch_norm(Analysis& to, BatchNorm const& op);
void batch_norm_weight(Analysis& to, BatchNormWeight const& op);
void batch_norm_input(Analysis& to, BatchNormInput const& op);

}  // namespace shardmark::rounding
