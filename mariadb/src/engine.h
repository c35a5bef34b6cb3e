// The database of this server: one, with a family for rows and one for the dictionary.
#pragma once

#include "server.h"

namespace esker {

extern handlerton *engine_handlerton;
extern esker_db *db;
extern esker_family *rows;          // rows and index entries, by index number and key
extern esker_family *dictionary_family;

// True on failure, which is logged.
bool open_database();
void close_database();

// Options of writes that must survive a power cut, and of those that no transaction can be in the way of.
extern esker_write_options *synced;
extern esker_write_options *synced_unlocked;

}  // namespace esker
