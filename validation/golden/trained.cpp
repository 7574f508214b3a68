#include "validation/golden/trained.hpp"

#include <algorithm>
#include <iterator>

#include "comm/fabric.hpp"
#include "verify/capture.hpp"

namespace shardmark::golden {
namespace {

Values copy_of(View const& flat, ParamSpec const& param) {
  Values out(std::size_t(param.elements()));
  each_value(part_of(flat, param), [&](std::int64_t i, double x) { out[std::size_t(i)] = x; });
  return out;
}

/// Copies gradients before the decision, when reductions and tied sums are complete, and weights after each update.
class Keep final : public Hook {
 public:
  Keep(Rule rule, Trained& out) : rule_(rule), out_(out) {}

  void before(Program& program, Action const& action, std::int64_t window) override {
    if (action.what != Do::decide || !is_stored(window + 1)) return;
    program.stream().synchronize();
    for (UnitId unit : program.store().held()) keep(program, unit, "gradient", window + 1, gradient_total(program, unit));
  }

  void after(Program& program, Action const& action, std::int64_t) override {
    if (action.what != Do::update || !is_stored(action.version.v)) return;
    program.stream().synchronize();
    keep(program, action.unit, "weight", action.version.v, program.store().flat(Part::master, action.unit, action.version));
    keep_buffers(program, action.unit, action.version.v);
  }

 private:
  static bool is_stored(std::int64_t update) {
    return std::find(std::begin(stored_updates), std::end(stored_updates), update) != std::end(stored_updates);
  }
  void keep(Program& program, UnitId unit, std::string_view quantity, std::int64_t update, View const& flat) {
    ModelSpec const& spec = program.store().spec();
    for (ParamId id : spec[unit].params) out_.tensors[key(rule_, quantity, update, spec[id].name)] = copy_of(flat, spec[id]);
  }

  void keep_buffers(Program& program, UnitId unit, std::int64_t update) {
    auto const& buffers = program.store().spec().buffers;
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      if (buffers[b].unit != unit) continue;
      View const view = program.store().buffer(BufferId{std::int32_t(b)});
      Values& values = out_.tensors[key(rule_, "buffer", update, buffers[b].name)];
      if (buffers[b].holds == BufferSpec::Holds::counter)
        values.assign(1, double(*view.as<std::int64_t>()));
      else
        values.assign(view.as<double>(), view.as<double>() + view.elements());
    }
  }

  Rule rule_;
  Trained& out_;
};

}  // namespace

std::span<Way const> ways() {
  static constexpr auto cpu = [] { return make_cpu_backend(Determinism::fastest); };
  static Way const all[] = {{"reference", make_reference_backend, 1},
                            {"cpu", cpu, 1},
                            {"reference, 3 replicas", make_reference_backend, 3},
                            {"cpu, 3 replicas", cpu, 3}};
  return all;
}

std::vector<Trained> train(Case const& c, Rule rule, Way const& way) {
  Job const job = make_job(c, rule, way.replicas);
  std::vector<Trained> out{std::size_t(way.replicas)};
  run_thread_ranks(way.replicas, [&](Communicator& world) {
    Trained& mine = out[std::size_t(world.rank())];
    auto const ops = way.backend();
    Keep keep(rule, mine);
    Rig rig(job, {.ops = *ops, .world = world, .hooks = {&keep}});
    rig.program().advance(updates);
    rig.program().drain();
    for (WindowResult const& update : rig.program().history()) {
      mine.scalars.loss.push_back(update.loss);
      mine.scalars.norm.push_back(update.norm);
      mine.scalars.counted.push_back(double(update.counted));
    }
  });
  return out;
}

}  // namespace shardmark::golden
