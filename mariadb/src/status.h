// What the server shows of the engine: status variables and SHOW ENGINE ESKER STATUS.
#pragma once

#include "server.h"

namespace esker {

extern st_mysql_show_var status_variables[];

bool show_engine_status(handlerton *hton, THD *thd, stat_print_fn *print, enum ha_stat_type kind);

}  // namespace esker
