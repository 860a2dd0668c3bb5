// Compiled artifacts on disk, shared by processes of one user.
//
// The folder is $WEFT_CACHE_DIR, else weft/ under $XDG_CACHE_HOME or ~/.cache; it must belong to this user and be
// closed to others, because its contents are run, and so must those above it (docs/trust.md). A file holds the SHA-256
// of what follows, the full key, and the artifact; one that does not check out is ignored and replaced. Writers rename
// a finished file into place. When all entries take more than $WEFT_CACHE_BYTES (4 GiB), those are removed that were
// not used for the longest time. Where nothing can be written, one warning is printed and everything works without.
// WEFT_CACHE_DIR=off turns it off.
#ifndef WEFT_DRIVER_DISK_CACHE_H_
#define WEFT_DRIVER_DISK_CACHE_H_

#include <optional>
#include <string>

#include "lowering/abi/artifact.h"

namespace weft {

// `key`: everything that the artifact depends on. Keys are compared in full, not by their hash only.
std::optional<Artifact> ReadCachedArtifact(const std::string& key);
void WriteCachedArtifact(const std::string& key, const Artifact& artifact);

}  // namespace weft
#endif  // WEFT_DRIVER_DISK_CACHE_H_
