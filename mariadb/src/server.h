// The server's headers, in the one order in which they can be included, and the engine's.
#pragma once

#define MYSQL_SERVER 1
// The server's own macros and unused parameters are not this plugin's to mend.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wdeprecated-copy"
#include <my_global.h>
#include <mysql/plugin.h>
#include <sql_class.h>
#include <sql_table.h>
#include <handler.h>
#include <key.h>
#include <table.h>
#include <field.h>
#include <log.h>
#pragma GCC diagnostic pop

#include <esker.h>

#include "bytes.h"

namespace esker {

inline esker_slice slice(View bytes) { return {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()}; }
inline View view(esker_slice bytes) { return {reinterpret_cast<const char *>(bytes.data), bytes.len}; }

}  // namespace esker
