// traces/convert/export_logits.h - the logits of a trace or run as NumPy arrays.
#pragma once
#include <filesystem>

#include "traces/convert/byte_sink.h"
#include "traces/convert/export_result.h"

namespace redecode {

// One array: logits [rows, vocab] float32, rows in file order. Two passes over the file.
// Errors: as TraceReader; usage (no row has its logits: the message says how to record them);
// corrupt (rows of different lengths).
ExportResult export_npy(const std::filesystem::path& path, ByteSink& out);

// An archive of steps.npy [rows] uint64, requests.npy and positions.npy [rows] uint32, tokens.npy
// [rows] int32 (as sampled) and logits.npy as above, for numpy.load. Six passes over the file: one
// for sizes and checksums, one an array. Errors: as export_npy.
ExportResult export_npz(const std::filesystem::path& path, ByteSink& out);

}  // namespace redecode
