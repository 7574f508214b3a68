#pragma once
// Planners of pipelines: from a shape to a coarse schedule. Pure: no rank, no tensor, no clock, no options of a program. Each stands
// beside its picture in a file of its own (plan_*.cpp); shardmark::plan_sequential (schedule.hpp) is the one without a pipeline.
//
// All are synchronous (one flush and one update a window of `micros` micro-batches) but plan_pipedream. What each costs:
// closed_forms.hpp.

#include <cstdint>

#include "schedule/schedule.hpp"

namespace shardmark {

/// Naive model parallelism: one stage works at a time, each micro-batch goes forward and backward before the next one enters.
/// @throws BadRequest like all planners here: no stage, no micro-batch, or chunks per stage that the schedule doesn't have.
Schedule plan_model_parallel(PipelineShape shape);

/// Which backward a flush schedule starts with. The sums of a loop (SumOrder) differ by it, those of a tree don't.
enum class BackwardOrder : std::uint8_t { newest_first, oldest_first };
/// All forwards, then all backwards (Huang et al., "GPipe", NeurIPS 2019, figure 2c).
Schedule plan_gpipe(PipelineShape shape, BackwardOrder order = BackwardOrder::newest_first);

/// One forward, one backward, with a flush (Narayanan et al., PipeDream-Flush: "Memory-efficient pipeline-parallel DNN training", ICML
/// 2021).
Schedule plan_1f1b(PipelineShape shape);

/// 1F1B with `chunks_per_stage` chunks on each stage, chunk c on stage c mod p (Narayanan et al., "Efficient large-scale language model
/// training on GPU clusters", SC 2021). For any number of micro-batches: they enter in rounds of p or more, of equal size when p divides
/// them. One chunk a stage: 1F1B.
Schedule plan_interleaved(PipelineShape shape);

/// Backward in two parts (Qi et al., "Zero bubble pipeline parallelism", ICLR 2024; V: Qi et al., "Pipeline parallelism with
/// controllable memory", NeurIPS 2024).
enum class ZeroBubble : std::uint8_t {
  h1,  // memory of 1F1B
  h2,  // up to 2p-1 micro-batches live, fewer bubbles
  v    // two chunks a stage, chunk c on stage c and, on the way back, on stage 2p-1-c
};
Schedule plan_zero_bubble(PipelineShape shape, ZeroBubble kind);

/// Which weights an asynchronous pipeline computes a gradient with. Micro-batch i, stage s of p; versions below 0 are the initial one.
enum class Delay : std::uint8_t {
  stash,       // the latest on the stage when i was forwarded: i-(p-1-s). An update after each micro-batch
  vertical,    // the same on all stages: i-(p-1). An update after each micro-batch
  two_buffers  // PipeDream-2BW: an update after each window of `micros`, one version behind it
};
/// 1F1B without a flush: start-up, steady state, drain (Narayanan et al., "PipeDream", SOSP 2019; 2BW: ICML 2021).
/// Under stash and vertical a window is one micro-batch: a global batch of `micros` micro-batches is that many windows.
/// @throws BadRequest also when two_buffers gets fewer micro-batches than stages: two versions would not be enough; and for joint decisions
/// under stash, whose stages need their next weights before the first one has its gradients.
Schedule plan_pipedream(PipelineShape shape, Delay delay);

}  // namespace shardmark
