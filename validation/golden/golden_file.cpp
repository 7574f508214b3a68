#include "validation/golden/golden_file.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace shardmark::golden {
namespace {

std::string read_file(std::string const& name) {
  char const* const source = std::getenv("SHARDMARK_SOURCE");
  std::string const path = fmt::format("{}/validation/golden/data/{}", source == nullptr ? "." : source, name);
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Little-endian, on every machine.
double double_at(std::string const& bytes, std::size_t index) {
  std::uint64_t bits = 0;
  for (std::size_t b = 0; b < 8; ++b) bits |= std::uint64_t(std::uint8_t(bytes[8 * index + b])) << (8 * b);
  return std::bit_cast<double>(bits);
}

/// "gradient.1" belongs to every rule: it is made before any update.
std::vector<std::string> names_of(std::string const& array) {
  if (!array.starts_with("gradient.")) return {array};
  std::vector<std::string> out;
  for (Rule rule : rules) out.push_back(fmt::format("{}.{}", name(rule), array));
  return out;
}

}  // namespace

std::string key(Rule rule, std::string_view quantity, std::int64_t update, std::string_view parameter) {
  return fmt::format("{}.{}.{}/{}", name(rule), quantity, update, parameter);
}

Golden read_golden(std::string const& name_of_case) {
  auto const index = nlohmann::json::parse(read_file(name_of_case + ".json"));
  std::string const bytes = read_file(name_of_case + ".bin");
  Golden out;
  out.inputs_sha256 = index.at("provenance").at("inputs_sha256");
  for (Rule rule : rules) {
    auto const& scalars = index.at("scalars").at(std::string(name(rule)));
    out.scalars[rule] = {scalars.at("loss"), scalars.at("norm"), scalars.at("counted")};
  }
  std::size_t at = 0;
  for (std::string const array : index.at("arrays"))
    for (auto const& parameter : index.at("parameters")) {
      std::string const parameter_name = parameter.at("name");
      std::vector<std::int64_t> const shape = parameter.at("shape");
      out.shapes[parameter_name] = shape;
      std::size_t elements = 1;
      for (auto extent : shape) elements *= std::size_t(extent);
      if (bytes.size() < 8 * (at + elements)) {
        ADD_FAILURE() << name_of_case << ".bin ends before " << array << " of " << parameter_name;
        return out;
      }
      Values values(elements);
      for (double& value : values) value = double_at(bytes, at++);
      for (std::string const& rule_and_array : names_of(array)) out.tensors[rule_and_array + "/" + parameter_name] = values;
    }
  auto const stored = index.value("buffers", nlohmann::json::object());
  for (auto const& [rule, by_update] : stored.items())
    for (auto const& [update, buffers] : by_update.items())
      for (auto const& [buffer, values] : buffers.items())
        out.tensors[fmt::format("{}.buffer.{}/{}", rule, update, buffer)] = values.get<Values>();
  EXPECT_EQ(bytes.size(), 8 * at) << name_of_case << ".bin is longer than its index says";
  return out;
}

}  // namespace shardmark::golden
