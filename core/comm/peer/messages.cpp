#include "comm/peer/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace shardmark::peer {
namespace {

constexpr std::size_t copy_limit = std::size_t{256} << 10;  // bytes that one advance() copies for one message

}  // namespace

Messages::Messages(Board board, AddressSpace space, int me, std::pmr::memory_resource* pool)
    : board_(board), space_(space), me_(me), sends_(pool), receives_(pool), arrivals_(pool), seen_(std::size_t(board.members())) {
  for (int i = slots_per_rank; i-- > 0;) free_slots_.push_back(i);
  for (int i = staging_blocks; i-- > 0;) free_blocks_.push_back(i);
}

void Messages::post(Posted& owner, Message const& message) {
  View const& v = message.data.view;
  if (message.direction == Direction::send)
    sends_.push_back({&owner, v.data, v.bytes(), message.peer, message.channel});
  else
    receives_.push_back({&owner, v.data, v.bytes(), message.peer, message.channel});
}

bool Messages::advance() {
  bool moved = collect_arrivals();
  auto each = [&](auto& list) {
    for (auto it = list.begin(); it != list.end();) {
      Result const result = advance(*it);
      moved |= result != Result::blocked;
      if (result == Result::finished) {
        it->owner->piece_done();
        it = list.erase(it);
      } else {
        ++it;
      }
    }
  };
  each(receives_);
  each(sends_);
  return moved;
}

void Messages::take_slot(Send& send) {
  send.slot = free_slots_.back();
  free_slots_.pop_back();
  MessageSlot& s = slot(send.slot);
  bool const reachable = space_.reaches(send.data, send.bytes);
  s.channel = send.channel;
  s.bytes = send.bytes;
  s.offset = reachable ? space_.offset_of(send.data) : 0;
  s.state.store(reachable ? SlotState::ready : SlotState::announced, std::memory_order_relaxed);
  Ring& ring = board_.ring(me_, send.peer);
  std::uint64_t const place = ring.posted.load(std::memory_order_relaxed);
  ring.slot[place % slots_per_rank] = std::uint16_t(send.slot);
  ring.posted.store(place + 1, std::memory_order_release);
}

bool Messages::stage(Send& send) {
  if (send.block < 0) {
    if (free_blocks_.empty()) return false;
    send.block = free_blocks_.back();
    free_blocks_.pop_back();
  }
  MessageSlot& s = slot(send.slot);
  std::byte* const block = board_.staging(me_, send.block);
  s.piece_bytes = std::min(staging_bytes, send.bytes - send.staged);
  s.offset = space_.offset_of(block);
  std::memcpy(block, send.data + send.staged, s.piece_bytes);
  send.staged += s.piece_bytes;
  s.state.store(SlotState::filled, std::memory_order_release);
  return true;
}

Messages::Result Messages::advance(Send& send) {
  if (send.slot < 0) {
    // Slots go to sends in the order of posting: this one is the first without.
    if (free_slots_.empty()) return Result::blocked;
    take_slot(send);
    return Result::moved;
  }
  SlotState const state = slot(send.slot).state.load(std::memory_order_acquire);
  if (state == SlotState::wanted) return stage(send) ? Result::moved : Result::blocked;
  if (state != SlotState::taken) return Result::blocked;
  slot(send.slot).state.store(SlotState::free, std::memory_order_relaxed);
  free_slots_.push_back(send.slot);
  if (send.block >= 0) free_blocks_.push_back(send.block);
  return Result::finished;
}

bool Messages::collect_arrivals() {
  bool any = false;
  for (int peer = 0; peer < board_.members(); ++peer) {
    Ring& ring = board_.ring(peer, me_);
    std::uint64_t const posted = ring.posted.load(std::memory_order_acquire);
    for (std::uint64_t& seen = seen_[std::size_t(peer)]; seen < posted; ++seen) {
      MessageSlot& from = board_.of(peer).slots[ring.slot[seen % slots_per_rank]];
      arrivals_.push_back({peer, from.channel, &from});
      any = true;
    }
  }
  return any;
}

void Messages::match(Receive& receive) {
  auto const fits = [&](Arrival const& a) { return a.peer == receive.peer && a.channel == receive.channel; };
  auto const found = std::find_if(arrivals_.begin(), arrivals_.end(), fits);
  if (found == arrivals_.end()) return;
  receive.from = found->slot;
  arrivals_.erase(found);
  if (receive.from->bytes != receive.bytes)
    throw RankFailure(fmt::format("rank {} sent {} bytes on channel {} where rank {} expects {}", receive.peer, receive.from->bytes,
                                  receive.channel, me_, receive.bytes));
}

Messages::Result Messages::advance(Receive& receive) {
  if (receive.from == nullptr) match(receive);
  if (receive.from == nullptr) return Result::blocked;
  MessageSlot& from = *receive.from;
  switch (from.state.load(std::memory_order_acquire)) {
    case SlotState::ready: {
      std::size_t const bytes = std::min(copy_limit, receive.bytes - receive.done);
      if (bytes > 0) std::memcpy(receive.data + receive.done, space_.at(from.offset) + receive.done, bytes);
      receive.done += bytes;
      break;
    }
    case SlotState::announced:
      from.state.store(SlotState::wanted, std::memory_order_release);
      return Result::moved;
    case SlotState::filled:
      std::memcpy(receive.data + receive.done, space_.at(from.offset), from.piece_bytes);
      receive.done += from.piece_bytes;
      if (receive.done < receive.bytes) from.state.store(SlotState::wanted, std::memory_order_release);
      break;
    default:
      return Result::blocked;
  }
  if (receive.done < receive.bytes) return Result::moved;
  from.state.store(SlotState::taken, std::memory_order_release);
  return Result::finished;
}

}  // namespace shardmark::peer
