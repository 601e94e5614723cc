/// The log's owner data in the engine's manifest: where the records that are kept begin.
#pragma once

#include "log/format.h"
#include "log/read_state.h"
#include "tier/engine.h"

namespace tier {

/// Reads the first position; {0, 0} for a store whose creation got no further. kCorruption, kUnsupported.
Status parse_manifest(const Engine& engine, LogPosition& first);
/// Durable when it returns.
Status store_manifest(Engine& engine, const LogPosition& first);

}  // namespace tier
