#include "comm/mpi/transfers.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "comm/mpi/check.hpp"
#include "comm/slices.hpp"

namespace shardmark::mpi {
namespace {

template <class Post>
void each_chunk(std::size_t bytes, std::size_t chunk_bytes, Post&& post) {
  Range const whole{0, std::int64_t(bytes)};
  auto const limit = std::int64_t(chunk_bytes);
  for (std::int64_t i = 0; i < chunk_count(whole.end, limit); ++i) {
    Range const chunk = nth_chunk(whole, limit, i);
    post(std::size_t(chunk.begin), int(chunk.size()));
  }
}

}  // namespace

void Transfers::receive(std::byte* to, std::size_t bytes, int peer, int tag, MPI_Comm comm, std::size_t chunk_bytes) {
  each_chunk(bytes, chunk_bytes,
             [&](std::size_t at, int count) { check(MPI_Irecv(to + at, count, MPI_BYTE, peer, tag, comm, next(count))); });
}

void Transfers::send(std::byte const* from, std::size_t bytes, int peer, int tag, MPI_Comm comm, std::size_t chunk_bytes) {
  each_chunk(bytes, chunk_bytes,
             [&](std::size_t at, int count) { check(MPI_Isend(from + at, count, MPI_BYTE, peer, tag, comm, next(not_received))); });
}

MPI_Request* Transfers::next(int expected_bytes) {
  expected_.push_back(expected_bytes);
  return &requests_.emplace_back(MPI_REQUEST_NULL);
}

bool Transfers::done() {
  int flag = 0;
  statuses_.resize(requests_.size());
  int const code = MPI_Testall(int(requests_.size()), requests_.data(), &flag, statuses_.data());
  if (code == MPI_ERR_IN_STATUS)
    for (MPI_Status const& status : statuses_)
      if (status.MPI_ERROR != MPI_ERR_PENDING) check(status.MPI_ERROR);
  check(code);
  for (std::size_t i = 0; flag != 0 && i < statuses_.size(); ++i) {
    if (expected_[i] == not_received) continue;
    int bytes = 0;
    check(MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes));
    if (bytes != expected_[i])
      throw RankFailure(fmt::format("rank {} of the group sent {} bytes with tag {} where {} are expected", statuses_[i].MPI_SOURCE, bytes,
                                    statuses_[i].MPI_TAG, expected_[i]));
  }
  return flag != 0;
}

void Transfers::clear() {
  requests_.clear();
  expected_.clear();
}

void Transfers::drop() noexcept {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (expected_[i] == not_received || requests_[i] == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&requests_[i]);
    MPI_Request_free(&requests_[i]);
  }
  clear();
}

MPI_Datatype datatype(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return MPI_DOUBLE;
    case DType::f32:
      return MPI_FLOAT;
    case DType::bf16:
      return MPI_UINT16_T;  // moved only: sums of bf16 take our own path
    case DType::i64:
      return MPI_INT64_T;
    case DType::i32:
      return MPI_INT32_T;
    case DType::u8:
      return MPI_UINT8_T;
  }
  return MPI_BYTE;
}

}  // namespace shardmark::mpi
