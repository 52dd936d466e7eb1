// Files of saved conversations, and their folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace arn::serve {

// Creates a folder that its user alone can read, and those above it, so that a loss of power does
// not take it away with a file that was saved in it. Throws tool::Error if it is not there then.
void MakeStateFolder(const std::filesystem::path& folder);
// Returns the tokens of a file that holds the state of one sequence (docs/state-format.md); empty:
// it does not, or has more than max_tokens. What it says is not to be trusted: whoever restores it
// checks the rest.
std::vector<int32_t> ReadStateIds(const std::filesystem::path& path, uint32_t max_tokens);
// Returns the bytes of a file; null: it cannot be read.
std::shared_ptr<const std::vector<char>> ReadStateFile(const std::filesystem::path& path);
// Reads a file, if it is there, and keeps nothing.
void ReadStateThrough(const std::filesystem::path& path);
// Writes a file that is whole or not there, whenever the process or the machine stops. Returns why
// it could not; "": it could.
std::string WriteStateFile(const std::filesystem::path& path, const std::vector<char>& bytes);

}  // namespace arn::serve
