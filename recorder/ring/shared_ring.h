// recorder/ring/shared_ring.h - SharedRing: a lock-free queue of byte records between one producer
// and one consumer, in a shared file that outlives its process.
//
// File: a page of header, then `ring_bytes` of records. Sizes are multiples of 8. The data is
// mapped twice in a row, so that no record wraps. A record counts once `head` has passed it, which
// is stored after its bytes: a process that is killed leaves whole records only. `tail` moves on
// only when what was read is safe elsewhere, so that nothing between the two is lost with the
// process.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace redecode {

inline constexpr uint64_t kRingMagic = 0x31474e4952434452u;  // "RDCRING1"
inline constexpr uint32_t kRingVersion = 1;
inline constexpr uint64_t kRingHeaderBytes = 4096;
inline constexpr uint64_t kMinRingBytes = uint64_t{64} << 10;
inline constexpr uint64_t kMaxRingBytes = uint64_t{4} << 30;

// Who may move the tail of a ring that overwrites its oldest records.
enum class TailOwner : uint32_t { producer, busy, consumer };

// The first page of the file. Each line of 64 bytes is written by one side only.
struct RingHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t lane;
  uint64_t ring_bytes;  // a power of two
  uint64_t pid;
  int64_t started_unix_us;  // wall clock where time_us is 0
  uint64_t started_ns;      // CLOCK_MONOTONIC at the same moment
  uint32_t flags;           // bit 0: keeps the last records, overwriting older ones
  uint32_t crc;             // CRC-32C of the fields above
  char reserved0[8];

  alignas(64) std::atomic<uint64_t> head;  // bytes ever committed: the producer's line
  std::atomic<uint64_t> steps_seen, steps_dropped, records_dropped, bytes_dropped;
  std::atomic<uint64_t> first_dropped;  // step; UINT64_MAX: none
  // Lost since the last loss record was committed.
  std::atomic<uint64_t> pending_dropped, pending_first, pending_last, pending_bytes;

  alignas(64) std::atomic<uint64_t> tail;  // bytes ever given back: the consumer's line
  alignas(64) std::atomic<TailOwner> owner;
};
static_assert(sizeof(RingHeader) <= kRingHeaderBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

uint32_t ring_header_crc(const RingHeader& header);

struct RingSetup {
  uint64_t ring_bytes = 0;  // rounded up to a power of two within the limits above
  uint32_t lane = 0;
  int64_t started_unix_us = 0;
  uint64_t started_ns = 0;
  bool keep_last = false;
};

class SharedRing {
 public:
  // Makes the file with all its pages. Errors: environment (no room, no permission).
  SharedRing(const std::filesystem::path& path, const RingSetup& setup);
  ~SharedRing();  // unmaps; the file stays
  SharedRing(const SharedRing&) = delete;
  SharedRing& operator=(const SharedRing&) = delete;

  // Producer: room for a record, or nullptr where there is none; commit hands it over. A ring that
  // keeps the last records makes room, unless the consumer owns the tail.
  uint8_t* reserve(uint64_t size_bytes) {
    if (head_ + size_bytes - seen_tail_ > size_bytes_ && !make_room(size_bytes)) return nullptr;
    return data_ + (head_ & mask_);
  }
  void commit(uint64_t size_bytes) {
    head_ += size_bytes;
    header_->head.store(head_, std::memory_order_release);
  }

  // Producer: asks for the lines that a next record of this size goes to, so that they are here by
  // the time it comes.
  void prepare(uint64_t size_bytes) const {
    constexpr uint64_t kLineBytes = 64, kMostBytes = 4096;
    const uint8_t* next = data_ + (head_ & mask_);
    for (uint64_t at = 0; at < size_bytes && at < kMostBytes; at += kLineBytes)
      __builtin_prefetch(next + at, 1);
  }

  // Consumer: what was committed and not read yet, from `position` (bytes ever read) on.
  std::span<const uint8_t> readable(uint64_t position) const {
    const uint64_t head = header_->head.load(std::memory_order_acquire);
    return {data_ + (position & mask_), static_cast<size_t>(head - position)};
  }
  void give_back(uint64_t position) { header_->tail.store(position, std::memory_order_release); }

  // Consumer, of a ring that keeps the last records: takes the tail, so that nothing is overwritten
  // while it reads; false while the producer moves it. Then gives it back.
  bool take_tail();
  void return_tail();

  uint64_t tail() const { return header_->tail.load(std::memory_order_acquire); }
  uint64_t head() const { return header_->head.load(std::memory_order_acquire); }
  uint64_t size_bytes() const { return size_bytes_; }
  RingHeader& header() { return *header_; }
  const RingHeader& header() const { return *header_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  bool make_room(uint64_t size_bytes);
  bool overwrite(uint64_t size_bytes);

  uint64_t head_ = 0;       // the producer's own copy
  uint64_t seen_tail_ = 0;  // its last look at the tail
  uint64_t mask_ = 0;
  uint64_t size_bytes_ = 0;
  uint8_t* data_ = nullptr;
  RingHeader* header_ = nullptr;
  bool keep_last_ = false;
  std::filesystem::path path_;
};

}  // namespace redecode
