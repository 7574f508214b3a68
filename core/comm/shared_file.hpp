#pragma once
// Memory that the processes of one node share: a file in /dev/shm that never has a name, so that nothing is left behind however its
// processes end.

#include <cstddef>
#include <cstdint>
#include <utility>

namespace shardmark {

/// Memory mapped for as long as the owner lives.
class Mapping {
 public:
  Mapping() = default;
  /// Zeroed memory of this process; pages are taken when they are first touched.
  static Mapping anonymous(std::size_t bytes);
  static Mapping of_file(int descriptor, std::size_t bytes);
  Mapping(Mapping&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Mapping(int descriptor, std::size_t bytes, int flags);
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class SharedFile {
 public:
  /// A new, empty file; peers open it by this process's id and the descriptor.
  static SharedFile create();
  static SharedFile of_process(int process, int descriptor);
  SharedFile(SharedFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  SharedFile& operator=(SharedFile&&) = delete;
  ~SharedFile();
  int descriptor() const { return descriptor_; }
  void resize(std::size_t bytes);
  enum class Reserved : std::uint8_t { all, no_space };
  /// Takes the pages now: a file that is only sized ends in SIGBUS at the first touch when the memory is gone.
  Reserved reserve(std::size_t begin, std::size_t bytes);

 private:
  explicit SharedFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

inline constexpr char shared_folder[] = "/dev/shm";
/// Bytes that /dev/shm can still hold.
std::uint64_t shared_memory_free_bytes();

}  // namespace shardmark
