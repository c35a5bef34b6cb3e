// System variables.
#pragma once

#include "server.h"

namespace esker {

extern st_mysql_sys_var *system_variables[];

// Of the server, read when it starts.
struct Startup {
  ulonglong memory_bytes;      // memtables, block cache, indexes and filters together
  const char *settings;        // `name=value;name=value`, as docs/tuning.md has them
};
Startup startup_variables();
// The folder of the database, from the server's data directory.
const char *data_folder();

enum FlushAtCommit : ulong { kFlushNever = 0, kFlushAlways = 1, kFlushToSystem = 2 };
FlushAtCommit flush_at_commit();

// Of a connection.
ulonglong lock_wait_timeout_us(THD *thd);
bool bulk_load(THD *thd);

}  // namespace esker
