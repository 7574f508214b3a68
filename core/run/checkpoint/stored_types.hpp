#pragma once
// Element types as safetensors writes them; private to this folder.

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/types.hpp"

namespace shardmark {

inline constexpr std::array<std::pair<DType, std::string_view>, 6> stored_names{
    {{DType::f64, "F64"}, {DType::f32, "F32"}, {DType::bf16, "BF16"}, {DType::i64, "I64"}, {DType::i32, "I32"}, {DType::u8, "U8"}}};

inline std::string_view stored_name(DType type) {
  for (auto const& [known, name] : stored_names)
    if (known == type) return name;
  return {};
}

inline std::optional<DType> stored_type(std::string_view name) {
  for (auto const& [type, known] : stored_names)
    if (known == name) return type;
  return std::nullopt;
}

}  // namespace shardmark
