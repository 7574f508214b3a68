#pragma once
// A number or two beside each fp64 element of memory, kept by address in pages: views of any shape and stride, slices and
// reshapes find them again, and what is overwritten is forgotten element by element.

#include <array>
#include <limits>
#include <memory>
#include <unordered_map>

#include "backend/op_access.hpp"

namespace shardmark {

class Shadow {
 public:
  struct Note {
    double absolute = 0;
    float terms = absent;
    bool present() const { return terms >= 0; }
  };

  /// Calls f(Note&, index in row-major order) for each element.
  template <class F>
  void each(View const& view, F&& f) {
    walk(view, [&](std::uintptr_t address, std::int64_t i) { f(page(address)[place(address)], i); });
  }
  /// The same without making pages: f(Note), absent where nothing was noted.
  template <class F>
  void each_noted(View const& view, F&& f) const {
    walk(view, [&](std::uintptr_t address, std::int64_t i) {
      auto const at = pages_.find(address / page_bytes);
      f(at == pages_.end() ? Note{} : (*at->second)[place(address)], i);
    });
  }
  /// Forgets every fp64 slot that the view's extent touches; any type.
  void forget(View const& view);
  void clear() { pages_.clear(); }

 private:
  static constexpr float absent = -1;
  static constexpr std::uintptr_t page_bytes = 1 << 16;
  using Page = std::array<Note, page_bytes / sizeof(double)>;

  static std::size_t place(std::uintptr_t address) { return address % page_bytes / sizeof(double); }
  Page& page(std::uintptr_t address) {
    auto& at = pages_[address / page_bytes];
    if (at == nullptr) at = std::make_unique<Page>();
    return *at;
  }
  template <class F>
  static void walk(View const& view, F&& f) {
    std::int64_t i = 0;
    for (std::int64_t r = 0, rows = rows_of(view), n = columns_of(view); r < rows; ++r) {
      std::int64_t offset = 0;
      for (std::int64_t dim = view.rank - 2, rest = r; dim >= 0; --dim) {
        offset += rest % view.shape[std::size_t(dim)] * view.stride[std::size_t(dim)];
        rest /= view.shape[std::size_t(dim)];
      }
      for (std::int64_t j = 0; j < n; ++j, ++i)
        f(reinterpret_cast<std::uintptr_t>(view.data) + std::uintptr_t(offset + j * view.stride[view.rank - 1u]) * sizeof(double), i);
    }
  }

  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
};

}  // namespace shardmark
