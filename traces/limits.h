// traces/limits.h - caps on everything a file may declare, checked before memory is taken, in
// release.
//
// Writers keep the same caps, so that what was written can be read. A declared size above its cap
// is Error limit.
#pragma once
#include <cstdint>
#include <string>

#include "traces/error.h"

namespace redecode::limits {

inline constexpr uint64_t kChunkBytes = uint64_t{16} << 20;   // uncompressed payload of a chunk
inline constexpr uint64_t kStoredBytes = kChunkBytes + 4096;  // compressed; raw blocks add a little
inline constexpr uint64_t kCompressionRatio = 1024;           // uncompressed to stored
inline constexpr uint32_t kRecordsPerChunk = 1u << 20;
inline constexpr uint32_t kHeaderBytes = 4096;   // of one chunk header
inline constexpr int kNesting = 16;              // pointers deep in a message
inline constexpr uint64_t kTraversalFactor = 4;  // words read to words held

inline constexpr uint64_t kRows = 65536;  // in a step; also arrivals, departures, output rows
inline constexpr uint64_t kPageChanges = 1u << 20;
inline constexpr uint64_t kBlockSteps = 65536;  // of a block of columns
inline constexpr uint64_t kBlockRows = 1u << 20;
inline constexpr uint64_t kRunning = 1u << 20;      // requests of a keyframe
inline constexpr uint64_t kBlockHashes = 1u << 20;  // of an exchange
inline constexpr uint64_t kChoices = 4096;
inline constexpr uint64_t kVocab = 1u << 20;
inline constexpr uint64_t kTopLogits = 4096;   // in one row
inline constexpr uint64_t kProbes = 1u << 20;  // in one step
inline constexpr uint64_t kBuckets = 4096;
inline constexpr uint64_t kListedTexts = 4096;    // environment, inject
inline constexpr uint64_t kNameBytes = 4096;      // op, buffer and defect names, mode words
inline constexpr uint64_t kTextBytes = 1u << 20;  // order strings, workload, advice

inline constexpr uint64_t kCommands = 1u << 20;  // in a program
inline constexpr uint64_t kRegions = 1u << 22;
inline constexpr uint64_t kBuffers = 1u << 20;
inline constexpr uint64_t kNames = 1u << 16;
inline constexpr uint64_t kBufferBytes = uint64_t{1} << 50;

inline constexpr uint64_t kImportFileBytes = uint64_t{1} << 30;
inline constexpr uint64_t kImportLineBytes = uint64_t{1} << 20;
inline constexpr uint64_t kImportRows = uint64_t{1} << 24;
inline constexpr uint64_t kImportHashIds = uint64_t{1} << 16;  // in one row
inline constexpr uint64_t kImportTokens = uint64_t{1} << 24;   // prompt or output of one row

// Throws Error limit if count is above cap; `what` is plural: "rows of a step".
inline void check(uint64_t count, uint64_t cap, const char* what) {
  if (count > cap) {
    throw Error(ErrorCode::limit, std::to_string(count) + " " + what + ", at most " +
                                      std::to_string(cap) + " allowed");
  }
}

}  // namespace redecode::limits
