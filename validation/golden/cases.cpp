#include "validation/golden/cases.hpp"

#include <cstring>
#include <nlohmann/json.hpp>

namespace shardmark::golden {
namespace {

using Json = nlohmann::ordered_json;

Json sizes(MlpConfig const& c) {
  return {{"kind", "mlp"}, {"layers", c.layers}, {"hidden", c.hidden}, {"features", c.features}, {"classes", c.classes}};
}

Json sizes(GptConfig const& c) {
  return {{"kind", "gpt"}, {"layers", c.layers}, {"hidden", c.hidden},         {"heads", c.heads},
          {"seq", c.seq},  {"vocab", c.vocab},   {"tied", c.tied == Tied::yes}};
}

Json sizes(ConvnetConfig const& c) {
  return {{"kind", "convnet"},
          {"layers", c.layers},
          {"hidden", c.hidden},
          {"image", {c.image.channels, c.image.height, c.image.width}},
          {"classes", c.classes}};
}

template <class T>
Json values(std::vector<std::byte> const& bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

Json values(std::vector<std::byte> const& bytes, DType type) {
  return type == DType::i32 ? values<std::int32_t>(bytes) : values<float>(bytes);
}

Json settings_json() {
  OptimizerSettings const sgd = settings(Rule::sgd), adamw = settings(Rule::adamw);
  return {{"sgd", {{"lr", sgd.rate.base}, {"momentum", sgd.momentum}, {"weight_decay", sgd.weight_decay}, {"clip_norm", sgd.clip_norm}}},
          {"adamw",
           {{"lr", adamw.rate.base},
            {"betas", {adamw.beta1, adamw.beta2}},
            {"eps", adamw.epsilon},
            {"weight_decay", adamw.weight_decay},
            {"clip_norm", adamw.clip_norm}}}};
}

Json batches_json(Case const& c) {
  auto const data = make_data(c);
  SampleShape const& shape = data->shape();
  Loader loader(*data, Sampler(data->size(), c.batch, c.seed), Cut{}, 0);
  Json out = Json::array();
  for (std::int64_t update = 0; update < updates; ++update) {
    HostBatch const& batch = loader.next();
    out.push_back(
        {{"rows", batch.rows}, {"input", values(batch.input, shape.input_type)}, {"target", values(batch.target, shape.target_type)}});
  }
  return out;
}

}  // namespace

std::span<Case const> cases() {
  static Case const all[] = {
      {.name = "mlp", .model = MlpConfig{.layers = 2, .hidden = 8, .features = 6, .classes = 5}, .parameters = 6, .elements = 173},
      {.name = "gpt", .model = GptConfig{.layers = 2, .hidden = 12, .heads = 3, .seq = 7, .vocab = 13}, .parameters = 37, .elements = 4188},
      {.name = "gpt-tied",
       .model = GptConfig{.layers = 1, .hidden = 6, .heads = 3, .seq = 7, .vocab = 13, .tied = Tied::yes},
       .parameters = 20,
       .elements = 642},
      {.name = "convnet",
       .model = ConvnetConfig{.layers = 2, .hidden = 4, .image = {2, 5, 4}, .classes = 5},
       .parameters = 8,
       .elements = 257}};
  return all;
}

OptimizerSettings settings(Rule rule) {
  if (rule == Rule::sgd) return {.rule = rule, .momentum = 0.9, .weight_decay = 0.1, .clip_norm = 0.25, .rate = {.base = 0.1}};
  return {.rule = rule, .epsilon = 1e-2, .weight_decay = 0.1, .clip_norm = 0.25, .rate = {.base = 2e-3}};
}

std::string_view name(Rule rule) { return rule == Rule::sgd ? "sgd" : "adamw"; }

std::shared_ptr<Model const> make_model(Case const& c) {
  InitialStyle const style = InitialStyle::verifying;
  if (auto const* mlp = std::get_if<MlpConfig>(&c.model)) return std::make_shared<Model const>(make_mlp(*mlp, DType::f64, c.seed, style));
  if (auto const* convnet = std::get_if<ConvnetConfig>(&c.model))
    return std::make_shared<Model const>(make_convnet(*convnet, DType::f64, c.seed, style));
  return std::make_shared<Model const>(make_gpt(std::get<GptConfig>(c.model), DType::f64, c.seed, style));
}

std::shared_ptr<Dataset const> make_data(Case const& c) {
  if (auto const* mlp = std::get_if<MlpConfig>(&c.model)) return make_synthetic_vectors(c.seed, c.samples, {mlp->features}, mlp->classes);
  if (auto const* convnet = std::get_if<ConvnetConfig>(&c.model)) {
    ImageShape const& image = convnet->image;
    return make_synthetic_images(c.seed, c.samples, {image.channels, image.height, image.width}, convnet->classes);
  }
  auto const& gpt = std::get<GptConfig>(c.model);
  return make_synthetic_tokens(c.seed, c.samples, gpt.seq, gpt.vocab, Ragged::yes);
}

Job make_job(Case const& c, Rule rule, int replicas) {
  Job job;
  job.model = make_model(c);
  job.data = make_data(c);
  job.mesh.data = replicas;
  job.global_batch = c.batch;
  job.seed = c.seed;
  job.replicas = replicas;
  job.optimizer = settings(rule);
  job.batch_norm = BatchNormPolicy::sync;
  auto const blocks = job.model->shapes();
  Schedule const schedule = refine(plan_sequential(replicas > 1 ? "ddp" : "serial", 1), blocks, {0, int(blocks.size())});
  job.schedule = replicas == 1 ? lower(schedule, blocks, 0, Overlap::off)
                               : lower(bucket(schedule, blocks, {.cap_bytes = 8 << 10, .first_cap_bytes = 1 << 10, .element_bytes = 8}),
                                       blocks, axes(Axis::data), Overlap::on);
  return job;
}

std::string inputs_json(Case const& c) {
  Json weights = Json::array();
  auto const model = make_model(c);
  for (ParamSpec const& param : model->spec.params)
    weights.push_back({{"name", param.name}, {"shape", param.full}, {"values", initial_values(param, model->seed)}});
  Json const inputs{{"case", c.name},
                    {"seed", c.seed},
                    {"model", std::visit([](auto const& config) { return sizes(config); }, c.model)},
                    {"settings", settings_json()},
                    {"stored_updates", stored_updates},
                    {"weights", std::move(weights)},
                    {"updates", batches_json(c)}};
  return inputs.dump();
}

}  // namespace shardmark::golden
