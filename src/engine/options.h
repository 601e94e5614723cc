/// The checks of EngineOptions: each failure names the field, its value and its range.
#pragma once

#include "tier/engine.h"

namespace tier {

Status check_engine_options(const EngineOptions& options);

}  // namespace tier
