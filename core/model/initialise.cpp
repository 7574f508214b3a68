#include <algorithm>

#include "base/random.hpp"
#include "model/layer.hpp"

namespace shardmark {

std::vector<double> initial_values(ParamSpec const& param, std::uint64_t seed) {
  Randoms const random(seed, Purpose::initial_weights, stream_of(param.name));
  std::vector<double> out(std::size_t(param.elements()));
  SliceLayout const layout = param.layout();
  for (std::int64_t i = 0; i < param.elements(); ++i) {
    auto const at = std::uint64_t(layout(i));
    double value = 0;
    switch (param.initial.kind) {
      case Initial::Kind::zero:
        break;
      case Initial::Kind::one:
        value = 1;
        break;
      case Initial::Kind::normal:
        value = param.initial.mean + param.initial.scale * random.normal(at);
        break;
      case Initial::Kind::uniform:
        value = param.initial.mean + param.initial.scale * (2 * random.uniform(at) - 1);
        break;
    }
    out[std::size_t(i)] = double(float(value));  // representable in fp32 in every type
  }
  return out;
}

void initialise(Model const& model, ParameterStore& store, Backend& ops, Stream& stream) {
  for (ParamSpec const& param : model.spec.params) {
    auto const& held = store.held();
    if (std::find(held.begin(), held.end(), param.unit) == held.end()) continue;
    std::vector<double> values = initial_values(param, model.seed);
    std::int64_t const elements = param.elements();
    View const from = view_at(reinterpret_cast<std::byte*>(values.data()), nullptr, DType::f64, Shape{&elements, 1});
    Version const latest = store.latest(param.unit);
    for (Part part : {Part::compute, Part::master}) {
      if (part == Part::compute && !store.config().shards.cut_weights()) {
        View const whole = store.flat(part, param.unit, latest);
        ops.run(stream, Copy{from, slice(whole, 0, param.offset, param.offset + elements)});
        continue;
      }
      OwnPart const own = own_part(store.own(part, param.unit, latest), store.own_range(param.unit), param);
      ops.run(stream, Copy{slice(from, 0, own.range.begin, own.range.end), own.values});
    }
    stream.synchronize();  // the host values go out of scope
  }
}

}  // namespace shardmark
