#include "backend/decorators/absolute.hpp"

#include <algorithm>

#include "backend/decorators/dense.hpp"
#include "base/sums.hpp"

namespace shardmark {
namespace {

/// The part of `outputs` that belongs to `view`.
OutputRounding const* find(std::vector<OutputRounding> const& outputs, View const& view) {
  auto const at = std::find_if(outputs.begin(), outputs.end(), [&](OutputRounding const& o) { return o.output.data == view.data; });
  return at == outputs.end() ? nullptr : &*at;
}

}  // namespace

void AbsoluteBackend::run(Stream& stream, Op const& op) {
  std::vector<OutputRounding> const outputs = carried(op, stream);
  // What an accumulated output held counts as exact where nothing is known of it, with its own magnitude.
  std::vector<std::pair<View, Dense>> before;
  Bench bench(inner(), stream);
  each_view(op, [&](View const& view, Access access) {
    if (access == Access::update && find(outputs, view) != nullptr) before.emplace_back(view, bench.load_absolute(view));
  });
  inner().run(stream, op);
  each_view(op, [&](View const& view, Access access) {
    if (!writes_to(access)) return;
    OutputRounding const* const output = view.dtype == DType::f64 ? find(outputs, view) : nullptr;
    auto const old = std::find_if(before.begin(), before.end(), [&](auto const& b) { return b.first.data == view.data; });
    if (output == nullptr) return shadow_.forget(view);
    shadow_.each(view, [&](Shadow::Note& note, std::int64_t i) {
      Shadow::Note added{output->absolute[std::size_t(i)], float(output->terms)};
      if (old != before.end()) {
        added.absolute += note.present() ? note.absolute : old->second[i];
        added.terms = std::max(note.present() ? note.terms : 0, added.terms) + 1;
      }
      note = added;
    });
  });
}

std::optional<AbsoluteBackend::Magnitude> AbsoluteBackend::lookup(View const& view) const {
  if (view.dtype != DType::f64) return std::nullopt;
  Magnitude out;
  out.absolute.reserve(std::size_t(view.elements()));
  bool complete = true;
  shadow_.each_noted(view, [&](Shadow::Note note, std::int64_t) {
    complete = complete && note.present();
    out.absolute.push_back(note.absolute);
    out.terms = std::max(out.terms, double(note.terms));
  });
  return complete ? std::optional(std::move(out)) : std::nullopt;
}

/// Sums and copies carry on what their inputs have; every other operation starts anew.
std::vector<OutputRounding> AbsoluteBackend::carried(Op const& op, Stream& stream) const {
  if (auto const* sum = std::get_if<SumTree>(&op); sum != nullptr && sum->out.dtype == DType::f64) return {carried_sum(*sum, stream)};
  if (auto const* copy = std::get_if<Copy>(&op); copy != nullptr && copy->from.dtype == copy->to.dtype) {
    auto known = lookup(copy->from);
    if (!known) return {};
    return {{copy->to, std::move(known->absolute), known->terms, StoredAs::exact}};
  }
  return rounding_of(op, inner(), stream);
}

OutputRounding AbsoluteBackend::carried_sum(SumTree const& op, Stream& stream) const {
  OutputRounding out{op.out, std::vector<double>(std::size_t(op.out.elements())), 0, StoredAs::storage};
  Bench bench(inner(), stream);
  for (View const& in : op.in) {
    Dense const values = bench.load_absolute(in);
    shadow_.each_noted(in, [&](Shadow::Note note, std::int64_t i) {
      out.absolute[std::size_t(i)] += note.present() ? note.absolute : values[i];
      out.terms = std::max(out.terms, double(note.terms));
    });
  }
  out.terms = std::max(out.terms, 0.0) + tree_depth(std::int64_t(op.in.size()));
  return out;
}

void Shadow::forget(View const& view) {
  auto const [first, last] = extent(view);
  if (first == nullptr) return;
  auto const forget_slot = [&](std::uintptr_t address) {
    if (auto const at = pages_.find(address / page_bytes); at != pages_.end()) (*at->second)[place(address)] = {};
  };
  std::uintptr_t const end = reinterpret_cast<std::uintptr_t>(last);
  for (std::uintptr_t at = reinterpret_cast<std::uintptr_t>(first); at < end; at += sizeof(double)) forget_slot(at);
}

}  // namespace shardmark
