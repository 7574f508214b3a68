#include "base/types.hpp"

namespace shardmark {

std::string_view name(DType type) {
  switch (type) {
    case DType::f64:
      return "fp64";
    case DType::f32:
      return "fp32";
    case DType::bf16:
      return "bf16";
    case DType::i64:
      return "int64";
    case DType::i32:
      return "int32";
    case DType::u8:
      return "uint8";
  }
  return "?";
}

std::string_view name(Book book) {
  switch (book) {
    case Book::parameters:
      return "parameters";
    case Book::gradients:
      return "gradients";
    case Book::optimizer:
      return "optimizer";
    case Book::activations:
      return "activations";
    case Book::versions:
      return "weight_versions";
    case Book::communication:
      return "communication";
    case Book::workspace:
      return "workspace";
    case Book::data:
      return "data";
    case Book::reference:
      return "reference";
  }
  return "?";
}

std::string_view name(Collective collective) {
  switch (collective) {
    case Collective::broadcast:
      return "broadcast";
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::all_gather:
      return "all_gather";
    case Collective::all_to_all:
      return "all_to_all";
    case Collective::gather:
      return "gather";
    case Collective::scatter:
      return "scatter";
  }
  return "?";
}

}  // namespace shardmark
