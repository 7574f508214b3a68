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
    View const from = view_at(reinterpret_cast<std::byte*>(values.data()), nullptr, DType::f64, param.shape);
    for (Part part : {Part::compute, Part::master}) {
      View const flat = store.flat(part, param.unit, store.latest(param.unit));
      View const to = view_at(flat.data + std::size_t(param.offset) * width(flat.dtype), flat.region, flat.dtype, param.shape);
      ops.run(stream, Copy{from, to});
    }
    stream.synchronize();  // the host values go out of scope
  }
}

}  // namespace shardmark
