#include "traces/trace_set_reader.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "traces/container.h"
#include "traces/error.h"
#include "traces/json_writer.h"

namespace redecode {
namespace {

constexpr size_t kNumberDigits = 8;
constexpr const char* kManifestName = "manifest.json";

// The number of a file named 00000012.rdt; false for other names.
bool number_of(const std::string& name, uint32_t& number) {
  if (name.size() != kNumberDigits + 4 || !name.ends_with(".rdt")) return false;
  number = 0;
  for (size_t i = 0; i < kNumberDigits; ++i) {
    if (name[i] < '0' || name[i] > '9') return false;
    number = number * 10 + static_cast<uint32_t>(name[i] - '0');
  }
  return true;
}

std::vector<SetFile> list_files(const std::filesystem::path& folder) {
  std::vector<SetFile> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    SetFile file;
    file.name = entry.path().filename().string();
    if (number_of(file.name, file.number)) files.push_back(std::move(file));
  }
  if (error)
    throw Error(error == std::errc::permission_denied ? ErrorCode::environment : ErrorCode::missing,
                "cannot list: " + error.message(), folder.string());
  std::sort(files.begin(), files.end(),
            [](const SetFile& a, const SetFile& b) { return a.number < b.number; });
  return files;
}

// Fills in what the file itself says; returns its set.
std::string look_into(const std::filesystem::path& folder, SetFile& file) {
  TraceReader reader(open_file(folder / file.name));
  const TraceHeader header = reader.header();
  TraceRecord record;
  bool has_step = false;
  while (reader.next(record)) {
    if (!record.step) continue;
    if (!has_step) file.first_step = record.step->index;
    if (!has_step) file.first_us = record.step->time_us;
    has_step = true;
    ++file.steps;
    file.last_us = record.step->time_us;
  }
  file.size_bytes = reader.summary().file_bytes;
  file.end = reader.summary().end;
  return header.place.set.empty() ? reader.id() : header.place.set;
}

}  // namespace

bool is_set_file_name(const std::string& name) {
  uint32_t number = 0;
  return number_of(name, number);
}

bool is_set(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) || path.filename() == kManifestName;
}

Manifest scan_set(const std::filesystem::path& folder) {
  Manifest manifest;
  manifest.files = list_files(folder);
  if (manifest.files.empty())
    throw Error(ErrorCode::missing, "the folder holds no files of a trace set (00000000.rdt ...)",
                folder.string());
  std::set<std::string> sets;
  for (SetFile& file : manifest.files) sets.insert(look_into(folder, file));
  if (sets.size() > 1)
    throw Error(ErrorCode::corrupt,
                "the folder holds files of " + std::to_string(sets.size()) + " trace sets",
                folder.string());
  manifest.set = *sets.begin();
  return manifest;
}

std::string to_json(const Manifest& manifest) {
  JsonWriter json;
  json.begin_object().member("set", manifest.set).key("files").begin_array();
  for (const SetFile& file : manifest.files) {
    json.begin_object().member("name", file.name).member("number", file.number);
    json.member("size_bytes", file.size_bytes).member("first_step", file.first_step);
    json.member("steps", file.steps).member("first_us", file.first_us);
    json.member("last_us", file.last_us).member("clean", file.end == FileEnd::clean);
    json.end_object();
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

SetSource::SetSource(const std::filesystem::path& path) {
  if (!redecode::is_set(path)) {
    first_ = open_file(path);
    return;
  }
  folder_ = std::filesystem::is_directory(path) ? path : path.parent_path();
  if (folder_.empty()) folder_ = ".";
  files_ = list_files(folder_);
  if (files_.empty())
    throw Error(ErrorCode::missing, "the folder holds no files of a trace set (00000000.rdt ...)",
                folder_.string());
}

std::unique_ptr<ByteSource> SetSource::take_first() {
  if (first_) return std::move(first_);
  bool missing = false;
  return take_next(false, missing);
}

std::unique_ptr<ByteSource> SetSource::take_next(bool skip_missing, bool& missing) {
  if (next_ == files_.size()) return nullptr;
  missing = next_ != 0 && files_[next_].number != files_[next_ - 1].number + 1;
  if (missing && !skip_missing)
    throw Error(ErrorCode::missing,
                "file number " + std::to_string(files_[next_ - 1].number + 1) +
                    " of the set is not there; `redecode trace recover` makes a trace of the rest",
                folder_.string());
  return open_file(folder_ / files_[next_++].name);
}

}  // namespace redecode
