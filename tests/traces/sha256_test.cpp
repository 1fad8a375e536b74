#include <catch2/catch_test_macros.hpp>

#include "tests/traces/temp_folder.h"
#include "traces/error.h"
#include "traces/sha256.h"

namespace redecode {
namespace {

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace

TEST_CASE("SHA-256 gives the digests of FIPS 180-4") {
  CHECK(sha256_hex({}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex(bytes_of("abc")) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex(bytes_of(std::string(1000000, 'a'))) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256 of a file is that of its bytes, however they were added") {
  const test::TempFolder folder;
  std::vector<uint8_t> bytes((size_t{1} << 20) + 12345);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 31 + i / 251);
  test::write_bytes(folder / "weights", bytes);
  CHECK(sha256_of_file(folder / "weights") == sha256_hex(bytes));
  Sha256 parts;
  const std::span<const uint8_t> all(bytes);
  parts.add(all.first(777));
  parts.add(all.subspan(777));
  CHECK(parts.hex() == sha256_hex(bytes));
  bytes[5] ^= 1;
  CHECK(sha256_hex(bytes) != sha256_of_file(folder / "weights"));
  try {
    sha256_of_file(folder / "none");
    FAIL("a missing file has no digest");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::missing);
  }
}

}  // namespace redecode
