#pragma once
// What theory says that a rank exchanges, by purpose: verify holds the counts against it, plan and bench print both.

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace shardmark {

/// Of each rank of a group of `members`.
struct TrafficForm {
  Axes axes = 0;
  Collective what = Collective::all_reduce;
  std::string purpose = {};
  int members = 1;
  double calls = 0;                                        // of a micro-batch
  double elements_per_sample = 0, elements_per_micro = 0;  // of the arrays: those of all members, for a gather or scatter
  std::size_t element_bytes = 4;
  std::string formula = {};  // of the elements sent for a micro-batch

  /// Bytes of the arrays of `micros` micro-batches that have `samples` samples in all.
  double array_bytes(double micros, double samples) const {
    return (elements_per_micro * micros + elements_per_sample * samples) * double(element_bytes);
  }
  /// What a ring sends of them; a rank may send a slice more or less where they don't divide.
  double sent_bytes(double micros, double samples) const {
    double const ways = what == Collective::all_reduce ? 2 : 1;  // a reduce-scatter and an all-gather
    return array_bytes(micros, samples) * ways * (members - 1) / members;
  }
};

}  // namespace shardmark
