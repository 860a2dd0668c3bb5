// Whole files at once, with errors that name the file. "-" is standard input or output.
#ifndef WEFT_DRIVER_FILES_FILES_H_
#define WEFT_DRIVER_FILES_FILES_H_

#include <string>

namespace weft {

std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& bytes);

}  // namespace weft
#endif  // WEFT_DRIVER_FILES_FILES_H_
