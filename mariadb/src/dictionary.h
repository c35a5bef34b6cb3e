// The data dictionary: which tables there are, and the numbers of their indexes, which all keys begin with. It is kept in memory, and
// changed in the engine together with the rows that a change of it removes.
//
// Records of the family `dictionary`:
//   't' table            -> version (1 byte), flags (1 byte; 1: temporary, 2: rows expire), the seconds after which they do if they do, length of the
//                           definition's version, that version; how often columns were added, and for each time how many there were, how
//                           many came, of each the length of its value, value; for each index its number (4 bytes), length of its name, name
//   'b' index number     -> nothing: it is being built, or its building was cut short
//   'n'                  -> the largest index number that was given out (4 bytes)
//   'a' index number     -> the next value of the auto_increment column of the table that this is the first index of (8 bytes)
// Numbers of so many bytes are big-endian.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "server.h"

namespace esker {

struct IndexEntry {
  uint32_t number;
  Bytes name;
  // The sequence number of the database when it came into being; 0 for one that this server has found. Not stored: a snapshot of before,
  // which would see nothing in it, does not outlive the server.
  uint64_t since = 0;
};

// Columns that were added in place, behind those that rows had before.
struct AddedColumns {
  uint64_t columns_before;         // in rows
  std::vector<Bytes> values;       // of each in rows of before: 1 for null, or 0 and the value as rows have it
};

struct TableEntry {
  bool is_temporary = false;
  // After which rows expire; 0: they don't.
  uint64_t ttl_seconds = 0;
  // What the server calls the definition that an ALTER TABLE in place has made; empty before the first one.
  Bytes definition;
  std::vector<AddedColumns> added;
  // In the order of the table's keys; behind them the hidden primary key, whose name is empty, if the table has none of its own.
  std::vector<IndexEntry> indexes;
};

using TablePointer = std::shared_ptr<const TableEntry>;

// Reads the dictionary, and removes temporary tables of an earlier server. True on failure, which is logged.
bool load_dictionary();
void forget_dictionary();

// The table of this name, such as `./db/table`; null if there is none.
TablePointer find_table(const char *name);

// The table and the index that has this number; empty if none has it.
void name_index(uint32_t number, Bytes &table, Bytes &index);

// These are durable when they return; they return the server's codes.
int create_table(const char *name, TableEntry table, uint64_t auto_increment);
int drop_table(const char *name);
int rename_table(const char *from, const char *to);
// Gives all indexes new numbers, and removes what was under the old ones.
int truncate_table(const char *name);

// What comes next in a table; 0: not read yet. The server may close a table while transactions are open that have been given numbers, so
// handlers find these here.
struct Counters {
  std::mutex mutex;
  uint64_t auto_increment = 0;
  uint64_t row_number = 0;
};

// Those of the table that this is the first index of.
std::shared_ptr<Counters> counters_of(uint32_t index_number);

// Gives numbers to the indexes that have none, and remembers that they are being built. If nothing else comes of it, what is under these
// numbers is removed: by `end_build`, or when the server starts.
int begin_build(TableEntry &table);
int end_build(const std::vector<uint32_t> &numbers);
// Makes an altered table the one of this name; `built` are the places of its new indexes. Indexes that it has not any more are
// removed. `auto_increment`: what comes next; 0: the table has no such column.
int alter_table(const char *name, TableEntry table, const std::vector<uint> &built, uint64_t auto_increment);

// The auto_increment value that comes next; 1 if none was used.
int read_auto_increment(uint32_t index_number, uint64_t &next);
// Adds to a transaction that `next` comes next, unless something larger does already.
esker_error *merge_auto_increment(esker_transaction *transaction, uint32_t index_number, uint64_t next);
int set_auto_increment(uint32_t index_number, uint64_t next);

}  // namespace esker
