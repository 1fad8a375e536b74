#include "traces/convert/export_logits.h"

#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "traces/convert/crc32.h"
#include "traces/convert/npy.h"
#include "traces/convert/record_stream.h"
#include "traces/convert/zip_writer.h"
#include "traces/error.h"
#include "traces/little_endian.h"
#include "traces/thousands.h"

namespace redecode {
namespace {

static_assert(std::endian::native == std::endian::little, "logits are copied as they lie");

template <class T>
void append(std::string& out, T value) {
  uint8_t bytes[sizeof(T)];
  store_le(bytes, value);
  out.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

struct Column {
  std::string_view name;
  std::string_view type;
  uint32_t element_bytes;
  bool of_vocab;  // a row of `vocab` elements, not one
  void (*put)(const StepOutput&, const RowOutput&, std::string&);
};

constexpr std::array<Column, 5> kColumns = {{
    {"steps.npy", "<u8", 8, false,
     [](const StepOutput& o, const RowOutput&, std::string& out) { append(out, o.step); }},
    {"requests.npy", "<u4", 4, false,
     [](const StepOutput&, const RowOutput& r, std::string& out) { append(out, r.request); }},
    {"positions.npy", "<u4", 4, false,
     [](const StepOutput&, const RowOutput& r, std::string& out) { append(out, r.position); }},
    {"tokens.npy", "<i4", 4, false,
     [](const StepOutput&, const RowOutput& r, std::string& out) {
       append(out, static_cast<uint32_t>(r.token));
     }},
    {"logits.npy", "<f4", 4, true,
     [](const StepOutput&, const RowOutput& r, std::string& out) {
       const auto* bytes = reinterpret_cast<const char*>(r.logits.data());
       out.append(bytes, r.logits.size() * sizeof(float));
     }},
}};
constexpr const Column& kLogits = kColumns.back();

struct Extent {
  uint64_t rows = 0, vocab = 0, rows_without = 0;
  std::array<uint32_t, kColumns.size()> crcs{};  // of the data, the head left out
  FileEnd end = FileEnd::clean;
};

template <class Use>
FileEnd for_each_row(const std::filesystem::path& path, Use&& use) {
  RecordStream stream(path);
  AnyRecord record;
  while (stream.next(record))
    if (record.output)
      for (const RowOutput& row : record.output->rows) use(*record.output, row);
  return stream.summary().end;
}

Extent measure(const std::filesystem::path& path, std::span<const Column> columns) {
  Extent extent;
  std::string bytes;
  extent.end = for_each_row(path, [&](const StepOutput& output, const RowOutput& row) {
    if (row.logits.empty()) {
      ++extent.rows_without;
      return;
    }
    if (extent.rows == 0) extent.vocab = row.logits.size();
    if (row.logits.size() != extent.vocab)
      throw Error(ErrorCode::corrupt,
                  "a row has " + std::to_string(row.logits.size()) + " logits, those before it " +
                      std::to_string(extent.vocab),
                  path.string() + ": step " + std::to_string(output.step));
    ++extent.rows;
    for (size_t i = 0; i < columns.size(); ++i) {
      bytes.clear();
      columns[i].put(output, row, bytes);
      extent.crcs[i] = crc32(bytes.data(), bytes.size(), extent.crcs[i]);
    }
  });
  if (extent.rows == 0)
    throw Error(ErrorCode::usage,
                "no output has its logits: make the run again with --full-logits, as in "
                "`redecode replay TRACE --full-logits -o RUN.rdr`, and export that",
                path.string());
  return extent;
}

std::string head_of(const Column& column, const Extent& extent) {
  const std::array<uint64_t, 2> shape = {extent.rows, extent.vocab};
  return npy_header(column.type, std::span(shape).first(column.of_vocab ? 2 : 1));
}

template <class Write>
void write_data(const std::filesystem::path& path, const Column& column, const Extent& extent,
                Write&& write) {
  std::string bytes;
  uint64_t rows = 0;
  for_each_row(path, [&](const StepOutput& output, const RowOutput& row) {
    if (row.logits.empty()) return;
    if (++rows > extent.rows || row.logits.size() != extent.vocab)
      throw Error(ErrorCode::corrupt, "the file changed while it was read", path.string());
    bytes.clear();
    column.put(output, row, bytes);
    write(bytes);
  });
  if (rows != extent.rows)
    throw Error(ErrorCode::corrupt, "the file changed while it was read", path.string());
}

ExportResult result_of(const Extent& extent) {
  ExportResult result{
      .items = extent.rows, .unit = "rows of logits", .end = extent.end, .notices = {}};
  if (extent.rows_without != 0)
    result.notices.push_back(with_thousands(extent.rows_without) +
                             " rows without logits are left out");
  return result;
}

}  // namespace

ExportResult export_npy(const std::filesystem::path& path, ByteSink& out) {
  const Extent extent = measure(path, {});
  out.write(head_of(kLogits, extent));
  write_data(path, kLogits, extent, [&](const std::string& bytes) { out.write(bytes); });
  return result_of(extent);
}

ExportResult export_npz(const std::filesystem::path& path, ByteSink& out) {
  const Extent extent = measure(path, kColumns);
  ZipWriter zip(out);
  for (size_t i = 0; i < kColumns.size(); ++i) {
    const Column& column = kColumns[i];
    const std::string head = head_of(column, extent);
    const uint64_t data_bytes =
        extent.rows * column.element_bytes * (column.of_vocab ? extent.vocab : 1);
    const uint32_t crc = crc32_joined(crc32(head.data(), head.size()), extent.crcs[i], data_bytes);
    zip.begin(column.name, head.size() + data_bytes, crc);
    zip.write(head);
    write_data(path, column, extent, [&](const std::string& bytes) { zip.write(bytes); });
  }
  zip.close();
  return result_of(extent);
}

}  // namespace redecode
