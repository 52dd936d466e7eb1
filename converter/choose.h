// Choices and checks before a conversion: defaults, room on the disk, files that are left out.
#pragma once

#include <string>
#include <vector>

#include "converter/arguments.h"
#include "converter/convert/convert.h"

namespace arn::convert {

// Throws ConvertError with advice if `arguments.folder` cannot be converted.
void CheckFolder(const Arguments& arguments);

// Fills in --weights by what a quantised checkpoint stores, or by the model's size, and --output,
// if they are not given. Returns a sentence on what was chosen; "" if nothing was. Reads the
// headers of the checkpoint's files. Throws ConvertError, also if a file with the chosen name
// exists.
std::string ChooseDefaults(const ConvertOptions& options, Arguments* arguments);

// Throws ConvertError if there is no folder for the bundle, or the disk has less room than the
// bundle and the temporary files need.
void CheckRoom(const ConvertOptions& options, const Arguments& arguments);

// Returns a sentence for each file of weights in the folder that is not read, such as a second copy
// in another format.
std::vector<std::string> IgnoredFiles(const std::filesystem::path& folder);

// Returns a line that differs for another version of the program, other arguments, and files of the
// checkpoint or named by the arguments of another size or time of change.
std::string ResumeKey(const Arguments& arguments);

// Returns the table of --list-families.
std::string FamilyTable();

}  // namespace arn::convert
