// recorder/http/observe_stream.h - FedStream: a kj input stream that is fed from memory. Internal
// to recorder/http/*.cpp.
#pragma once
#include <kj/async-io.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

namespace redecode {

class FedStream final : public kj::AsyncInputStream {
 public:
  void feed(std::string_view bytes) {
    if (ended_) return;
    waiting_ += bytes;
    if (strip_interim_) strip_interim();
    serve();
  }
  void end() {
    ended_ = true;
    strip_interim_ = false;
    serve();
  }
  bool ended() const { return ended_; }
  // From the next message on, an interim answer ("100 Continue") before the real one is left out:
  // kj's parser would take what follows it for its body.
  void expect_interim() { strip_interim_ = true; }
  uint64_t waiting_bytes() const { return waiting_.size() - taken_; }

  kj::Promise<size_t> tryRead(void* buffer, size_t min_bytes, size_t max_bytes) override {
    if (ready(min_bytes)) return take(buffer, max_bytes);
    auto pair = kj::newPromiseAndFulfiller<size_t>();
    read_ = {buffer, min_bytes, max_bytes, kj::mv(pair.fulfiller)};
    return kj::mv(pair.promise);
  }

 private:
  struct Read {
    void* buffer = nullptr;
    size_t min_bytes = 0, max_bytes = 0;
    kj::Own<kj::PromiseFulfiller<size_t>> done;
  };

  bool ready(size_t min_bytes) const {
    return ended_ || (!strip_interim_ && waiting_bytes() >= min_bytes);
  }

  size_t take(void* buffer, size_t max_bytes) {
    const size_t count = std::min<size_t>(max_bytes, waiting_bytes());
    std::memcpy(buffer, waiting_.data() + taken_, count);
    taken_ += count;
    if (taken_ == waiting_.size()) {
      waiting_.clear();
      taken_ = 0;
    }
    return count;
  }

  void serve() {
    if (read_.done.get() == nullptr || !ready(read_.min_bytes)) return;
    Read read = kj::mv(read_);
    read_ = {};
    if (read.done->isWaiting()) read.done->fulfill(take(read.buffer, read.max_bytes));
  }

  // Any number of "HTTP/1.1 1xx ...\r\n...\r\n\r\n", once their ends are there.
  void strip_interim() {
    for (;;) {
      constexpr size_t kShortest = 10;  // up to the status' first digit
      const std::string_view rest = std::string_view(waiting_).substr(taken_);
      if (rest.size() < kShortest) return;
      if (!rest.starts_with("HTTP/1.") || rest[kShortest - 1] != '1') break;
      const size_t end = rest.find("\r\n\r\n");
      if (end == std::string_view::npos) return;
      waiting_.erase(taken_, end + 4);
    }
    strip_interim_ = false;
  }

  std::string waiting_;
  size_t taken_ = 0;
  bool ended_ = false;
  bool strip_interim_ = false;
  Read read_;
};

}  // namespace redecode
