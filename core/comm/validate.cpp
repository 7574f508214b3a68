#include <fmt/format.h>

#include "comm/communicator.hpp"
#include "comm/slices.hpp"

namespace shardmark {
namespace {

void check_tensor(Tensor const& tensor, std::string_view of, std::string_view which, std::int64_t elements, DType dtype) {
  expect(bool(tensor), [&] { return fmt::format("{}: {} is absent", of, which); });
  expect(tensor.view.contiguous(), [&] { return fmt::format("{}: {} isn't contiguous: {}", of, which, to_string(tensor.view)); });
  expect(tensor.view.dtype == dtype,
         [&] { return fmt::format("{}: {} has another element type than its counterpart: {}", of, which, to_string(tensor.view)); });
  expect(tensor.view.elements() == elements,
         [&] { return fmt::format("{}: {} has {} elements where {} are needed", of, which, tensor.view.elements(), elements); });
}

/// Where the smaller of send and recv begins when it is this rank's piece of the other; equal sizes: the same memory.
bool in_place(Exchange const& exchange, int me) {
  View const &send = exchange.send.view, &recv = exchange.recv.view;
  std::int64_t const here = std::min(send.elements(), recv.elements()) * me * std::int64_t(width(send.dtype));
  if (send.elements() == recv.elements()) return send.data == recv.data;
  return send.elements() > recv.elements() ? recv.data == send.data + here : send.data == recv.data + here;
}

}  // namespace

void validate(Communicator const& group, Exchange const& exchange) {
  int const n = group.size(), me = group.rank();
  std::string_view const what = name(exchange.what);
  expect(exchange.root >= 0 && exchange.root < n, [&] { return fmt::format("{}: root {} isn't one of {} ranks", what, exchange.root, n); });

  PieceCounts const pieces = piece_counts(exchange.what, n, me, exchange.root);
  Tensor const& given = pieces.recv > 0 ? exchange.recv : exchange.send;
  expect(bool(given), [&] { return fmt::format("{}: a tensor is absent", what); });
  DType const dtype = given.view.dtype;
  int const given_pieces = pieces.recv > 0 ? pieces.recv : pieces.send;
  expect(given.view.elements() % given_pieces == 0,
         [&] { return fmt::format("{}: {} elements can't be {} equal pieces", what, given.view.elements(), given_pieces); });
  std::int64_t const piece = given.view.elements() / given_pieces;

  bool const broadcast = exchange.what == Collective::broadcast;
  if (pieces.recv > 0) check_tensor(exchange.recv, what, "recv", piece * pieces.recv, dtype);
  if (broadcast ? bool(exchange.send) : pieces.send > 0)
    check_tensor(exchange.send, what, "send", piece * (broadcast ? 1 : pieces.send), dtype);
  if (exchange.send && exchange.recv && overlap(exchange.send.view, exchange.recv.view))
    expect(in_place(exchange, me), [&] { return fmt::format("{}: send and recv overlap in part", what); });
}

void validate(Communicator const& group, std::span<Message const> messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    Message const& m = messages[i];
    expect(m.peer >= 0 && m.peer < group.size(),
           [&] { return fmt::format("message: peer {} isn't one of {} ranks", m.peer, group.size()); });
    expect(m.channel >= 0 && m.channel < channels,
           [&] { return fmt::format("message: channel {} isn't in 0..{}", m.channel, channels - 1); });
    expect(bool(m.data), "message: its tensor is absent");
    expect(m.data.view.contiguous(), [&] { return fmt::format("message: its tensor isn't contiguous: {}", to_string(m.data.view)); });
    for (Message const& other : messages.first(i))
      if (m.direction == Direction::receive || other.direction == Direction::receive)
        expect(!overlap(m.data.view, other.data.view), "message: a received tensor overlaps another tensor of the group");
  }
}

}  // namespace shardmark
