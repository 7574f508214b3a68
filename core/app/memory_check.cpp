#include "app/memory_check.hpp"

#include <fmt/format.h>

#include "metrics/memory.hpp"

namespace shardmark {
namespace {

void require_room(double needed_bytes, int ranks_here, double available_bytes) {
  constexpr double mib = 1024 * 1024;
  require_input(needed_bytes * ranks_here <= available_bytes,
                {fmt::format("{:.0f} MiB are needed ({} of {:.0f} MiB), {:.0f} MiB are available", needed_bytes * ranks_here / mib,
                             ranks_here == 1 ? "1 rank" : fmt::format("{} ranks", ranks_here), needed_bytes / mib, available_bytes / mib),
                 "the job doesn't fit into this machine's memory", "choose a smaller model or batch, or more micro-batches"});
}

}  // namespace

void require_memory(Job const& job, int ranks_here) {
  auto const available = read_available_memory();
  if (!available) return;
  // Weights and gradients alone, first: a dry run of what is far too large finds no address space.
  DType const used = job.model->dtype, sums = accumulator(used);
  std::size_t const per_weight = width(used) + (used == sums ? 0 : width(sums)) + width(sums);  // used, master, gradient
  require_room(double(job.model_of(0).spec.elements()) * double(per_weight), ranks_here, double(*available));
  require_room(double(dry_run(job, 0).slab_bytes), ranks_here, double(*available));
}

}  // namespace shardmark
