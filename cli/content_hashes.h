// cli/content_hashes.h - the SHA-256 names of weights, tokenizer and configuration in a header.
//
// A file is named by its bytes, as `sha256sum` prints them. What no file holds (weights made from a
// seed, the byte tokenizer, a configuration) is named by a description with the digest of its
// content, so that equal content has equal names however it was asked for.
#pragma once
#include <string>

#include "traces/header.h"

namespace redecode {

// Fills the three of `identity`, whose digests must be those of the weights that were loaded.
// `tokenizer`: as make_text_codec; where its file is not there, its name stays empty. Errors:
// missing, environment (a file that cannot be read). Cost: one read of the files, streaming.
void add_content_hashes(const std::string& model, const std::string& tokenizer,
                        ModelIdentity& identity);

}  // namespace redecode
