#include "app/describe.hpp"

#include <fmt/format.h>

namespace shardmark {

std::string describe_model(Options const& o, ModelSpec const& spec) {
  double const millions = double(spec.elements()) / 1e6;
  if (o.model == ModelKind::mlp) return fmt::format("mlp L{} H{} ({:.1f} M)", o.layers, o.hidden, millions);
  if (o.model == ModelKind::convnet) return fmt::format("convnet L{} C{} {} ({:.3f} M)", o.layers, o.hidden, name(o.batch_norm), millions);
  return fmt::format("gpt L{} H{} a{} S{} V{}{} ({:.1f} M)", o.layers, o.hidden, o.heads, o.seq, o.vocab, o.tied_embeddings ? " tied" : "",
                     millions);
}

std::string describe_run(Options const& o, std::string const& what, ModelSpec const& spec, int replicas) {
  std::string batch = fmt::format("global batch {}", global_batch(o, replicas));
  if (o.model == ModelKind::gpt) batch += fmt::format(" = {} tokens", terms_per_update(o, replicas));
  return fmt::format("{}   {}  {}  {}", what, describe_model(o, spec), name(o.dtype), batch);
}

std::int64_t terms_per_update(Options const& o, int replicas) {
  return global_batch(o, replicas) * (o.model == ModelKind::gpt ? o.seq : 1);
}

std::string_view term_name(Options const& o) { return o.model == ModelKind::gpt ? "token" : "sample"; }

std::string count_of(std::int64_t n, std::string_view noun) { return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s"); }

double to_mib(std::int64_t bytes) { return double(bytes) / (1 << 20); }

std::int64_t embedding_parameters(ModelSpec const& spec) {
  std::int64_t n = 0;
  for (ParamSpec const& p : spec.params)
    if (p.name == "wte.weight" || p.name == "wpe.weight") n += p.elements();
  return n;
}

}  // namespace shardmark
