#include <algorithm>
#include <cstring>

#include "comm/communicator.hpp"

namespace shardmark {
namespace {

Tensor doubles(Arena& arena, Stream& stream, std::size_t count) {
  return arena.make(DType::f64, {std::int64_t(count)}, Book::communication, stream);
}

void exchange(Communicator& group, Stream& stream, Collective what, Tensor send, Tensor recv, int root, std::string_view purpose) {
  group.post(stream, Exchange{what, std::move(send), std::move(recv), root, Reduction::fixed_tree, purpose}).wait(stream);
  stream.synchronize();
}

}  // namespace

void barrier(Communicator& group, Arena& arena, Stream& stream) {
  double one = 1;
  all_sum(group, arena, stream, {&one, 1});
}

void all_sum(Communicator& group, Arena& arena, Stream& stream, std::span<double> values) {
  Tensor const t = doubles(arena, stream, values.size());
  std::copy(values.begin(), values.end(), t.view.as<double>());
  exchange(group, stream, Collective::all_reduce, t, t, 0, "decision");
  std::copy_n(t.view.as<double>(), values.size(), values.begin());
}

void all_gather(Communicator& group, Arena& arena, Stream& stream, std::span<double const> mine, std::span<double> out) {
  expect(out.size() == mine.size() * std::size_t(group.size()), "all_gather: out holds size() times mine");
  Tensor const send = doubles(arena, stream, mine.size()), recv = doubles(arena, stream, out.size());
  std::copy(mine.begin(), mine.end(), send.view.as<double>());
  exchange(group, stream, Collective::all_gather, send, recv, 0, "decision");
  std::copy_n(recv.view.as<double>(), out.size(), out.begin());
}

void broadcast(Communicator& group, Arena& arena, Stream& stream, std::span<std::byte> bytes, int root) {
  Tensor const t = arena.make(DType::u8, {std::int64_t(bytes.size())}, Book::communication, stream);
  if (!bytes.empty()) std::memcpy(t.view.data, bytes.data(), bytes.size());
  exchange(group, stream, Collective::broadcast, {}, t, root, "decision");
  if (!bytes.empty()) std::memcpy(bytes.data(), t.view.data, bytes.size());
}

}  // namespace shardmark
