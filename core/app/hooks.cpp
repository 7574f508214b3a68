#include "app/hooks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <thread>

#include "app/option_table.hpp"
#include "app/trace_spans.hpp"
#include "comm/fabric.hpp"
#include "verify/capture.hpp"

namespace shardmark {
namespace {

/// Text of fixed size, so that the board costs no allocation.
class Line {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    auto const end = fmt::format_to_n(text_.data() + length_, text_.size() - length_, format, std::forward<Args>(args)...);
    length_ = std::min(text_.size(), length_ + end.size);
  }
  std::string_view view() const { return {text_.data(), length_}; }

 private:
  std::array<char, 80> text_{};
  std::size_t length_ = 0;
};

/// What a token stands for: "all_reduce bucket 1", "send h.2 micro 3 to lane 1".
void describe_token(Line& line, Program& program, Token token) {
  Schedule const& schedule = program.parts().schedule;
  for (Posting const& p : postings_of(schedule.lanes[std::size_t(program.parts().lane)], token)) {
    if (p.transfer == Transfer::collective)
      line.add(" {} bucket {}", name(p.what), p.bucket.v);
    else
      line.add(" {} {} micro {} lane {}", p.transfer == Transfer::send ? "send" : "receive", p.edge.v, p.micro.v, p.peer);
  }
}

}  // namespace

void StatusHook::before(Program& program, Action const& action, std::int64_t window) {
  Model const& model = program.parts().model;
  Line line;
  line.add("{}", name(action.what));
  if (action.chunk.valid()) line.add(" {} micro {}", model.blocks[std::size_t(action.chunk.v)].name, action.micro.v);
  if (action.unit.valid()) line.add(" {}", model.spec[action.unit].name);
  if (action.token.valid()) describe_token(line, program, action.token);
  RankState const state = action.what == Do::wait || action.what == Do::decide ? RankState::waiting : RankState::working;
  board_.set(window + 1, state, line.view());
}

void TraceHook::before(Program&, Action const&, std::int64_t) {
  if (recording_) begin_ns_ = now_ns();
}

void TraceHook::after(Program&, Action const& action, std::int64_t) {
  if (!recording_) return;
  trace_.add(trace_span(action, begin_ns_, now_ns()));
}

namespace {

/// For ever. A process is stopped as the kernel stops it; where ranks share one with the watchdog, its thread alone.
void stop_this_rank() {
  if (launched_by_mpi()) std::raise(SIGSTOP);
  while (!launched_by_mpi()) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

/// The one that was named, or the first of which this rank has a gradient.
ParamId InjectHook::target(Program& program) const {
  ModelSpec const& spec = program.parts().model.spec;
  if (fault_.tensor.empty()) {
    for (UnitId unit : program.store().held())
      for (ParamId param : spec[unit].params)
        if (gradient(program, param).elements() > 0) return param;
    return spec[program.store().held().front()].params.front();
  }
  auto const at = std::find_if(spec.params.begin(), spec.params.end(), [&](ParamSpec const& p) { return p.name == fault_.tensor; });
  return ParamId{std::int32_t(at - spec.params.begin())};
}

/// What this rank updates by, or gives to the rank that does.
View InjectHook::gradient(Program& program, ParamId param) const {
  ParamSpec const& spec = program.parts().model.spec[param];
  Gradients const& gradients = program.store().gradients();
  if (program.parts().schedule.sharing == Sharing::root) return part_of(gradients.total(gradients.summed(spec.unit)), spec);
  return own_part(gradient_total(program, spec.unit), program.store().own_range(spec.unit), spec).values;
}

void InjectHook::before(Program& program, Action const& action, std::int64_t window) {
  if (keeping_ && action.what == Do::decide) {
    View const g = gradient(program, target(program));
    std::memcpy(g.data, kept_.data(), kept_.size());
    keeping_ = false;
  }
  if (!due(window)) return;
  switch (fault_.kind) {
    case Fault::Kind::kill:
      std::raise(SIGKILL);
      break;
    case Fault::Kind::stop:
      done_ = true;
      stop_this_rank();
      break;
    case Fault::Kind::delay:
      done_ = true;
      std::this_thread::sleep_for(std::chrono::duration<double>(fault_.seconds));
      break;
    case Fault::Kind::bitflip:
    case Fault::Kind::nan:
    case Fault::Kind::drop_reduction:
      break;  // after the gradient is complete
  }
}

void InjectHook::after(Program& program, Action const& action, std::int64_t window) {
  if (!due(window) || action.what != Do::fold) return;
  Gradients const& gradients = program.store().gradients();
  if (gradients.complete(gradients.summed(program.parts().model.spec[target(program)].unit))) spoil_gradient(program);
}

namespace {

/// Where a flipped bit changes something: the gradient of a row that no token used is zero, and stays next to zero.
std::size_t largest_element(View const& g) {
  std::int64_t best = 0;
  auto const magnitude = [&](std::int64_t i) {
    return g.dtype == DType::f64 ? std::abs(g.as<double>()[i]) : double(std::abs(g.as<float>()[i]));
  };
  for (std::int64_t i = 1; i < g.elements(); ++i)
    if (magnitude(i) > magnitude(best)) best = i;
  return std::size_t(best);
}

}  // namespace

void InjectHook::spoil_gradient(Program& program) {
  done_ = true;
  program.stream().synchronize();
  View const g = gradient(program, target(program));
  if (g.elements() == 0) return;  // more ranks than elements: this one updates nothing
  std::size_t const size = width(g.dtype);
  std::byte* const at = g.data + largest_element(g) * size;
  if (fault_.kind == Fault::Kind::bitflip) at[size - 1] ^= std::byte{0x20};  // a high bit of the exponent
  if (fault_.kind == Fault::Kind::nan && g.dtype == DType::f32) *g.as<float>() = std::numeric_limits<float>::quiet_NaN();
  if (fault_.kind == Fault::Kind::nan && g.dtype == DType::f64) *g.as<double>() = std::numeric_limits<double>::quiet_NaN();
  if (fault_.kind == Fault::Kind::drop_reduction) {
    kept_.assign(g.data, g.data + g.bytes());
    keeping_ = true;
  }
}

namespace {

bool holds(Job const& job, int rank, std::string const& tensor) {
  int const lane = rank / (job.mesh.data * job.mesh.tensor);
  Shards shards{.sharing = job.schedule.sharing};
  if (shards.sharing != Sharing::replicated && shards.sharing != Sharing::root)
    shards.count = job.mesh.data, shards.mine = rank / job.mesh.tensor % job.mesh.data;
  for (std::size_t b = 0; b < job.model->blocks.size(); ++b) {
    if (job.schedule.lane_of_chunk[b] != lane) continue;
    for (UnitId unit : job.model->blocks[b].reads)
      for (ParamId param : job.model->spec[unit].params) {
        ParamSpec const& spec = job.model->spec[param];
        Range const own = shards.own(job.model->spec[unit].elements);
        if (spec.name == tensor && spec.offset < own.end && spec.offset + spec.elements() > own.begin) return true;
      }
  }
  return false;
}

}  // namespace

void require_possible(Fault const& fault, Job const& job, std::int64_t updates) {
  ModelSpec const& spec = job.model->spec;
  int const ranks = job.mesh.ranks();
  require_input(fault.rank >= 0 && fault.rank < ranks,
                {fmt::format("--inject names rank {} of {} ranks", fault.rank, ranks), "", "ranks count from 0"});
  require_input(fault.step <= updates,
                {fmt::format("--inject at step {} of {}", fault.step, updates), "it would never happen", "choose an earlier step"});
  bool const known = fault.tensor.empty() ||
                     std::any_of(spec.params.begin(), spec.params.end(), [&](ParamSpec const& p) { return p.name == fault.tensor; });
  require_input(known, {fmt::format("--inject names {}, which this model doesn't have", fault.tensor), "",
                        fmt::format("parameters are named like {}", spec.params.front().name)});
  bool const shared = job.schedule.sharing != Sharing::replicated;
  require_input(
      fault.tensor.empty() || holds(job, fault.rank, fault.tensor),
      {fmt::format("--inject names {} on rank {}", fault.tensor, fault.rank),
       shared ? "its gradient is on other ranks" : "another stage has it", shared ? "name another rank" : "name a rank of that stage"});
  require_input(!(job.schedule.sharing == Sharing::root && fault.kind == Fault::Kind::drop_reduction && fault.rank != 0),
                {fmt::format("--inject drop-reduction on rank {}", fault.rank), "rank 0 alone adds gradients", "name rank 0"});
  bool const cut = job.schedule.sharing == Sharing::gradients || job.schedule.sharing == Sharing::parameters;
  require_input(!(cut && fault.kind == Fault::Kind::drop_reduction),
                {"--inject drop-reduction with shared gradients", "no rank keeps a whole gradient of its own that it could use instead",
                 "use bitflip or nan"});
  require_input(fault.kind != Fault::Kind::drop_reduction || job.mesh.data > 1,
                {"--inject drop-reduction without replicas", "no gradient is reduced over ranks", "choose another fault"});
  auto const& params = job.model_of(fault.rank % job.mesh.tensor).spec.params;
  auto const own = std::find_if(params.begin(), params.end(), [&](ParamSpec const& p) { return p.name == fault.tensor; });
  bool const scales = fault.kind == Fault::Kind::bitflip || fault.kind == Fault::Kind::drop_reduction;
  require_input(own == params.end() || !own->null_gradient || !scales,
                {fmt::format("--inject {}", to_string(fault)),
                 "its gradient is zero but for rounding, so that the fault may change nothing", "name another tensor"});
  // The last ranks of many may have no row of a small vocabulary.
  require_input(own == params.end() || own->elements() > 0,
                {fmt::format("--inject names {} on rank {}", fault.tensor, fault.rank), "it holds nothing of it", "name another rank"});
}

}  // namespace shardmark
