// Reads an assistant: a small checkpoint that guesses for a decoder, with the decoder's keys and
// values (Gemma 4).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "converter/family/decoder_spec.h"

namespace arn::convert {

// Returns the layers of the assistant in `folder`, with its checkpoint, as a head of `decoder`.
// Throws ConvertError if it is none, or one of another decoder.
std::shared_ptr<const DecoderSpec> ReadAssistant(const std::filesystem::path& folder,
                                                 const DecoderSpec& decoder,
                                                 const std::vector<std::string>& ignored_keys,
                                                 std::vector<std::string>* warnings);

}  // namespace arn::convert
