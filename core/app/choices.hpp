#pragma once
// Words that stand for the values of an enum, on the command line and in records.

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "app/options.hpp"

namespace shardmark {

template <class Enum>
struct Choice {
  std::string_view word;
  std::optional<Enum> value;  // absent: the documentation names it, this version lacks it
};

template <class Enum>
struct Choices;

template <>
struct Choices<Command> {
  static constexpr std::array<Choice<Command>, 3> all{{{"plan", Command::plan}, {"verify", Command::verify}, {"bench", Command::bench}}};
};
template <>
struct Choices<ModelKind> {
  static constexpr std::array<Choice<ModelKind>, 3> all{
      {{"mlp", ModelKind::mlp}, {"convnet", ModelKind::convnet}, {"gpt", ModelKind::gpt}}};
};
template <>
struct Choices<OptimizerKind> {
  static constexpr std::array<Choice<OptimizerKind>, 2> all{{{"sgd", OptimizerKind::sgd}, {"adamw", OptimizerKind::adamw}}};
};
template <>
struct Choices<DType> {
  static constexpr std::array<Choice<DType>, 3> all{{{"fp64", DType::f64}, {"fp32", DType::f32}, {"bf16", DType::bf16}}};
};
template <>
struct Choices<BackendKind> {
  static constexpr std::array<Choice<BackendKind>, 3> all{{{"reference", BackendKind::reference}, {"cpu", BackendKind::cpu}, {"cuda", {}}}};
};
template <>
struct Choices<CommKind> {
  static constexpr std::array<Choice<CommKind>, 3> all{{{"mpi", CommKind::mpi}, {"peer", CommKind::peer}, {"nccl", {}}}};
};
template <>
struct Choices<LrSchedule> {
  static constexpr std::array<Choice<LrSchedule>, 3> all{
      {{"constant", LrSchedule::constant}, {"linear", LrSchedule::linear}, {"cosine", LrSchedule::cosine}}};
};
template <>
struct Choices<BatchNormPolicy> {
  static constexpr std::array<Choice<BatchNormPolicy>, 3> all{
      {{"per-micro", BatchNormPolicy::per_micro}, {"deferred", BatchNormPolicy::deferred}, {"sync", BatchNormPolicy::sync}}};
};
template <>
struct Choices<PipelineMode> {
  static constexpr std::array<Choice<PipelineMode>, 4> all{{{"flush", PipelineMode::flush},
                                                            {"stash", PipelineMode::stash},
                                                            {"vertical", PipelineMode::vertical},
                                                            {"2bw", PipelineMode::two_buffers}}};
};
template <>
struct Choices<SplitBackward> {
  static constexpr std::array<Choice<SplitBackward>, 4> all{
      {{"off", SplitBackward::off}, {"h1", SplitBackward::h1}, {"h2", SplitBackward::h2}, {"v", SplitBackward::v}}};
};
template <>
struct Choices<LayerAlone> {
  static constexpr std::array<Choice<LayerAlone>, 3> all{
      {{"off", LayerAlone::off}, {"column", LayerAlone::column}, {"row", LayerAlone::row}}};
};
template <>
struct Choices<Inside> {
  static constexpr std::array<Choice<Inside>, 2> all{{{"ranks-last", Inside::micros}, {"ranks-first", Inside::replicas}}};
};
template <>
struct Choices<BackwardOrder> {
  static constexpr std::array<Choice<BackwardOrder>, 2> all{
      {{"newest", BackwardOrder::newest_first}, {"oldest", BackwardOrder::oldest_first}}};
};
template <>
struct Choices<Fault::Kind> {
  static constexpr std::array<Choice<Fault::Kind>, 6> all{{{"bitflip", Fault::Kind::bitflip},
                                                           {"nan", Fault::Kind::nan},
                                                           {"kill", Fault::Kind::kill},
                                                           {"stop", Fault::Kind::stop},
                                                           {"delay", Fault::Kind::delay},
                                                           {"drop-reduction", Fault::Kind::drop_reduction}}};
};

/// Refuses `word`: `known` of this version are listed.
[[noreturn]] void refuse_choice(std::string_view word, bool later_version, std::string_view known, std::string const& origin);

/// The value that `word` stands for. @throws BadRequest
template <class Enum>
Enum choose(std::string_view word, std::string const& origin) {
  std::string known;
  bool later_version = false;
  for (auto const& choice : Choices<Enum>::all) {
    if (choice.word == word && choice.value) return *choice.value;
    later_version = later_version || choice.word == word;
    if (choice.value) known += (known.empty() ? "" : ", ") + std::string(choice.word);
  }
  refuse_choice(word, later_version, known, origin);
}

template <class Enum>
std::string_view word_of(Enum value) {
  for (auto const& choice : Choices<Enum>::all)
    if (choice.value == value) return choice.word;
  return "?";
}

}  // namespace shardmark
