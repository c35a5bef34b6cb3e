// Tables of information_schema: what the engine has on the device, who has locked what, who waits for whom.
#pragma once

#include "server.h"

namespace esker {

// For the plugins that bring the tables.
int init_files(void *schema);
int init_levels(void *schema);
int init_transactions(void *schema);
int init_locks(void *schema);
int init_deadlocks(void *schema);

}  // namespace esker
