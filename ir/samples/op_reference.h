// The reference of all operations, as Markdown, generated from the registry: docs/operations.md is this text, and
// `weft ops` prints it.
#ifndef WEFT_IR_SAMPLES_OP_REFERENCE_H_
#define WEFT_IR_SAMPLES_OP_REFERENCE_H_

#include <string>

namespace weft {

std::string OperationReference();

}  // namespace weft
#endif  // WEFT_IR_SAMPLES_OP_REFERENCE_H_
