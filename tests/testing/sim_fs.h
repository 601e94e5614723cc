/// The `sim:` file system: tier::FileSystem on a SimDisk, which loses power on request (sim_disk.h is the manual).
///
/// Shape       a FileSystem and its Files are one process's view: they die with its power cut or kill, the disk lives
///             on.
/// Invariants  fs.h's F1 to F5. (M1) With a SimRuntime every call is a point where other fibers may run, before it and
///             after, and a long write is carried out in pieces of whole sectors with others between them. (M2) A sync
///             covers what was complete when it began, though it takes time.
/// Modes       buffered, write-through (a write is durable when it returns), direct and both (alignment enforced);
///             mapped with Capability::kMapping, else it falls back to buffered. With Capability::kAsync, start()
///             leaves operations in flight, which poll() completes in a seeded order.
/// Not here    short transfers and EINTR: a File hides them (F2). O_DIRECT beside the cache is coherent.
#pragma once

#include <memory>
#include <string_view>

#include "testing/sim_disk.h"
#include "testing/sim_runtime.h"
#include "tier/fs.h"

namespace tier::testing {

/// A view of the disk for a process that starts now. Without a SimRuntime calls take no time and yield to nobody; with
/// one, view and files are called only while it lives (they may be destroyed later).
std::shared_ptr<FileSystem> sim_fs(std::shared_ptr<SimDisk> disk, SimRuntime* sim = nullptr);

/// Makes `sim:name` known to open_file_system(): the disk of that name, made with default options when it is missing.
/// FileSystemOptions::runtime may be a SimRuntime's; quota sets the capacity. Idempotent.
void register_sim_file_system();
/// The disk behind `sim:name`, or nullptr.
std::shared_ptr<SimDisk> sim_disk(std::string_view name);
/// Puts a disk behind `sim:name`; nullptr takes the name away.
void set_sim_disk(std::string_view name, std::shared_ptr<SimDisk> disk);

}  // namespace tier::testing
