// The database of this server: one, with a family for rows and one for the dictionary.
#pragma once

#include "server.h"

namespace esker {

extern handlerton *engine_handlerton;
extern esker_db *db;
extern esker_family *rows;          // rows and index entries, by index number and key
extern esker_family *dictionary_family;

// Whether there were prepared transactions when the database was opened.
extern bool began_with_prepared;

// True on failure, which is logged.
bool open_database();
void close_database();

// Of changes of the dictionary: they survive a power cut, and no transaction is in their way, as the server lets none use the table.
extern esker_write_options *synced_unlocked;

}  // namespace esker
