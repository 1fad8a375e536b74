#include "recorder/ring/shared_ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>

#include "recorder/ring/ring_record.h"
#include "traces/crc32c.h"
#include "traces/error.h"

namespace redecode {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* what, int error) {
  throw Error(ErrorCode::environment, std::string(what) + ": " + std::strerror(error),
              path.string());
}

// A file of this size with all its blocks, so that a later write cannot find the disk full.
int create(const std::filesystem::path& path, uint64_t size_bytes) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) fail(path, "cannot create the recorder's ring", errno);
  const int error = ::posix_fallocate(file, 0, static_cast<off_t>(size_bytes));
  if (error != 0) {
    ::close(file);
    ::unlink(path.c_str());
    fail(path, "no room for the recorder's ring", error);
  }
  return file;
}

void* map(int file, void* at, uint64_t size_bytes, uint64_t offset_bytes) {
  return ::mmap(at, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE | MAP_FIXED, file,
                static_cast<off_t>(offset_bytes));
}

}  // namespace

uint32_t ring_header_crc(const RingHeader& header) {
  return crc32c(&header, offsetof(RingHeader, crc));
}

SharedRing::SharedRing(const std::filesystem::path& path, const RingSetup& setup)
    : keep_last_(setup.keep_last), path_(path) {
  size_bytes_ = std::bit_ceil(std::clamp(setup.ring_bytes, kMinRingBytes, kMaxRingBytes));
  mask_ = size_bytes_ - 1;
  const uint64_t file_bytes = kRingHeaderBytes + size_bytes_;
  const int file = create(path, file_bytes);
  const uint64_t span_bytes = kRingHeaderBytes + 2 * size_bytes_;
  void* const base =
      ::mmap(nullptr, span_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  uint8_t* const bytes = static_cast<uint8_t*>(base);
  const bool mapped = base != MAP_FAILED && map(file, bytes, file_bytes, 0) != MAP_FAILED &&
                      map(file, bytes + file_bytes, size_bytes_, kRingHeaderBytes) != MAP_FAILED;
  const int error = errno;
  ::close(file);
  if (!mapped) {
    if (base != MAP_FAILED) ::munmap(base, span_bytes);
    ::unlink(path.c_str());
    fail(path, "cannot map the recorder's ring", error);
  }
  ::madvise(base, span_bytes, MADV_DONTFORK);
  data_ = bytes + kRingHeaderBytes;
  header_ = new (base) RingHeader();
  header_->magic = kRingMagic;
  header_->version = kRingVersion;
  header_->lane = setup.lane;
  header_->ring_bytes = size_bytes_;
  header_->pid = static_cast<uint64_t>(::getpid());
  header_->started_unix_us = setup.started_unix_us;
  header_->started_ns = setup.started_ns;
  header_->flags = setup.keep_last ? 1 : 0;
  header_->crc = ring_header_crc(*header_);
  header_->first_dropped.store(UINT64_MAX);
  header_->pending_first.store(UINT64_MAX);
}

SharedRing::~SharedRing() { ::munmap(header_, kRingHeaderBytes + 2 * size_bytes_); }

bool SharedRing::make_room(uint64_t size_bytes) {
  seen_tail_ = header_->tail.load(std::memory_order_acquire);
  if (head_ + size_bytes - seen_tail_ <= size_bytes_) return true;
  return keep_last_ && overwrite(size_bytes);
}

bool SharedRing::overwrite(uint64_t size_bytes) {
  TailOwner expected = TailOwner::producer;
  if (!header_->owner.compare_exchange_strong(expected, TailOwner::busy, std::memory_order_acquire))
    return false;
  uint64_t tail = header_->tail.load(std::memory_order_relaxed);
  while (head_ + size_bytes - tail > size_bytes_)
    tail += reinterpret_cast<const RecordHead*>(data_ + (tail & mask_))->size_bytes;
  header_->tail.store(tail, std::memory_order_relaxed);
  header_->owner.store(TailOwner::producer, std::memory_order_release);
  seen_tail_ = tail;
  return true;
}

bool SharedRing::take_tail() {
  TailOwner expected = TailOwner::producer;
  return header_->owner.compare_exchange_strong(expected, TailOwner::consumer,
                                                std::memory_order_acquire);
}

void SharedRing::return_tail() {
  header_->owner.store(TailOwner::producer, std::memory_order_release);
}

}  // namespace redecode
