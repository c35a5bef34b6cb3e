/* Esker's C interface. Made by scripts/header.sh; not to be changed by hand. docs/capi.md begins where one begins.
 *
 * Errors     A call that can fail returns null, or an error: a kind that says what to do next, a message in a line, and where it
 *            happened. Whoever gets an error frees it (esker_error_free). After an error nothing was changed, places for numbers are as
 *            they were, places for objects are null. A key that is not there is no error.
 * Objects    What a create, open or begin function gives is freed by the free function of its kind (of a database: esker_db_close),
 *            in any order. Null may be freed. What calls take as `const` they read or share for the call; nothing of it has to stay
 *            afterwards, unless a function says so.
 * Options    Objects with defaults, set by functions, copied by the calls that take them. Where a call takes options, null means the
 *            defaults; where it takes a family, null means the family `default`.
 * Bytes      esker_slice is a pointer with a length. Keys and values are any bytes; names, settings and paths are strings with a NUL.
 *            An argument is read during the call only. What a function gives belongs to the object that it came from, for as long as
 *            that function says.
 * Lists      A call gives a list; its items function gives an array and how long it is; both stay until the list is freed.
 * Threads    A database, families, snapshots, environments and lists may be used by several threads at once. All other objects are for one thread
 *            at a time; which one does not matter.
 * Callbacks  May be called from any thread, must not throw or jump out, and must not call back into the database they serve; those of a
 *            listener may, but for esker_db_wait_for_listeners.
 * Misuse     Null where there must be an object, a length without data, bad UTF-8, a number that means nothing: ESKER_INVALID_ARGUMENT.
 *            A defect of the library becomes an error of kind ESKER_BUG, never an exception.
 *            Undefined are pointers to what was freed, or never was an object, and an object for one thread used by two at once.
 */


#ifndef ESKER_H
#define ESKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define ESKER_MUST_USE __attribute__((warn_unused_result))
#else
#define ESKER_MUST_USE
#endif


// In the place of a number that stands for a word: one that this version of the header has no name for.
#define ESKER_UNNAMED 4294967295

// A time limit: as the database's settings say.
#define ESKER_TIMEOUT_DEFAULT 18446744073709551615ull

// A time limit: none.
#define ESKER_TIMEOUT_NEVER 18446744073709551614ull

// Mutations of one or several families, used again and again: a commit empties it and keeps its memory. For one thread at a time.
typedef struct esker_batch esker_batch;

// Bytes that the library owns. A call that fills one empties it before, so that it can be used again and again.
typedef struct esker_buffer esker_buffer;

// How a checkpoint is made.
typedef struct esker_checkpoint_options esker_checkpoint_options;

// Where a collector puts what its table is to say.
typedef struct esker_collected esker_collected;

// Counters, which only grow while a database is open.
typedef struct esker_counters esker_counters;

// An open database, with transactions or without. All calls may be made from any thread.
typedef struct esker_db esker_db;

// Deadlocks.
typedef struct esker_deadlocks esker_deadlocks;

// Files, time, randomness and threads. Several databases can share one.
typedef struct esker_env esker_env;

// An error. Null is success. Whoever gets one frees it.
typedef struct esker_error esker_error;

// A handle on a column family, for any thread. Where a call takes one, null means the family `default`. It may be freed at any
// time, and outlive the family's drop: reads go on then, writes fail.
typedef struct esker_family esker_family;

// Settings of a column family, with code of the program's own.
typedef struct esker_family_options esker_family_options;

// Figures of all families.
typedef struct esker_family_stats_list esker_family_stats_list;

// How long things took.
typedef struct esker_histograms esker_histograms;

// How a family is imported.
typedef struct esker_import_options esker_import_options;

// Tables to ingest, for one or several families.
typedef struct esker_ingestion esker_ingestion;

// Ends waits for locks of a transaction, from any thread: for a program whose user has given a query up.
typedef struct esker_interrupter esker_interrupter;

// A cursor over the rows of a column family as they were when it was made. Not positioned at first. For one thread at a time.
//
// It keeps the files alive that it reads. It may outlive its database's handle, and its transaction; it can then be moved over what it
// pinned, and not be positioned anew.
typedef struct esker_iterator esker_iterator;

// The levels of a family, from the top.
typedef struct esker_levels esker_levels;

// Locks that are held.
typedef struct esker_locks esker_locks;

// Names.
typedef struct esker_names esker_names;

// What a database is opened with.
typedef struct esker_options esker_options;

// Batches that are prepared and neither committed nor rolled back. It keeps their mutations, also when they are committed meanwhile.
typedef struct esker_prepared_list esker_prepared_list;

// Transactions that are prepared.
typedef struct esker_prepared_transactions esker_prepared_transactions;

// Settings of reads, used again and again. Where a call takes some, null means the defaults.
typedef struct esker_read_options esker_read_options;

// A recovery's report.
typedef struct esker_recovery_report esker_recovery_report;

// How a database is repaired.
typedef struct esker_repair_options esker_repair_options;

// A repair.
typedef struct esker_repaired esker_repaired;

// Transactions that run.
typedef struct esker_running_list esker_running_list;

// The database as it was at one moment. What it sees is kept until it and all that share it are freed.
typedef struct esker_snapshot esker_snapshot;

// Writes a table, row by row in ascending order of keys. For one thread at a time.
typedef struct esker_table_writer esker_table_writer;

// Tables of a family.
typedef struct esker_tables esker_tables;

// Reads and writes that others see together or not at all. Used again and again, by `esker_transaction_restart`. For one thread at
// a time. Families that are given to it must be of its database.
//
// A call that fails has changed nothing: what it has locked it gives back, and the transaction goes on. After `ESKER_TIMED_OUT` and
// `ESKER_LOCK_LIMIT` the call may be tried again, after `ESKER_INTERRUPTED` too, if that was not meant for good; after `ESKER_DEADLOCK`
// others wait for locks of this one, so roll back, to a save point at least; after `ESKER_CONFLICT` roll back and run it again.
typedef struct esker_transaction esker_transaction;

// Settings of a transaction, used again and again. Where a call takes some, null means the defaults.
typedef struct esker_transaction_options esker_transaction_options;

// Settings of a database of transactions.
typedef struct esker_transaction_settings esker_transaction_settings;

// Holds the value that a get found, in the block cache where it is there. Used again and again: each get lets go of what it held.
// For one thread at a time.
typedef struct esker_value esker_value;

// Holds the values that a multi-get found. Used again and again. For one thread at a time.
typedef struct esker_values esker_values;

// How a database is verified.
typedef struct esker_verify_options esker_verify_options;

// Requests that wait for a lock.
typedef struct esker_waits esker_waits;

// Settings of writes, used again and again. Where a call takes some, null means the defaults.
typedef struct esker_write_options esker_write_options;

// What the caller can do about an error.
typedef uint32_t esker_error_kind;

// Bytes that somebody else owns. As an argument they are read during the call only; null with length 0 is empty, or means
// "none" where a function says so. Where a function gives one, it says how long the bytes stay.
typedef struct {
  // The first byte.
  const uint8_t *data;
  // How many there are.
  size_t len;
} esker_slice;

// An order of keys. Its functions are called by several threads at once, and must not throw. It must be total and never change,
// and keys that compare as equal must be the same bytes.
typedef struct {
  // Given to the functions.
  void *state;
  // Called once with `state` when nothing uses the order any more. May be null.
  void (*destroy)(void *state);
  // Stored with the database: opening with another name is refused. Copied.
  const char *name;
  // Below, equal to or above 0 as `a` comes before, is, or follows `b`.
  int (*compare)(void *state, esker_slice a, esker_slice b);
  // May set `key` (on entry some key) to a shorter one that does not precede it and comes before `limit`. May be null.
  void (*shorten_separator)(void *state, esker_buffer *key, esker_slice limit);
  // May set `key` (on entry some key) to a shorter one that does not precede it. May be null.
  void (*shorten_successor)(void *state, esker_buffer *key);
} esker_comparator;

// Folds operands into values. Its functions are called by several threads at once, and must not throw; they must be
// deterministic, and independent of how operands are grouped.
typedef struct {
  // Given to the functions.
  void *state;
  // Called once with `state` when nothing uses the operator any more. May be null.
  void (*destroy)(void *state);
  // Stored with the database: opening with another name is refused. Copied.
  const char *name;
  // Puts into `value`, which is empty, what comes of applying the operands (the oldest first) to `base` (data is null: the
  // key was absent or deleted). False: they can't be applied, and reads of the key fail with `ESKER_CORRUPTION`.
  bool (*full_merge)(void *state,
                     esker_slice key,
                     esker_slice base,
                     const esker_slice *operands,
                     size_t count,
                     esker_buffer *value);
  // Puts into `operand`, which is empty, one that has the effect of the operands one after the other. False: there is none. May
  // be null.
  bool (*partial_merge)(void *state,
                        esker_slice key,
                        const esker_slice *operands,
                        size_t count,
                        esker_buffer *operand);
} esker_merge_operator;

// Why rows are written anew.
typedef uint32_t esker_rewrite_cause;

// What a filter is made for.
typedef struct {
  // The level that is written.
  size_t level;
  // Why.
  esker_rewrite_cause cause;
  // Whether nothing older exists for any key of the job: what is removed leaves no tombstone.
  bool bottommost;
} esker_filter_context;

// What becomes of a row.
typedef uint32_t esker_decision;

// Decides on rows while they are rewritten. It sees each key once: the newest value. What is deleted it does not see, nor what a
// snapshot sees that was alive when the job began. The functions must not throw.
typedef struct {
  // Given to `create`.
  void *state;
  // Called once with `state` when nothing uses the filter any more. May be null.
  void (*destroy)(void *state);
  // Makes a filter for a job, or for a key range of a large one; false: every row stays. Called by several threads at once. May be
  // null: `state` is the filter then, and `decide` is called by several threads at once.
  bool (*create)(void *state, const esker_filter_context *context, void **filter);
  // Called with each filter that `create` made. May be null.
  void (*destroy_filter)(void *filter);
  // Decides by the key alone, where it can; what it can't decide it answers by `ESKER_NEED_VALUE`. May be null.
  esker_decision (*decide_by_key)(void *filter, esker_slice key, esker_buffer *out);
  // Decides by key and value, with ascending keys. `out` is empty. An unknown answer keeps the row.
  esker_decision (*decide)(void *filter, esker_slice key, esker_slice value, esker_buffer *out);
  // Whether flushes are filtered, too.
  bool filters_flushes;
} esker_compaction_filter;

// What a row, or a mutation of a batch, is.
typedef uint32_t esker_row_kind;

// A row of a table that is written. Of a key there may be several, the newest first.
typedef struct {
  // The key.
  esker_slice key;
  // The value, operand or end; data is null where the value lies in a blob file. Empty for deletes.
  esker_slice value;
  // When it was written: numbers ascend. 0 where nobody needs to know any more, 1 in tables that are written outside of a database.
  uint64_t sequence;
  // What it is.
  esker_row_kind kind;
} esker_collected_row;

// Gathers what is to be known of tables as they are written. The functions must not throw.
typedef struct {
  // Given to `create`.
  void *state;
  // Called once with `state` when nothing uses the collector any more. May be null.
  void (*destroy)(void *state);
  // Stands, with a dot behind it, before each name that the tables have. Copied.
  const char *name;
  // Makes a collector for a table. Called by several threads at once.
  void *(*create)(void *state);
  // Called with each that `create` made. May be null.
  void (*destroy_collector)(void *collector);
  // Takes a row: point rows in the order of keys, then range deletes.
  void (*add)(void *collector, const esker_collected_row *row);
  // Says what the table is to say, by `esker_collected_add`; at most some KiB.
  void (*finish)(void *collector, esker_collected *collected);
} esker_collector;

// When an event happened.
typedef struct {
  // Events of the database are numbered from 1 on, in the order in which they happened; lost ones have their numbers, too.
  uint64_t number;
  // On a clock that never goes back, in microseconds: for the time between two events.
  uint64_t monotonic_us;
  // Seconds since 1970 UTC.
  uint64_t unix_seconds;
} esker_moment;

// The column family that an event is about.
typedef struct {
  // Its number, which is never used again.
  uint32_t id;
  // Its name.
  esker_slice name;
} esker_event_family;

// A flush begins.
typedef struct {
  // The job's number, which no other job of this opening of the database has.
  uint64_t job;
  // The family.
  esker_event_family family;
  // Memtables that become one table.
  uint64_t memtables;
  // Rows in them.
  uint64_t rows;
  // Bytes of memory that they take.
  uint64_t bytes;
} esker_flush_begun;

// What became of a job.
typedef uint32_t esker_job_outcome;

// What a job wrote.
typedef struct {
  // Tables.
  uint64_t tables;
  // Blob files.
  uint64_t blob_files;
  // Rows in the tables.
  uint64_t rows;
  // Bytes of all files.
  uint64_t bytes;
} esker_job_output;

// A flush has ended.
typedef struct {
  // The job's number.
  uint64_t job;
  // The family.
  esker_event_family family;
  // What became of it.
  esker_job_outcome outcome;
  // Why it failed; null if it did not. Not to be freed.
  const esker_error *error;
  // What it wrote; nothing if it failed.
  esker_job_output written;
  // How long it took, in microseconds.
  uint64_t took_us;
} esker_flush_ended;

// Why a compaction runs.
typedef uint32_t esker_compaction_reason;

// What a compaction is to do.
typedef struct {
  // The job's number.
  uint64_t job;
  // The family.
  esker_event_family family;
  // Why.
  esker_compaction_reason reason;
  // Whether the tables only change their level, and nothing is written.
  bool is_move;
  // The level that gives.
  size_t level_from;
  // The level that takes.
  size_t level_to;
  // Tables that take part, those of the level that takes included.
  uint64_t tables;
  // Rows in them.
  uint64_t rows;
  // Bytes of them.
  uint64_t bytes;
} esker_compaction_input;

// A compaction begins.
typedef struct {
  // What it is to do.
  esker_compaction_input input;
} esker_compaction_begun;

// A compaction has ended.
typedef struct {
  // What it was to do.
  esker_compaction_input input;
  // What became of it.
  esker_job_outcome outcome;
  // Why it failed; null if it did not. Not to be freed.
  const esker_error *error;
  // What it wrote; nothing if it failed or moved its tables.
  esker_job_output written;
  // How long it took, in microseconds.
  uint64_t took_us;
} esker_compaction_ended;

// What a file is.
typedef uint32_t esker_file_kind;

// How a file came into the database.
typedef uint32_t esker_file_cause;

// A file is in force.
typedef struct {
  // The number in its name.
  uint64_t number;
  // What it is.
  esker_file_kind kind;
  // The family.
  esker_event_family family;
  // The level of a table; `SIZE_MAX` for a blob file.
  size_t level;
  // Its length.
  uint64_t bytes;
  // Rows of a table, values in a blob file.
  uint64_t rows;
  // How it came.
  esker_file_cause cause;
  // The number of the job that wrote it; 0 if none did.
  uint64_t job;
} esker_file_created;

// A file was removed: nobody needed it any more, nor read it.
typedef struct {
  // The number in its name.
  uint64_t number;
  // What it was.
  esker_file_kind kind;
  // Its length.
  uint64_t bytes;
} esker_file_deleted;

// A memtable takes no more rows and waits for its flush.
typedef struct {
  // The family.
  esker_event_family family;
  // Rows in it.
  uint64_t rows;
  // Bytes of memory that it takes.
  uint64_t bytes;
} esker_memtable_sealed;

// How writers are let in.
typedef uint32_t esker_write_stall;

// Writers are let in otherwise than before. A write notices it, so that without writes nothing changes.
typedef struct {
  // The family whose debt holds writers back, or whose memtables they wait for; its name has no data where it is the memory of
  // all, or the log, or that there is none any more.
  esker_event_family family;
  // As it was.
  esker_write_stall before;
  // As it is.
  esker_write_stall now;
  // The highest pressure of all families, 0 to 1, beyond which writers are held to a tenth of the rate.
  double pressure;
} esker_write_stall_changed;

// What works in the background, or for all writers.
typedef uint32_t esker_background_task;

// Background work or the log has failed.
typedef struct {
  // What failed.
  esker_background_task task;
  // Why. Not to be freed.
  const esker_error *error;
  // Whether the database takes no more writes because of it; else it is tried again.
  bool is_final;
} esker_background_error;

// What had failed works again.
typedef struct {
  // What had failed.
  esker_background_task task;
} esker_background_error_over;

// Tables were ingested; each was told as a file created.
typedef struct {
  // Tables, over all families of the call.
  uint64_t tables;
  // Bytes of them.
  uint64_t bytes;
  // The last sequence number that their rows got.
  uint64_t sequence;
} esker_tables_ingested;

// Whole tables of key ranges were dropped.
typedef struct {
  // The family.
  esker_event_family family;
  // Tables.
  uint64_t tables;
  // Bytes of them.
  uint64_t bytes;
} esker_tables_dropped;

// A checkpoint is complete and durable.
typedef struct {
  // Its folder.
  esker_slice path;
  // It holds all writes up to this sequence number.
  uint64_t sequence;
  // Files that the database and the checkpoint share.
  uint64_t linked_files;
  // Bytes that were copied.
  uint64_t copied_bytes;
  // Bytes of tables and blob files that memtables were written to.
  uint64_t written_bytes;
  // How long it took, in microseconds.
  uint64_t took_us;
} esker_checkpoint_made;

// A column family was created.
typedef struct {
  // The family.
  esker_event_family family;
} esker_family_created;

// A column family was dropped.
typedef struct {
  // The family.
  esker_event_family family;
} esker_family_dropped;

// A snapshot, and all that shared it, is gone. Those of iterators are not told.
typedef struct {
  // What it saw.
  uint64_t sequence;
  // Whether there is another one, iterators' included.
  bool is_any_left;
  // What the oldest that is left sees, if there is one.
  uint64_t oldest_left;
} esker_snapshot_freed;

// Events were not told, because listeners were too slow.
typedef struct {
  // How many.
  uint64_t count;
} esker_events_lost;

// Is told what happens in a database. Every function may be null, and must not throw; what it is shown stays for the call.
//
// One thread of the database calls the listeners of it, one call after the other, in the order in which things happened: of a job its
// begin, the files that it created, its end. It holds no lock, and the engine never waits for it: 65,536 events may wait while
// a listener is busy, what comes beyond is not told, and `events_lost` says so at its place.
// A listener may call everything on the database but `esker_db_wait_for_listeners`. `esker_db_close` waits until all was told,
// except when a listener calls it: so who closes must not hold a lock that a listener takes.
typedef struct {
  // Given to the functions.
  void *state;
  // Called once with `state` when nothing uses the listener any more: the options are freed, and each database that was opened with
  // them is closed. On the thread that calls the listener, or the one that frees or closes. May be null.
  void (*destroy)(void *state);
  // A flush begins.
  void (*flush_begun)(void *state, const esker_moment *moment, const esker_flush_begun *event);
  // A flush has ended.
  void (*flush_ended)(void *state, const esker_moment *moment, const esker_flush_ended *event);
  // A compaction begins.
  void (*compaction_begun)(void *state, const esker_moment *moment, const esker_compaction_begun *event);
  // A compaction has ended.
  void (*compaction_ended)(void *state, const esker_moment *moment, const esker_compaction_ended *event);
  // A table or blob file is in force.
  void (*file_created)(void *state, const esker_moment *moment, const esker_file_created *event);
  // A table or blob file was removed.
  void (*file_deleted)(void *state, const esker_moment *moment, const esker_file_deleted *event);
  // A memtable takes no more rows.
  void (*memtable_sealed)(void *state, const esker_moment *moment, const esker_memtable_sealed *event);
  // Writers are let in otherwise than before.
  void (*write_stall_changed)(void *state, const esker_moment *moment, const esker_write_stall_changed *event);
  // Background work or the log has failed.
  void (*background_error)(void *state, const esker_moment *moment, const esker_background_error *event);
  // What had failed works again.
  void (*background_error_over)(void *state,
                                const esker_moment *moment,
                                const esker_background_error_over *event);
  // Tables were ingested.
  void (*tables_ingested)(void *state, const esker_moment *moment, const esker_tables_ingested *event);
  // Whole tables of key ranges were dropped.
  void (*tables_dropped)(void *state, const esker_moment *moment, const esker_tables_dropped *event);
  // A checkpoint is complete.
  void (*checkpoint_made)(void *state, const esker_moment *moment, const esker_checkpoint_made *event);
  // A column family was created.
  void (*family_created)(void *state, const esker_moment *moment, const esker_family_created *event);
  // A column family was dropped.
  void (*family_dropped)(void *state, const esker_moment *moment, const esker_family_dropped *event);
  // A snapshot is gone.
  void (*snapshot_freed)(void *state, const esker_moment *moment, const esker_snapshot_freed *event);
  // Events were not told.
  void (*events_lost)(void *state, const esker_moment *moment, const esker_events_lost *event);
} esker_listener;

// What recovery found when a database was opened.
typedef struct {
  // Batches replayed.
  uint64_t batches;
  // Damaged stretches that were skipped or at which replay stopped; a torn tail is none.
  uint64_t damages;
  // Bytes of log that could not be used, torn tails included.
  uint64_t lost_bytes;
  // Log files that were kept aside, as bytes of their paths.
  const esker_slice *kept_aside;
  // How many.
  size_t kept_aside_count;
  // Files that earlier recoveries had kept aside and that were removed.
  const esker_slice *given_up;
  // How many.
  size_t given_up_count;
} esker_recovery;

// Whether the database was opened for transactions, and of which kind.
typedef uint32_t esker_transaction_kind;

// What a catch-up came to.
typedef struct {
  // The last sequence number that is seen now.
  uint64_t sequence;
  // Batches of the log that were read.
  uint64_t batches;
  // Groups of changes of the set of files that were read.
  uint64_t edit_groups;
} esker_caught_up;

// How safe a write is when it returns.
typedef uint32_t esker_durability;

// A mutation.
typedef struct {
  // The key, or where the range starts.
  esker_slice key;
  // The value, the operand, or the end of the range; empty for deletes.
  esker_slice value;
  // The number of the family.
  uint32_t family;
  // What it does.
  esker_row_kind kind;
} esker_mutation;

// Called with each mutation, which stays for the call. False: no more.
typedef bool (*esker_visit_mutation)(void *state, const esker_mutation *mutation);

// A key range.
typedef struct {
  // The first key.
  esker_slice start;
  // The first key behind it.
  esker_slice end;
} esker_range;

// A row that an iterator stands on.
typedef struct {
  // Its key; data is null if there is no row.
  esker_slice key;
  // Its value.
  esker_slice value;
} esker_row;

// What a checkpoint holds, and what it cost.
typedef struct {
  // The last sequence number in it.
  uint64_t sequence;
  // Files that the database and the checkpoint share.
  uint64_t linked_files;
  // Bytes that were copied.
  uint64_t copied_bytes;
  // Bytes of tables and blob files that memtables were written to.
  uint64_t written_bytes;
} esker_checkpoint;

// Tables that were dropped.
typedef struct {
  // How many.
  uint64_t tables;
  // Bytes of them, without the values in blob files.
  uint64_t bytes;
} esker_deleted_files;

// What an export holds, and what it cost.
typedef struct {
  // The last sequence number in it: it holds all writes to the family up to this one, and none after.
  uint64_t sequence;
  // Tables.
  uint64_t tables;
  // Blob files.
  uint64_t blob_files;
  // Bytes of all these files.
  uint64_t bytes;
  // Bytes that had to be copied, as there could be no links.
  uint64_t copied_bytes;
} esker_exported;

// What was imported.
typedef struct {
  // The database's last sequence number behind the import.
  uint64_t sequence;
  // Tables.
  uint64_t tables;
  // Blob files.
  uint64_t blob_files;
  // Bytes of all these files.
  uint64_t bytes;
  // Bytes that had to be copied, as there could be no links.
  uint64_t copied_bytes;
} esker_imported;

// What is in a table file.
typedef struct {
  // Length of the file in bytes.
  uint64_t file_bytes;
  // Puts, deletes and merges.
  uint64_t entries;
  // Deletions of ranges.
  uint64_t range_deletions;
} esker_table_file;

// What was ingested.
typedef struct {
  // The sequence number of the newest row.
  uint64_t sequence;
  // Tables.
  uint64_t tables;
  // Bytes of them.
  uint64_t bytes;
  // Rows that were left out, as their keys had values; only behind what is there.
  uint64_t left_out;
} esker_ingested;

// How things stand in a database now.
typedef struct {
  // Bytes that memtables hold.
  uint64_t memtable_bytes;
  // Bytes in the block cache.
  uint64_t cache_bytes;
  // Bytes that the block cache may hold.
  uint64_t cache_capacity_bytes;
  // Bytes of indexes and filters of open tables.
  uint64_t table_memory_bytes;
  // Tables that are open.
  uint64_t open_tables;
  // Blob files that are open.
  uint64_t open_blob_files;
  // Snapshots alive.
  uint64_t snapshots;
  // Bytes of log segments that are needed.
  uint64_t wal_live_bytes;
  // Bytes of batches that are prepared and neither committed nor rolled back.
  uint64_t prepared_bytes;
  // Bytes of tables, over all families.
  uint64_t table_bytes;
  // Blob files, over all families.
  uint64_t blob_files;
  // Bytes of them.
  uint64_t blob_bytes;
  // Bytes of the values in them that tables refer to.
  uint64_t blob_live_bytes;
  // Compactions that run.
  uint64_t compactions_running;
  // Writers that wait for others' commits to end; the next one commits for all of them.
  uint64_t writers_waiting;
  // How writers are let in.
  esker_write_stall write_stall;
  // The highest pressure of all families, as `esker_family_stats` has it.
  double write_pressure;
} esker_stats;

// A counter.
typedef struct {
  // Its name.
  esker_slice name;
  // Its value.
  uint64_t value;
} esker_counter;

// A level of a family.
typedef struct {
  // Files.
  uint64_t files;
  // Bytes of those files.
  uint64_t bytes;
  // How much the level needs compaction; from 1.0 on it gets one.
  double score;
} esker_level;

// A column family now.
typedef struct {
  // Its name.
  esker_slice name;
  // Bytes that its memtables hold.
  uint64_t memtable_bytes;
  // Memtables that wait for their flush.
  uint64_t memtables_waiting;
  // About how many keys it has; overwritten ones count until a compaction meets them.
  uint64_t estimated_keys;
  // Bytes that compactions have still to write.
  uint64_t pending_compaction_bytes;
  // How hard its debt presses on writers: from 0 on, above which they are held back, to 1 and beyond.
  double write_pressure;
  // Blob files.
  uint64_t blob_files;
  // Bytes of them.
  uint64_t blob_bytes;
  // Bytes of the values in them that tables refer to.
  uint64_t blob_live_bytes;
} esker_family_stats;

// Times that were counted in one bucket.
typedef struct {
  // Where it ends (inclusive), in microseconds; `UINT64_MAX`: it has no end.
  uint64_t end_us;
  // How many took longer than the bucket before ends, and no longer than this one does.
  uint64_t count;
} esker_bucket;

// How long things of one kind took since the opening.
typedef struct {
  // Of what kind.
  esker_slice name;
  // How many there were.
  uint64_t count;
  // All times together, in microseconds.
  uint64_t sum_us;
  // By length, the shortest first.
  const esker_bucket *buckets;
  // How many buckets.
  size_t bucket_count;
} esker_histogram;

// A name and its value: a setting, a property.
typedef struct {
  // The name.
  esker_slice name;
  // The value.
  esker_slice value;
} esker_pair;

// A table of a family.
typedef struct {
  // The number in its name.
  uint64_t number;
  // Its level.
  size_t level;
  // Length of its file in bytes.
  uint64_t size_bytes;
  // Bytes of the records in blob files that its rows point to.
  uint64_t blob_bytes;
  // Puts, deletes and merges.
  uint64_t entries;
  // Deletes among them.
  uint64_t deletions;
  // Deletes of ranges.
  uint64_t range_deletions;
  // Its smallest key.
  esker_slice smallest;
  // Its largest key; the end of a deleted range counts.
  esker_slice largest;
  // When it was written, in seconds since 1970 UTC.
  uint64_t written_unix_seconds;
  // What the collectors said: by their name, a dot, and the name of their own.
  const esker_pair *properties;
  // How many.
  size_t property_count;
} esker_table;

// The verdict on a file: whole if it has no damages.
typedef struct {
  // Its path.
  esker_slice path;
  // What it is for: `manifest`, `sst`, `blob`, `wal`, `wal.damaged` or `other`.
  esker_slice role;
  // What is special about it without being a damage; data is null if nothing is.
  esker_slice note;
  // What is wrong with it, in a line each.
  const esker_slice *damages;
  // How many damages.
  size_t damage_count;
  // Bytes read.
  uint64_t size_bytes;
  // Entries, values, batches or groups of edits found in it.
  uint64_t records;
} esker_file_report;

// Called with each verdict, which stays for the call. May be null.
typedef void (*esker_visit_file)(void *state, const esker_file_report *report);

// What all verdicts add up to.
typedef struct {
  // Files read.
  uint64_t files;
  // Bytes of them.
  uint64_t size_bytes;
  // Files with damages.
  uint64_t damaged;
} esker_verified;

// What was left of the manifest.
typedef uint32_t esker_manifest_state;

// A stretch of a table in which rows are lost. Keys there may be missing, or show what they were before.
typedef struct {
  // Where it begins in the file.
  uint64_t offset;
  // Stored bytes.
  uint64_t bytes;
  // The last key that was read before it; data is null if the table begins with it.
  esker_slice after;
  // The first key that was read behind it; data is null if the table ends with it.
  esker_slice before;
} esker_lost_range;

// A file of which something is lost, or that had to be written anew.
typedef struct {
  // Its path before the repair.
  esker_slice path;
  // The name of its column family; data is null if it has none that is known.
  esker_slice family;
  // What is wrong with it: the first damage that was found.
  esker_slice damage;
  // Rows that were read from it and are kept.
  uint64_t rows_kept;
  // Rows that are gone; `UINT64_MAX`: nobody knows how many there were.
  uint64_t rows_lost;
  // Rows among those kept whose value was in a blob file and is gone: their keys are deleted now.
  uint64_t values_lost;
  // Stored bytes that can't be read.
  uint64_t lost_bytes;
  // The stretches of keys in which rows are lost.
  const esker_lost_range *lost_ranges;
  // How many.
  size_t lost_range_count;
  // Whether deletions of ranges are lost, or may be: keys that they had deleted may be back.
  bool range_deletions_lost;
  // Whether anything of its content is gone.
  bool is_loss;
} esker_damaged_file;

// What a repair found and did; of a dry run: what it would do.
typedef struct {
  // Whether nothing was lost as far as anybody can know.
  bool is_lossless;
  // What was left of the manifest.
  esker_manifest_state manifest;
  // What is wrong with it, and with `CURRENT`, in a line each.
  const esker_slice *manifest_damages;
  // How many.
  size_t manifest_damage_count;
  // The names of the column families that the database has now.
  const esker_slice *families;
  // How many.
  size_t family_count;
  // Tables that stay as they are.
  uint64_t tables_kept;
  // Tables that were written: what could be read of damaged ones, the log's rows, and merged ones where no manifest said which
  // are older. 0 in a dry run.
  uint64_t tables_written;
  // Tables and blob files of which something is lost, or that had to be written anew.
  const esker_damaged_file *damaged;
  // How many.
  size_t damaged_count;
  // Paths of tables that were ingested, and of which only the lost manifest knew when: they count as the oldest.
  const esker_slice *unplaced;
  // How many.
  size_t unplaced_count;
  // Names of imported families that are those they were exported with: nothing says which they had here.
  const esker_slice *imported;
  // How many.
  size_t imported_count;
  // Batches of the log that are in tables now.
  uint64_t log_batches;
  // Damaged places in the log that were gone over.
  uint64_t log_damages;
  // Bytes of the log that could not be used there.
  uint64_t log_lost_bytes;
  // Whether the first segment that the manifest needs is not there: it is lost, or the database is a checkpoint that was never
  // opened.
  bool log_begins_late;
  // Whether the log ends in a batch that is not whole: as a crash leaves it, or as one that was cut later.
  bool log_is_torn;
  // The names under which batches are still prepared, to be committed or rolled back.
  const esker_slice *prepared;
  // How many.
  size_t prepared_count;
  // Files that are in the folder `lost` now, by their paths before: damaged ones, and those that are no part of the database.
  const esker_slice *set_aside;
  // How many.
  size_t set_aside_count;
} esker_repair_report;

// A batch that is prepared.
typedef struct {
  // Its name.
  esker_slice name;
  // Mutations.
  size_t count;
  // Size of its encoding in bytes, name included.
  size_t size_bytes;
} esker_prepared;

// What the plain reads of a transaction see of what others commit meanwhile.
typedef uint32_t esker_isolation;

// What a lock keeps others from.
typedef uint32_t esker_lock_mode;

// A transaction that is prepared and neither committed nor rolled back.
typedef struct {
  // Its name.
  esker_slice name;
  // Its number, under which its locks are listed.
  uint64_t id;
  // Mutations that it would commit.
  uint64_t writes;
  // What it takes in memory and in the log, in bytes.
  uint64_t size_bytes;
  // Whether an object has it. If not, it waits for `esker_transaction_take_prepared`.
  bool is_open;
} esker_prepared_transaction;

// What a lock is on: a key, or the keys from one on.
typedef struct {
  // The key, or the first key of the range.
  esker_slice start;
  // The first key behind the range; data is null for one to the last key.
  esker_slice end;
  // The number of the family.
  uint32_t family;
  // The mode.
  esker_lock_mode mode;
  // Whether it is a range.
  bool is_range;
} esker_lock_target;

// A lock that is held.
typedef struct {
  // On what, and in which mode.
  esker_lock_target target;
  // The numbers of the transactions that hold it, in rising order.
  const uint64_t *holders;
  // How many.
  size_t holder_count;
} esker_lock;

// A request that waits for a lock.
typedef struct {
  // On what, and in which mode.
  esker_lock_target target;
  // The number of the transaction that waits.
  uint64_t transaction;
  // For how long, in microseconds.
  uint64_t waited_us;
  // The numbers of those for whom it waits, in rising order: holders, and those ahead of it, as far as they are not waited for by
  // the nearest of these anyway.
  const uint64_t *waits_for;
  // How many.
  size_t waits_for_count;
} esker_wait;

// A member of a deadlock, and what it waited for.
typedef struct {
  // On what, and in which mode.
  esker_lock_target target;
  // The number of the transaction that waited.
  uint64_t transaction;
  // The number of the one that held it, or a lock in conflict with it.
  uint64_t waits_for;
} esker_deadlock_step;

// A circle of transactions each of which waited for the next, the last for the first; the first was refused its lock.
typedef struct {
  // The members.
  const esker_deadlock_step *steps;
  // How many.
  size_t step_count;
  // How long ago it was found, in microseconds; 0 where an error tells of it.
  uint64_t age_us;
} esker_deadlock;

// A transaction that runs.
typedef struct {
  // Its number.
  uint64_t id;
  // What its options call it; data is null if they don't.
  esker_slice label;
  // The name that it was given, under which it is prepared; data is null without one.
  esker_slice name;
  // Whether it is prepared.
  bool is_prepared;
  // Time since it began, in microseconds.
  uint64_t age_us;
  // Mutations that it would commit.
  uint64_t writes;
  // Locks that it holds; without locks: keys and ranges that its commit will ask about.
  uint64_t locks;
} esker_running;

// No error: the kind of a null pointer.
#define ESKER_OK 0

// Fix the argument.
#define ESKER_INVALID_ARGUMENT 1

// The database, the column family or what it should hold is not there. Absent keys are no error.
#define ESKER_NOT_FOUND 2

// The folder is in use by another process, or holds something else.
#define ESKER_LOCKED 3

// Stored bytes are not what was written: restore the file or repair the database.
#define ESKER_CORRUPTION 4

// The file has a newer format than this version reads: upgrade.
#define ESKER_UNSUPPORTED 5

// The device failed.
#define ESKER_IO 6

// The device is full: free space, writes resume by themselves.
#define ESKER_NO_SPACE 7

// The database no longer takes writes (a failed sync, or opened read-only); reads go on.
#define ESKER_READ_ONLY 8

// Try again: the call lost against concurrent work or a time limit.
#define ESKER_RETRY 9

// Another transaction wrote what this one has read or wants to write: roll it back, run it again.
#define ESKER_CONFLICT 10

// Transactions waited for each other in a circle and this one was chosen to give way: roll it back, run it again.
#define ESKER_DEADLOCK 11

// A lock did not come free in the time given: try again, or roll back and run the transaction again.
#define ESKER_TIMED_OUT 12

// There are as many locks as may be: end transactions, lock less in each, or raise the limit.
#define ESKER_LOCK_LIMIT 13

// The database was closed.
#define ESKER_CLOSED 14

// A defect in the library: report it.
#define ESKER_BUG 15

// A kind that this version of the header has no name for.
#define ESKER_OTHER 16

// The transaction writes more than one may: commit and go on in another one, or raise the limit.
#define ESKER_WRITE_LIMIT 17

// Somebody has interrupted the wait for a lock: roll back, or try again.
#define ESKER_INTERRUPTED 18

// It stays.
#define ESKER_KEEP 0

// The key is deleted.
#define ESKER_REMOVE 1

// The row gets the value that was put into `out`.
#define ESKER_CHANGE 2

// The key is deleted, and with it all that follow up to the one that was put into `out` (exclusive) of which no snapshot sees
// anything.
#define ESKER_SKIP_UNTIL 3

// Of `decide_by_key` only: the value is needed.
#define ESKER_NEED_VALUE 4

// A memtable becomes a table.
#define ESKER_CAUSE_FLUSH 0

// A compaction that the engine chose.
#define ESKER_CAUSE_COMPACTION 1

// `esker_db_compact_range`.
#define ESKER_CAUSE_MANUAL 2

// A value.
#define ESKER_PUT 0

// A delete.
#define ESKER_DELETE 1

// A delete of a key that was put once.
#define ESKER_SINGLE_DELETE 2

// An operand.
#define ESKER_MERGE 3

// A delete of all keys from `key` up to `value` (exclusive).
#define ESKER_DELETE_RANGE 4

// A kind that this version of the header has no name for.
#define ESKER_OTHER_ROW 5

// Its result is in force.
#define ESKER_JOB_DONE 0

// The family was dropped meanwhile: its result was thrown away.
#define ESKER_JOB_FAMILY_DROPPED 1

// It failed; nothing changed, and it is tried again later.
#define ESKER_JOB_FAILED 2

// Level 0 has too many files or bytes.
#define ESKER_LEVEL0_FULL 0

// Level 0 is deep and can't go down now: its newest files are made into one.
#define ESKER_LEVEL0_DEEP 1

// The level is larger than its target.
#define ESKER_LEVEL_FULL 2

// The level is above the base level and should be empty.
#define ESKER_LEVEL_UNUSED 3

// A table has many tombstones.
#define ESKER_TOMBSTONES 4

// A table is older than tables of the family may be.
#define ESKER_AGE 5

// Blob files have too much dead space.
#define ESKER_BLOB_SPACE 6

// `esker_db_compact_range`.
#define ESKER_MANUAL 7

// Iterators step over what is hidden in level 0 or by it again and again.
#define ESKER_HIDDEN_ROWS 8

// A table.
#define ESKER_TABLE_FILE 0

// A blob file: values.
#define ESKER_BLOB_FILE 1

// A flush wrote it.
#define ESKER_BY_FLUSH 0

// A compaction wrote it.
#define ESKER_BY_COMPACTION 1

// It was ingested.
#define ESKER_BY_INGESTION 2

// The opening of the database wrote it, from the log.
#define ESKER_BY_RECOVERY 3

// They don't wait.
#define ESKER_STALL_NONE 0

// They are held back to a rate, because compactions are behind.
#define ESKER_STALL_HELD_BACK 1

// They wait for a flush: memory is full, or the log could not be written.
#define ESKER_STALL_STOPPED 2

// Flushes.
#define ESKER_TASK_FLUSH 0

// Compactions.
#define ESKER_TASK_COMPACTION 1

// The log or the manifest; what fails there ends writing for good.
#define ESKER_TASK_LOG 2

// Without transactions.
#define ESKER_NO_TRANSACTIONS 0

// With transactions that lock.
#define ESKER_LOCKING 1

// With transactions that look at their commit whether others were faster.
#define ESKER_OPTIMISTIC 2

// As the database's settings say.
#define ESKER_DURABILITY_DEFAULT 0

// On the device: survives a power cut.
#define ESKER_SYNC 1

// With the operating system: survives the process. A power cut may take it.
#define ESKER_BUFFERED 2

// Only in memory, until it is flushed.
#define ESKER_NO_LOG 3

// All of it: its tables are the database's, each in its level, and no others are.
#define ESKER_MANIFEST_WHOLE 0

// A part: what it says to be dropped is, and all other tables count.
#define ESKER_MANIFEST_DAMAGED 1

// Nothing: all tables count, in the column families that they name.
#define ESKER_MANIFEST_LOST 2

// Each read sees what is committed when it begins.
#define ESKER_READ_COMMITTED 0

// All reads see one snapshot, and nothing can be locked or written that others have written since: snapshot isolation.
#define ESKER_REPEATABLE_READ 1

// Others may hold it too, in this mode.
#define ESKER_SHARED 0

// Nobody else holds it.
#define ESKER_EXCLUSIVE 1

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Frees an error; null is nothing.
void esker_error_free(esker_error *error);

// What to do about it; `ESKER_OK` for null.
esker_error_kind esker_error_get_kind(const esker_error *error);

// Whether the same work may succeed when it is tried again and nothing was changed: a call for `ESKER_RETRY`, a transaction from
// its start for `ESKER_CONFLICT`, `ESKER_DEADLOCK`, `ESKER_TIMED_OUT` and `ESKER_LOCK_LIMIT`.
bool esker_error_is_retryable(const esker_error *error);

// What went wrong, where and why, in a line; empty for null. Stays until the error is freed.
const char *esker_error_message(const esker_error *error);

// The file concerned, as bytes of its path; none if no file is. Stays until the error is freed.
esker_slice esker_error_file(const esker_error *error);

// Whether it concerns a place in that file; `offset` is set to it then.
bool esker_error_offset(const esker_error *error, uint64_t *offset);

// The name of the column family concerned; none if no one is. Stays until the error is freed.
esker_slice esker_error_family(const esker_error *error);

// Of an error of kind `ESKER_DEADLOCK`, who waited for whom: a list of one; null for other errors. To be freed.
esker_deadlocks *esker_error_deadlock(const esker_error *error);

// The version of the library, such as `0.1.0`.
const char *esker_version(void);

// The bytes of a string, without its NUL; none for null. They are the string's own.
esker_slice esker_slice_of(const char *string);

// An empty buffer.
esker_buffer *esker_buffer_create(void);

// Frees a buffer. Not one that a callback was given.
void esker_buffer_free(esker_buffer *buffer);

// What is in it, until it is changed or freed.
esker_slice esker_buffer_slice(const esker_buffer *buffer);

// Sets what is in it, to a copy of `bytes`.
ESKER_MUST_USE esker_error *esker_buffer_set(esker_buffer *buffer, esker_slice bytes);

// Adds a copy of `bytes` behind what is in it.
ESKER_MUST_USE esker_error *esker_buffer_append(esker_buffer *buffer, esker_slice bytes);

// The names; `count` is set to how many they are. The array stays until the list is freed.
const esker_slice *esker_names_items(const esker_names *names, size_t *count);

// Frees a list of names.
void esker_names_free(esker_names *names);

// A machine with an empty file system in memory, on which paths mean nothing to the real one: for tests, and for data that may go.
// Its time and threads are real.
esker_env *esker_env_create_in_memory(void);

// Frees a machine. Options and databases that were given it keep it.
void esker_env_free(esker_env *env);

// The defaults.
esker_options *esker_options_create(void);

// Frees options. Databases that were opened with them keep what they need.
void esker_options_free(esker_options *options);

// Sets a setting of the database by its name in docs/tuning.md: sizes as `1048576` or `64MiB`, `true` and `false`, `durability`
// (`sync`, `buffered`, `none`), `recovery_mode` (`point-in-time`, `absolute`, `skip-corrupt`), `background_io` and `read_io`
// (`direct`, `buffered`). Any other name is a setting of the column family `default`. Ranges are checked when the database is opened.
// Error: `ESKER_INVALID_ARGUMENT` for an unknown name, or a value that is none.
ESKER_MUST_USE
esker_error *esker_options_set(esker_options *options,
                               const char *name,
                               const char *value);

// Opens the column family `name` with these settings, which are copied, instead of the stored ones. Families with comparators,
// merge operators, filters or collectors of the program's own have to be named; `default` can be.
ESKER_MUST_USE
esker_error *esker_options_set_family(esker_options *options,
                                      const char *name,
                                      const esker_family_options *family);

// Whether families that were named and do not exist are created. Default: no, opening fails.
void esker_options_create_missing_families(esker_options *options, bool create);

// Whether flushes and compactions start by themselves. Default: yes. Without it nothing moves before `esker_db_start_background_work`
// but what is asked for by name (`esker_db_flush`, `esker_db_compact_range`, ingestion, checkpoints, `esker_db_close`), and a write that needs a
// flush, as memory is full, fails with `ESKER_RETRY` and writes nothing; writes are not held back for the sake of compactions.
void esker_options_set_background_work(esker_options *options,
                                       bool on);

// Runs the database on this machine; null: the real one.
void esker_options_set_env(esker_options *options, const esker_env *env);

// The defaults.
esker_family_options *esker_family_options_create(void);

// A copy, which shares comparators and the like; the defaults for null.
esker_family_options *esker_family_options_clone(const esker_family_options *options);

// Frees settings. Databases and tables that were made with them keep what they need.
void esker_family_options_free(esker_family_options *options);

// Sets a setting by its name in docs/tuning.md: sizes as `1048576` or `64MiB`, `true` and `false`; `memtable_kind` (`ordered`,
// `vector`), `prefix_extractor` (`none`, `fixed:LEN`, `capped:LEN`), `compression_per_level` (a list of `none`, `snappy`,
// `zlib`, `lz4`, `zstd`), `blob_compression`, `compaction_style` (`leveled`, `manual`), `aging` (`none`, `rewrite:SECONDS`,
// `expire:SECONDS`). Ranges are checked when the settings are used.
// Error: `ESKER_INVALID_ARGUMENT` for an unknown name, or a value that is none.
ESKER_MUST_USE
esker_error *esker_family_options_set(esker_family_options *options,
                                      const char *name,
                                      const char *value);

// Sets all that `text` names: `name=value;name=value`, such as `esker_family_options_text` gave. On an error those before the
// wrong one are set.
ESKER_MUST_USE
esker_error *esker_family_options_set_text(esker_family_options *options,
                                           const char *text);

// All settings that are plain values, as `name=value;name=value`.
ESKER_MUST_USE
esker_error *esker_family_options_text(const esker_family_options *options,
                                       esker_buffer *text);

// Sets the order of keys to one that the engine has: `esker.bytewise` (the default) or `esker.reverse-bytewise`.
ESKER_MUST_USE
esker_error *esker_family_options_set_key_order(esker_family_options *options,
                                                const char *name);

// Sets the order of keys to the program's own. On success `state` is the library's, which destroys it when nothing uses it any
// more, perhaps on another thread; on failure it stays the program's. The same holds for the calls below.
// Error: `ESKER_INVALID_ARGUMENT` without a name or function.
ESKER_MUST_USE
esker_error *esker_family_options_set_comparator(esker_family_options *options,
                                                 const esker_comparator *comparator);

// Sets the merge operator to one that the engine has: `esker.u64-add` adds little-endian numbers of 8 bytes, `esker.append`
// and `esker.append:SEPARATOR` join. Null: none.
ESKER_MUST_USE
esker_error *esker_family_options_set_builtin_merge_operator(esker_family_options *options,
                                                             const char *name);

// Sets the merge operator to the program's own.
ESKER_MUST_USE
esker_error *esker_family_options_set_merge_operator(esker_family_options *options,
                                                     const esker_merge_operator *operator_);

// Sets the compaction filter.
ESKER_MUST_USE
esker_error *esker_family_options_set_compaction_filter(esker_family_options *options,
                                                        const esker_compaction_filter *filter);

// Adds a property collector. Their names must differ.
ESKER_MUST_USE
esker_error *esker_family_options_add_collector(esker_family_options *options,
                                                const esker_collector *collector);

// Stores a value under a name of the collector's own with the table.
ESKER_MUST_USE
esker_error *esker_collected_add(esker_collected *collected,
                                 const char *name,
                                 esker_slice value);

// Tells this listener, too, what happens in databases that are opened with these options. The functions are copied, and on success
// `state` is the library's. A database that is opened read-only, and a follower, have nothing to tell.
ESKER_MUST_USE
esker_error *esker_options_add_listener(esker_options *options,
                                        const esker_listener *listener);

// Waits until the listeners were told everything that happened before this call; at once where there are none.
// Error: `ESKER_INVALID_ARGUMENT` if a listener calls it: it would wait for itself.
ESKER_MUST_USE
esker_error *esker_db_wait_for_listeners(const esker_db *db);

// Opens the database in the folder `path`, without transactions. Options: null for the defaults.
// Errors: `ESKER_LOCKED` (another process has it open), `ESKER_NOT_FOUND` (none there, and not to be created),
// `ESKER_INVALID_ARGUMENT` (the folder holds something else; settings out of range or incompatible), `ESKER_UNSUPPORTED` (written by a
// newer version), `ESKER_CORRUPTION`.
ESKER_MUST_USE
esker_error *esker_db_open(const char *path,
                           const esker_options *options,
                           esker_db **db);

// Opens the database in the folder `path` for transactions. Settings: null for the defaults, which lock. Writes without a
// transaction go through the same locks, or checks, for the length of the call.
// What is prepared in the database has its locks again.
// Errors: as `esker_db_open`, and `ESKER_INVALID_ARGUMENT` for settings that make no sense, or optimistic ones where something is
// prepared; `ESKER_LOCK_LIMIT` if what is prepared takes more locks than may be.
ESKER_MUST_USE
esker_error *esker_db_open_transactional(const char *path,
                                         const esker_options *options,
                                         const esker_transaction_settings *settings,
                                         esker_db **db);

// Closes the database and frees the handle, whatever the answer: an error says that what was written without the log could not be
// flushed, or the log not be closed. Nobody may use the handle any more. What was made from it (families, iterators, transactions,
// snapshots, values) may still be freed in any order; other calls on it fail with `ESKER_CLOSED`. Null is nothing.
ESKER_MUST_USE
esker_error *esker_db_close(esker_db *db);

// Makes all writes so far durable.
ESKER_MUST_USE esker_error *esker_db_sync(const esker_db *db);

// The sequence number of the last write that readers see; 0 for null.
uint64_t esker_db_last_sequence(const esker_db *db);

// What recovery found when the database was opened. To be freed.
ESKER_MUST_USE esker_error *esker_db_recovery_report(const esker_db *db, esker_recovery_report **report);

// What the report says, until it is freed; null for null.
const esker_recovery *esker_recovery_report_get(const esker_recovery_report *report);

// Frees a report.
void esker_recovery_report_free(esker_recovery_report *report);

// The names of the column families of the database in `path`, which need not be open; env: null for the real machine. To be freed.
ESKER_MUST_USE
esker_error *esker_list_families(const esker_env *env,
                                 const char *path,
                                 esker_names **names);

// Removes the database in `path`, and the folder if nothing else is in it; without a database there is nothing to do. env: null for
// the real machine. Error: `ESKER_LOCKED` if it is open.
ESKER_MUST_USE
esker_error *esker_destroy(const esker_env *env,
                           const char *path);

// Which transactions the database has.
ESKER_MUST_USE esker_error *esker_db_transaction_kind(const esker_db *db, esker_transaction_kind *kind);

// Opens the database in the folder `path` to be read while another process writes it: without its lock, and without a change to its
// folder. What it shows, of all families, is the database as it was at one moment for the writer, and stays the same until
// `esker_db_catch_up`. Snapshots keep their moment over that, iterators the one of their making. Handles of families move on with it.
// Writes, and all that would change files, fail with `ESKER_READ_ONLY`. It has no transactions, and no listeners are told of it.
//
// Families that the options name and that do not exist may come later. Rows that were written with `ESKER_NO_LOG` are shown once the
// writer has flushed them. A read that comes to a table which the writer has removed meanwhile fails with `ESKER_RETRY`, and succeeds
// after the next catch-up; the first 512 files (or `open_files_max`, if that is less) are kept open against that.
// Errors: those of `esker_db_open` for a database that is opened read-only, and of `esker_db_catch_up`.
ESKER_MUST_USE
esker_error *esker_db_follow(const char *path,
                             const esker_options *options,
                             esker_db **db);

// Moves a follower on to a moment that holds all that was committed before the call, except for what was written without the log.
// Reads that are under way are not disturbed. `caught_up` may be null.
// Errors: `ESKER_INVALID_ARGUMENT` if `db` is no follower, a family has come whose key order or merge operator the options did not name,
// or another database is in the folder; `ESKER_RETRY` if the writer flushes faster than its log can be read; `ESKER_NOT_FOUND`,
// `ESKER_CORRUPTION`, `ESKER_UNSUPPORTED` and `ESKER_IO` as of an opening. What is shown then stays as it was.
ESKER_MUST_USE
esker_error *esker_db_catch_up(const esker_db *db,
                               esker_caught_up *caught_up);

// The family with this name. Error: `ESKER_NOT_FOUND`. To be freed, as all handles.
ESKER_MUST_USE esker_error *esker_family_open(const esker_db *db, const char *name, esker_family **family);

// The family with this number, as events and deadlocks name it. Error: `ESKER_NOT_FOUND`. To be freed.
ESKER_MUST_USE esker_error *esker_family_open_by_id(const esker_db *db, uint32_t id, esker_family **family);

// Creates a family; options: null for the defaults. Errors: `ESKER_INVALID_ARGUMENT` if the name is taken, empty or over-long, or an
// option out of range.
ESKER_MUST_USE
esker_error *esker_family_create(const esker_db *db,
                                 const char *name,
                                 const esker_family_options *options,
                                 esker_family **family);

// Drops a family: its files go once nobody reads them. The handle stays, and is freed as any other. `default` can't be dropped.
ESKER_MUST_USE
esker_error *esker_family_drop(const esker_db *db,
                               const esker_family *family);

// Frees a handle; the family stays.
void esker_family_free(esker_family *family);

// Its name, until the handle is freed.
esker_slice esker_family_name(const esker_family *family);

// Its number, which is never used again after a drop; 0 is `default`.
uint32_t esker_family_id(const esker_family *family);

// The name of its order of keys, until the handle is freed; of the family `default` by its handle only.
esker_slice esker_family_key_order(const esker_family *family);

// Compares two keys in the family's order: `order` is set to -1, 0 or 1 as `a` comes before, is, or follows `b`.
ESKER_MUST_USE
esker_error *esker_family_compare(const esker_db *db,
                                  const esker_family *family,
                                  esker_slice a,
                                  esker_slice b,
                                  int *order);

// The names of all families, in the order in which they were created. To be freed.
ESKER_MUST_USE esker_error *esker_db_family_names(const esker_db *db, esker_names **names);

// The family's settings of now that are plain values, as `name=value;name=value`.
ESKER_MUST_USE
esker_error *esker_db_family_settings(const esker_db *db,
                                      const esker_family *family,
                                      esker_buffer *settings);

// Changes settings of a family while it is open: `name=value;name=value`, all or, on an error, none. They are stored with the
// database. docs/tuning.md says which can be changed.
ESKER_MUST_USE
esker_error *esker_db_change_family_settings(const esker_db *db,
                                             const esker_family *family,
                                             const char *settings);

// Takes a snapshot of now.
ESKER_MUST_USE esker_error *esker_snapshot_create(const esker_db *db, esker_snapshot **snapshot);

// The last sequence number that it sees; 0 for null.
uint64_t esker_snapshot_sequence(const esker_snapshot *snapshot);

// Frees a snapshot.
void esker_snapshot_free(esker_snapshot *snapshot);

// The defaults.
esker_read_options *esker_read_options_create(void);

// Frees settings. Iterators that were made with them keep what they need.
void esker_read_options_free(esker_read_options *options);

// Reads see what this snapshot sees, which they share from here on; null: all that was written before they began.
void esker_read_options_set_snapshot(esker_read_options *options,
                                     const esker_snapshot *snapshot);

// The first key that an iterator may give, and the first key past its end; both are copied. Data that is null: none.
ESKER_MUST_USE
esker_error *esker_read_options_set_bounds(esker_read_options *options,
                                           esker_slice lower,
                                           esker_slice upper);

// Whether checksums of blocks are verified. Default: yes.
void esker_read_options_set_verify_checksums(esker_read_options *options, bool verify);

// Whether blocks that are read enter the block cache. Default: yes.
void esker_read_options_set_fill_cache(esker_read_options *options, bool fill);

// Whether an iterator stays within the prefix of the key it was last positioned to, as the family's `prefix_extractor` gives it.
// Default: no.
void esker_read_options_set_prefix_same(esker_read_options *options,
                                        bool same);

// Bytes to read ahead when scanning; 0, the default: grows by itself.
void esker_read_options_set_readahead_bytes(esker_read_options *options, size_t bytes);

// The defaults.
esker_write_options *esker_write_options_create(void);

// Frees settings.
void esker_write_options_free(esker_write_options *options);

// How safe the write is when it returns. Error: `ESKER_INVALID_ARGUMENT` for an unknown number.
ESKER_MUST_USE
esker_error *esker_write_options_set_durability(esker_write_options *options,
                                                esker_durability wanted);

// Whether a write fails with `ESKER_RETRY` where it would have to wait for background work. Default: no.
void esker_write_options_set_no_wait(esker_write_options *options, bool no_wait);

// Whether a write to a database of transactions asks none of them: for bulk loads of what no transaction touches. Default: no.
void esker_write_options_set_unlocked(esker_write_options *options,
                                      bool unlocked);

// Sets `key` to `value`. Errors: `ESKER_INVALID_ARGUMENT` past a limit (64 KiB a key, 4 GiB - 1 a value), `ESKER_IO`,
// `ESKER_NO_SPACE`, `ESKER_READ_ONLY`, `ESKER_RETRY`; in a database of transactions those of their locks.
ESKER_MUST_USE
esker_error *esker_db_put(const esker_db *db,
                          const esker_family *family,
                          esker_slice key,
                          esker_slice value,
                          const esker_write_options *options);

// Removes `key`. Errors: as `esker_db_put`.
ESKER_MUST_USE
esker_error *esker_db_delete(const esker_db *db,
                             const esker_family *family,
                             esker_slice key,
                             const esker_write_options *options);

// Removes a key that was put once: only for keys that are put and single-deleted in turns, never overwritten, deleted or merged
// in between. Errors: as `esker_db_put`.
ESKER_MUST_USE
esker_error *esker_db_single_delete(const esker_db *db,
                                    const esker_family *family,
                                    esker_slice key,
                                    const esker_write_options *options);

// Applies the merge operator's `operand` to `key`. Without an operator reads of the key fail. Errors: as `esker_db_put`.
ESKER_MUST_USE
esker_error *esker_db_merge(const esker_db *db,
                            const esker_family *family,
                            esker_slice key,
                            esker_slice operand,
                            const esker_write_options *options);

// Removes all keys from `start` up to `end` (exclusive), at the cost of one entry. Errors: as `esker_db_put`.
ESKER_MUST_USE
esker_error *esker_db_delete_range(const esker_db *db,
                                   const esker_family *family,
                                   esker_slice start,
                                   esker_slice end,
                                   const esker_write_options *options);

// Commits a batch: all of it becomes visible together. On success it is empty again, on failure as it was. Errors: as
// `esker_db_put`.
ESKER_MUST_USE
esker_error *esker_db_write(const esker_db *db,
                            esker_batch *batch,
                            const esker_write_options *options);

// Commits a batch that holds the same afterwards, so that it can be committed again. In a database of transactions it is copied for
// that. Errors: as `esker_db_put`.
ESKER_MUST_USE
esker_error *esker_db_write_and_keep(const esker_db *db,
                                     esker_batch *batch,
                                     const esker_write_options *options);

// An empty batch.
esker_batch *esker_batch_create(void);

// Frees a batch.
void esker_batch_free(esker_batch *batch);

// Empties it, save points included, and keeps its memory.
void esker_batch_clear(esker_batch *batch);

// Sets `key` to `value`. Error: `ESKER_INVALID_ARGUMENT` past a limit (64 KiB a key, 4 GiB - 1 a value, 4 GiB a batch); the batch is
// as it was then.
ESKER_MUST_USE
esker_error *esker_batch_put(esker_batch *batch,
                             const esker_family *family,
                             esker_slice key,
                             esker_slice value);

// Removes `key`. Error: as `esker_batch_put`.
ESKER_MUST_USE
esker_error *esker_batch_delete(esker_batch *batch,
                                const esker_family *family,
                                esker_slice key);

// Removes a key that was put once, as `esker_db_single_delete`. Error: as `esker_batch_put`.
ESKER_MUST_USE
esker_error *esker_batch_single_delete(esker_batch *batch,
                                       const esker_family *family,
                                       esker_slice key);

// Applies the merge operator's `operand` to `key`. Error: as `esker_batch_put`.
ESKER_MUST_USE
esker_error *esker_batch_merge(esker_batch *batch,
                               const esker_family *family,
                               esker_slice key,
                               esker_slice operand);

// Removes all keys from `start` up to `end` (exclusive). Error: as `esker_batch_put`.
ESKER_MUST_USE
esker_error *esker_batch_delete_range(esker_batch *batch,
                                      const esker_family *family,
                                      esker_slice start,
                                      esker_slice end);

// Adds all that `other` holds, which may be itself, behind its own. Error: as `esker_batch_put`.
ESKER_MUST_USE esker_error *esker_batch_append(esker_batch *batch, const esker_batch *other);

// Mutations in it.
size_t esker_batch_count(const esker_batch *batch);

// Size of its encoding in bytes.
size_t esker_batch_size_bytes(const esker_batch *batch);

// Remembers where it ends now, on top of earlier save points.
ESKER_MUST_USE esker_error *esker_batch_set_save_point(esker_batch *batch);

// Takes back all that was added since the last save point, and forgets that one. False if there is none.
bool esker_batch_roll_back_to_save_point(esker_batch *batch);

// Forgets the last save point. False if there is none.
bool esker_batch_pop_save_point(esker_batch *batch);

// Shows what it holds, in order.
ESKER_MUST_USE
esker_error *esker_batch_visit(const esker_batch *batch,
                               esker_visit_mutation visit,
                               void *state);

// One that holds nothing.
esker_value *esker_value_create(void);

// Frees it with what it holds.
void esker_value_free(esker_value *value);

// Lets go of what it holds.
void esker_value_reset(esker_value *value);

// What it holds, until it is used again or freed; data is null if it holds nothing.
esker_slice esker_value_slice(const esker_value *value);

// Finds the value of `key` (which may be what `value` holds): `value` holds it from then on, and `slice` (may be null) says where it is. Data is null if the key has none,
// which is no error; of an empty value it is not. Costs one storage read at most where filters and indexes are in memory.
// Errors: `ESKER_IO`, `ESKER_CORRUPTION`, `ESKER_CLOSED`; `value` holds nothing then.
ESKER_MUST_USE
esker_error *esker_db_get(const esker_db *db,
                          const esker_family *family,
                          esker_slice key,
                          const esker_read_options *options,
                          esker_value *value,
                          esker_slice *slice);

// One that holds nothing.
esker_values *esker_values_create(void);

// Frees it with what it holds.
void esker_values_free(esker_values *values);

// What it holds, in the order of the keys, until it is used again or freed; `count` is set to how many. Data is null for keys
// without a value.
const esker_slice *esker_values_items(const esker_values *values,
                                      size_t *count);

// Finds the values of `count` keys, all as of one moment: blocks that are needed are read together. Keys may come in any order and
// more than once. Errors: as `esker_db_get`, if one of them fails; `values` holds nothing then.
ESKER_MUST_USE
esker_error *esker_db_multi_get(const esker_db *db,
                                const esker_family *family,
                                const esker_slice *keys,
                                size_t count,
                                const esker_read_options *options,
                                esker_values *values);

// Whether `key` may have a value: false is certain, true a guess from memtables and filters, without a block read.
ESKER_MUST_USE
esker_error *esker_db_key_may_exist(const esker_db *db,
                                    const esker_family *family,
                                    esker_slice key,
                                    bool *may_exist);

// Whether `key` was written since the snapshot was taken.
ESKER_MUST_USE
esker_error *esker_db_changed_since(const esker_db *db,
                                    const esker_family *family,
                                    esker_slice key,
                                    const esker_snapshot *snapshot,
                                    bool *changed);

// Whether any key from `start` up to `end` (exclusive; data is null: to the last key) was written since the snapshot was taken.
ESKER_MUST_USE
esker_error *esker_db_range_changed_since(const esker_db *db,
                                          const esker_family *family,
                                          esker_range range,
                                          const esker_snapshot *snapshot,
                                          bool *changed);

// Makes an iterator over a family.
ESKER_MUST_USE
esker_error *esker_iterator_create(const esker_db *db,
                                   const esker_family *family,
                                   const esker_read_options *options,
                                   esker_iterator **iterator);

// Makes iterators over `count` families that see them all as of the same moment: `iterators` has room for as many, and is set to
// null where there is an error. A null among the families is `default`.
ESKER_MUST_USE
esker_error *esker_iterator_create_many(const esker_db *db,
                                        const esker_family *const *families,
                                        size_t count,
                                        const esker_read_options *options,
                                        esker_iterator **iterators);

// Frees an iterator.
void esker_iterator_free(esker_iterator *iterator);

// Narrows what it may give to the keys from `lower` on, up to `upper` without it (data is null: as its options say). Bounds of the
// options stay in force beside these, which replace those of an earlier call. It stands on no row afterwards. Much cheaper than
// another iterator.
ESKER_MUST_USE
esker_error *esker_iterator_set_bounds(esker_iterator *iterator,
                                       esker_slice lower,
                                       esker_slice upper);

// Moves to the first row within the bounds. `row` (may be null) is set to it, or to a null key if there is none; the bytes stay until the
// iterator is moved or freed. After an error it stands on no row and may be positioned again. All of the following do the same.
// Errors: `ESKER_IO`, `ESKER_CORRUPTION`, `ESKER_CLOSED`.
ESKER_MUST_USE
esker_error *esker_iterator_seek_to_first(esker_iterator *iterator,
                                          esker_row *row);

// Moves to the last row within the bounds.
ESKER_MUST_USE esker_error *esker_iterator_seek_to_last(esker_iterator *iterator, esker_row *row);

// Moves to the first row whose key is `key` or follows it. The key may be the one that it stands on.
ESKER_MUST_USE esker_error *esker_iterator_seek(esker_iterator *iterator, esker_slice key, esker_row *row);

// Moves to the last row whose key is `key` or precedes it. As `esker_iterator_seek`.
ESKER_MUST_USE
esker_error *esker_iterator_seek_for_prev(esker_iterator *iterator,
                                          esker_slice key,
                                          esker_row *row);

// Moves to the next row; does nothing while it stands on none.
ESKER_MUST_USE esker_error *esker_iterator_next(esker_iterator *iterator, esker_row *row);

// Moves to the previous row; does nothing while it stands on none.
ESKER_MUST_USE esker_error *esker_iterator_prev(esker_iterator *iterator, esker_row *row);

// The row it stands on; a null key if there is none.
esker_row esker_iterator_row(const esker_iterator *iterator);

// Shows the rows of now (or of the options' snapshot). Not positioned afterwards. For an iterator of a transaction:
// `esker_transaction_refresh_iterator`.
ESKER_MUST_USE
esker_error *esker_iterator_refresh(esker_iterator *iterator);

// Brings everything written so far, in all families, into tables, and waits for it.
ESKER_MUST_USE esker_error *esker_db_flush(const esker_db *db);

// Brings what was written to one family into tables, and waits for it.
ESKER_MUST_USE esker_error *esker_db_flush_family(const esker_db *db, const esker_family *family);

// Merges all data of a family from `start` to `end` (inclusive; data is null: open) down to the deepest level that holds any, and
// waits for it. Reads and writes go on meanwhile.
ESKER_MUST_USE
esker_error *esker_db_compact_range(const esker_db *db,
                                    const esker_family *family,
                                    esker_slice start,
                                    esker_slice end);

// Whether no flush and no compaction runs or is due. Fails with the error of the job that fails, if one does.
ESKER_MUST_USE esker_error *esker_db_is_idle(const esker_db *db, bool *idle);

// Waits until no flush and no compaction runs or is due. Returns at once while background work is paused, and with the error of
// the job that fails, if one does.
ESKER_MUST_USE
esker_error *esker_db_wait_idle(const esker_db *db);

// Starts no more background jobs and waits for those that run; writes wait once memory is full. Calls nest.
ESKER_MUST_USE esker_error *esker_db_pause_background_work(const esker_db *db);

// Undoes one `esker_db_pause_background_work`.
ESKER_MUST_USE esker_error *esker_db_resume_background_work(const esker_db *db);

// Starts the background work of a database that was opened without it (`esker_options_set_background_work`); otherwise does nothing.
ESKER_MUST_USE
esker_error *esker_db_start_background_work(const esker_db *db);

// Sets the durability of writes that name none. Error: `ESKER_INVALID_ARGUMENT` for `ESKER_DURABILITY_DEFAULT` or an unknown number.
ESKER_MUST_USE
esker_error *esker_db_set_durability(const esker_db *db,
                                     esker_durability wanted);

// Sets the rate at which background work may write, in bytes a second; 0: no limit.
ESKER_MUST_USE esker_error *esker_db_set_background_bytes_per_second(const esker_db *db, uint64_t rate);

// The defaults.
esker_checkpoint_options *esker_checkpoint_options_create(void);

// Frees options.
void esker_checkpoint_options_free(esker_checkpoint_options *options);

// Bytes of the log that are copied at most; where more would have to be, memtables are written into tables of the copy. 0 always
// does that. Default: 64 MiB.
void esker_checkpoint_options_set_wal_bytes_max(esker_checkpoint_options *options,
                                                uint64_t bytes);

// Makes a copy of the database as it is now in the new folder `path`, by links where it can, durable when it returns. Options and
// `checkpoint` may be null.
// Errors: `ESKER_INVALID_ARGUMENT` (`path` exists, or the folder around it does not), `ESKER_LOCKED`, `ESKER_IO`, `ESKER_NO_SPACE`;
// there is no `path` then.
ESKER_MUST_USE
esker_error *esker_db_checkpoint(const esker_db *db,
                                 const char *path,
                                 const esker_checkpoint_options *options,
                                 esker_checkpoint *checkpoint);

// Drops the tables of a family that lie inside one of `count` ranges with all their keys, at once and durably: no delete, as rows of
// the ranges stay that are elsewhere, and snapshots don't hold tables back. For ranges that nobody reads any more, before a range
// delete. `deleted` may be null.
ESKER_MUST_USE
esker_error *esker_db_delete_files_in_ranges(const esker_db *db,
                                             const esker_family *family,
                                             const esker_range *ranges,
                                             size_t count,
                                             esker_deleted_files *deleted);

// Brings a family, as it is now, into the new folder `path`, from which `esker_family_import` makes it a family of this or another
// database; by links where it can, durable when it returns. What is prepared is not in it. `exported` may be null.
// Errors: `ESKER_INVALID_ARGUMENT` (`path` exists, or the folder around it does not; the family was dropped), `ESKER_LOCKED` (somebody is
// making the same export), `ESKER_IO`, `ESKER_NO_SPACE`; there is no `path` then.
ESKER_MUST_USE
esker_error *esker_family_export(const esker_db *db,
                                 const esker_family *family,
                                 const char *path,
                                 esker_exported *exported);

// The defaults.
esker_import_options *esker_import_options_create(void);

// Frees options.
void esker_import_options_free(esker_import_options *options);

// Whether the export is removed once its files are part of the database. Otherwise, which is the default, the database shares them:
// they must not be changed, and may be removed.
void esker_import_options_set_move_files(esker_import_options *options,
                                         bool move_files);

// Settings of the family, which are copied, in place of those that it was exported with; null: those. Key order and merge operator must be
// the same ones; where they are of the program's own, they must be given here.
void esker_import_options_set_family_options(esker_import_options *options,
                                             const esker_family_options *family);

// Makes what `esker_family_export` brought into the folder `path` the new family `name`: at one moment, and durable when it returns.
// Snapshots and iterators of before see nothing of it. Options and `imported` may be null.
// Errors: `ESKER_INVALID_ARGUMENT` (there is no export in `path`; the name is taken, empty or over-long; another key order or merge
// operator than the rows were written with; settings out of range), `ESKER_CORRUPTION`, `ESKER_UNSUPPORTED`, `ESKER_IO`,
// `ESKER_NO_SPACE`; database and export are then as they were.
ESKER_MUST_USE
esker_error *esker_family_import(const esker_db *db,
                                 const char *name,
                                 const char *path,
                                 const esker_import_options *options,
                                 esker_family **family,
                                 esker_imported *imported);

// Begins a table in the new file `path`. Of the options (null: the defaults) the key order must be that of the family which will
// ingest the table; those of blocks, filters and compression say how it is written. env: null for the real machine.
// Errors: `ESKER_INVALID_ARGUMENT` if the file exists or an option is out of range; `ESKER_IO`.
ESKER_MUST_USE
esker_error *esker_table_writer_create(const esker_env *env,
                                       const char *path,
                                       const esker_family_options *options,
                                       esker_table_writer **writer);

// Frees a writer. A table that was not finished is removed.
void esker_table_writer_free(esker_table_writer *writer);

// Sets `key`, which must come behind all keys before it. Errors: `ESKER_INVALID_ARGUMENT` if it does not, or key or value is too
// long: nothing was written then; `ESKER_IO`, after which nothing more can be.
ESKER_MUST_USE
esker_error *esker_table_writer_put(esker_table_writer *writer,
                                    esker_slice key,
                                    esker_slice value);

// Removes `key` from the database. As `esker_table_writer_put`.
ESKER_MUST_USE esker_error *esker_table_writer_delete(esker_table_writer *writer, esker_slice key);

// Applies `operand` to what the database has of `key`. As `esker_table_writer_put`.
ESKER_MUST_USE
esker_error *esker_table_writer_merge(esker_table_writer *writer,
                                      esker_slice key,
                                      esker_slice operand);

// Removes all keys from `start` up to `end` (exclusive) that the database has; not those of this table. In any order.
ESKER_MUST_USE
esker_error *esker_table_writer_delete_range(esker_table_writer *writer,
                                             esker_slice start,
                                             esker_slice end);

// About what the file would take if it were finished now, in bytes.
uint64_t esker_table_writer_estimated_bytes(const esker_table_writer *writer);

// Completes the file and makes it durable; the writer can only be freed then, also after an error, which removes the file. `table`
// may be null. Error: `ESKER_INVALID_ARGUMENT` if nothing was written to it.
ESKER_MUST_USE
esker_error *esker_table_writer_finish(esker_table_writer *writer,
                                       esker_table_file *table);

// One without tables.
esker_ingestion *esker_ingestion_create(void);

// Frees it.
void esker_ingestion_free(esker_ingestion *ingestion);

// Adds a table for a family of the database. Of a key in several of a family's tables the last one counts.
ESKER_MUST_USE
esker_error *esker_ingestion_add(esker_ingestion *ingestion,
                                 const esker_db *db,
                                 const esker_family *family,
                                 const char *path);

// Whether the files are removed from where they are, once they are part of the database. Otherwise, which is the default, the
// database shares them: they must not be changed, and may be removed.
void esker_ingestion_set_move_files(esker_ingestion *ingestion,
                                    bool move_files);

// Whether the rows come in behind all that is there: of a key that has a value the row of the file is left out. As of one moment; what
// compactions have done makes no difference. Default: no. A row costs a look into filters and memtables, and a read if they don't
// deny its key. Refused (`ESKER_INVALID_ARGUMENT`, by `esker_db_ingest`) are files with deletes, and files that overlap.
void esker_ingestion_set_behind(esker_ingestion *ingestion,
                                bool behind);

// Makes the tables part of the database, all or none, newer than everything that was written before (or, with
// `esker_ingestion_set_behind`, older than all that is there), durable when it returns.
// `ingested` may be null.
// Errors: `ESKER_INVALID_ARGUMENT` (a file of another key order, that no table writer wrote, or with operands for a family that has
// no merge operator; no file), `ESKER_CORRUPTION`, `ESKER_IO`, `ESKER_NO_SPACE`; the database is then as it was.
ESKER_MUST_USE
esker_error *esker_db_ingest(const esker_db *db,
                             const esker_ingestion *ingestion,
                             esker_ingested *ingested);

// Names that `esker_db_property` knows. To be freed.
esker_names *esker_property_names(void);

// A property of a family, or of the whole database, as text. Errors: `ESKER_INVALID_ARGUMENT` for an unknown name, listing the known
// ones; `ESKER_IO`.
ESKER_MUST_USE
esker_error *esker_db_property(const esker_db *db,
                               const esker_family *family,
                               const char *name,
                               esker_buffer *value);

// All metrics as text in the OpenMetrics format (`application/openmetrics-text; version=1.0.0`), which Prometheus reads: counters and
// times since the opening, what there is now, and that by family and level.
ESKER_MUST_USE
esker_error *esker_db_metrics_text(const esker_db *db,
                                   esker_buffer *text);

// How things stand now.
ESKER_MUST_USE esker_error *esker_db_stats(const esker_db *db, esker_stats *stats);

// What writers or background work run into at the moment: an error as any other, to be freed; null if there is no trouble.
esker_error *esker_db_trouble(const esker_db *db);

// All counters. To be freed.
ESKER_MUST_USE esker_error *esker_db_counters(const esker_db *db, esker_counters **counters);

// The counters, until the list is freed; `count` is set to how many they are.
const esker_counter *esker_counters_items(const esker_counters *counters, size_t *count);

// Frees a list of counters.
void esker_counters_free(esker_counters *counters);

// About how many bytes of tables, blob files and memtables hold the keys of a range. Reads no data blocks.
ESKER_MUST_USE
esker_error *esker_db_approximate_size(const esker_db *db,
                                       const esker_family *family,
                                       esker_range range,
                                       uint64_t *bytes);

// About how many keys there are in a range. Reads no data blocks.
ESKER_MUST_USE
esker_error *esker_db_approximate_count(const esker_db *db,
                                        const esker_family *family,
                                        esker_range range,
                                        uint64_t *keys);

// The levels of a family. To be freed.
ESKER_MUST_USE
esker_error *esker_db_levels(const esker_db *db,
                             const esker_family *family,
                             esker_levels **levels);

// The levels, until the list is freed; `count` is set to how many they are.
const esker_level *esker_levels_items(const esker_levels *levels, size_t *count);

// Frees a list of levels.
void esker_levels_free(esker_levels *levels);

// How things stand now in each family. To be freed. `esker_db_levels` has the levels of one.
ESKER_MUST_USE esker_error *esker_db_family_stats(const esker_db *db, esker_family_stats_list **stats);

// The families, until the list is freed; `count` is set to how many they are.
const esker_family_stats *esker_family_stats_items(const esker_family_stats_list *stats, size_t *count);

// Frees a list of families' figures.
void esker_family_stats_free(esker_family_stats_list *stats);

// How long flushes, compactions, syncs and the like took. To be freed.
ESKER_MUST_USE esker_error *esker_db_histograms(const esker_db *db, esker_histograms **histograms);

// The histograms, until the list is freed; `count` is set to how many they are.
const esker_histogram *esker_histograms_items(const esker_histograms *histograms, size_t *count);

// Frees a list of histograms.
void esker_histograms_free(esker_histograms *histograms);

// The tables of a family that reach into the keys from `start` up to `end` (exclusive; data is null: open), level by level. To be
// freed. Errors: `ESKER_IO`, `ESKER_CORRUPTION`.
ESKER_MUST_USE
esker_error *esker_db_tables(const esker_db *db,
                             const esker_family *family,
                             esker_slice start,
                             esker_slice end,
                             esker_tables **tables);

// The tables, until the list is freed; `count` is set to how many they are.
const esker_table *esker_tables_items(const esker_tables *tables, size_t *count);

// Frees a list of tables.
void esker_tables_free(esker_tables *tables);

// The defaults.
esker_verify_options *esker_verify_options_create(void);

// Frees options.
void esker_verify_options_free(esker_verify_options *options);

// Adds an order of keys of the program's own, which column families have by its name: without it their tables are not read, which a
// note says. On success `state` is the library's. Error: `ESKER_INVALID_ARGUMENT` without a name or function.
ESKER_MUST_USE
esker_error *esker_verify_options_add_comparator(esker_verify_options *options,
                                                 const esker_comparator *comparator);

// Reads every file that the database in `path` needs and checks all that can be checked; it need not be closed. Damages are no error of
// the call: `verified` (may be null) counts the files that have some. env: null for the real machine; options: null for the defaults.
// Errors: those of the folder, or of the manifest, without which nothing can be checked.
ESKER_MUST_USE
esker_error *esker_verify(const esker_env *env,
                          const char *path,
                          const esker_verify_options *options,
                          esker_visit_file visit,
                          void *state,
                          esker_verified *verified);

// The defaults.
esker_repair_options *esker_repair_options_create(void);

// Frees options.
void esker_repair_options_free(esker_repair_options *options);

// Whether a repair only looks, and says what it would do: nothing is changed, and no lock is taken. Default: no.
void esker_repair_options_set_dry_run(esker_repair_options *options,
                                      bool dry_run);

// Adds an order of keys of the program's own, which column families have by its name. On success `state` is the library's.
// Error: `ESKER_INVALID_ARGUMENT` without a name or function.
ESKER_MUST_USE
esker_error *esker_repair_options_add_comparator(esker_repair_options *options,
                                                 const esker_comparator *comparator);

// Makes the database in the folder `path` one that opens again, of what can be read of its files, and says what is lost. No process may
// have it open. What can't be used is not removed but moved into the folder `lost` in it. Takes the time of reading all files, and that
// of writing those that are damaged. env: null for the real machine; options: null for the defaults. `repaired` is to be freed.
// Errors: `ESKER_NOT_FOUND` (there is no database), `ESKER_LOCKED` (it is open), `ESKER_INVALID_ARGUMENT` (a family has an order of keys
// that is neither built in nor given), `ESKER_UNSUPPORTED`, `ESKER_CORRUPTION` (nothing is left that says which database it was),
// `ESKER_IO` and `ESKER_NO_SPACE` (the repair can be begun again).
ESKER_MUST_USE
esker_error *esker_repair(const esker_env *env,
                          const char *path,
                          const esker_repair_options *options,
                          esker_repaired **repaired);

// What the repair found and did, until it is freed; null for null.
const esker_repair_report *esker_repaired_report(const esker_repaired *repaired);

// Frees a repair's report.
void esker_repaired_free(esker_repaired *repaired);

// Prepares a batch under a name: it is logged, as durable as the options say, and not visible. From then on it is there, over crashes
// and openings, until it is committed or rolled back by its name. On success the batch is empty again; on failure it is as it was, and
// nothing is prepared. It takes no locks: who may touch the rows meanwhile is the program's business.
// Errors: `ESKER_INVALID_ARGUMENT` for a name that is taken or has not 1 to 4,096 bytes, and for `ESKER_NO_LOG`; `ESKER_RETRY` if all
// prepared batches together would pass the memtables' part of the memory; those of a write.
ESKER_MUST_USE
esker_error *esker_db_prepare(const esker_db *db,
                              esker_slice name,
                              esker_batch *batch,
                              const esker_write_options *options);

// Commits what was prepared under this name, and behind it, together with it, the mutations of `more` (may be null), which is empty
// again on success. On failure it is prepared as it was.
// Errors: `ESKER_NOT_FOUND` if nothing is prepared under the name, as after a commit that is repeated; `ESKER_RETRY` if another thread
// commits or rolls it back; `ESKER_INVALID_ARGUMENT` for `ESKER_NO_LOG`; those of a write.
ESKER_MUST_USE
esker_error *esker_db_commit_prepared(const esker_db *db,
                                      esker_slice name,
                                      esker_batch *more,
                                      const esker_write_options *options);

// Forgets what was prepared under this name. Errors: as `esker_db_commit_prepared`.
ESKER_MUST_USE
esker_error *esker_db_roll_back_prepared(const esker_db *db,
                                         esker_slice name,
                                         const esker_write_options *options);

// All that is prepared, by name; after an opening that is what a coordinator has to decide. To be freed.
ESKER_MUST_USE esker_error *esker_db_prepared(const esker_db *db, esker_prepared_list **prepared);

// What is prepared under this name: a list of one, or of none. To be freed.
ESKER_MUST_USE
esker_error *esker_db_prepared_named(const esker_db *db,
                                     esker_slice name,
                                     esker_prepared_list **prepared);

// The prepared batches, until the list is freed; `count` is set to how many they are.
const esker_prepared *esker_prepared_items(const esker_prepared_list *prepared, size_t *count);

// Shows what the batch at `index` of the list would change, in order.
ESKER_MUST_USE
esker_error *esker_prepared_visit(const esker_prepared_list *prepared,
                                  size_t index,
                                  esker_visit_mutation visit,
                                  void *state);

// Frees a list of prepared batches.
void esker_prepared_free(esker_prepared_list *prepared);

// The defaults: transactions that lock.
esker_transaction_settings *esker_transaction_settings_create(void);

// Frees settings.
void esker_transaction_settings_free(esker_transaction_settings *settings);

// Whether transactions take no locks and find out at their commit whether others were faster. Default: no.
void esker_transaction_settings_set_optimistic(esker_transaction_settings *settings, bool optimistic);

// Sets a number by name: `shards` of the lock table (a power of two, 4096 at most; 64), `max_locks` (4 Mi), `lock_timeout_us` (how long a
// request waits that says nothing else, `ESKER_TIMEOUT_NEVER` for ever; 1,000,000), `deadlock_depth` (transactions in the longest circle
// of waiters that is looked for, 0: none; 64), `deadlocks_kept` (16), `overtakes` (how many that come later take a free key while the
// thread wakes up whose turn it is, 0: none, in order of arrival; 16), `max_write_set_bytes` (how much one transaction may write; 1 GiB).
// Error: `ESKER_INVALID_ARGUMENT` for an unknown name.
ESKER_MUST_USE
esker_error *esker_transaction_settings_set(esker_transaction_settings *settings,
                                            const char *name,
                                            uint64_t value);

// The defaults.
esker_transaction_options *esker_transaction_options_create(void);

// Frees settings.
void esker_transaction_options_free(esker_transaction_options *options);

// What its reads see. Default: `ESKER_READ_COMMITTED`. Error: `ESKER_INVALID_ARGUMENT` for an unknown number.
ESKER_MUST_USE
esker_error *esker_transaction_options_set_isolation(esker_transaction_options *options,
                                                     esker_isolation isolation);

// Whether a transaction with `ESKER_REPEATABLE_READ` takes its snapshot when it begins. Default: no, with the first read, or when the first
// lock was granted.
void esker_transaction_options_set_snapshot_at_begin(esker_transaction_options *options,
                                                     bool at_begin);

// How long it waits for a lock, in microseconds: 0 does not wait, `ESKER_TIMEOUT_NEVER` for ever, `ESKER_TIMEOUT_DEFAULT` as the
// settings of the database say.
void esker_transaction_options_set_lock_timeout_us(esker_transaction_options *options,
                                                   uint64_t microseconds);

// Whether a request that closes a circle of waiters is refused at once; else all in the circle wait for their time limits.
// Default: yes.
void esker_transaction_options_set_deadlock_detection(esker_transaction_options *options,
                                                      bool detection);

// What lists of transactions show it as; null: nothing.
ESKER_MUST_USE
esker_error *esker_transaction_options_set_label(esker_transaction_options *options,
                                                 const char *label);

// How it is committed; null: as the database's defaults say.
void esker_transaction_options_set_write_options(esker_transaction_options *options,
                                                 const esker_write_options *write);

// Begins a transaction of a database that was opened for them. Options: null for the defaults.
// Error: `ESKER_INVALID_ARGUMENT` if the database was opened without transactions.
ESKER_MUST_USE
esker_error *esker_transaction_begin(const esker_db *db,
                                     const esker_transaction_options *options,
                                     esker_transaction **transaction);

// Frees a transaction. If it is active, it is rolled back; if it is prepared, it stays so.
void esker_transaction_free(esker_transaction *transaction);

// Makes this object another transaction of the same database, with the memory of the one before; what that one has not committed is
// rolled back, or stays prepared.
ESKER_MUST_USE
esker_error *esker_transaction_restart(esker_transaction *transaction,
                                       const esker_transaction_options *options);

// Makes its writes visible to all at one moment, as durable as its options say, and ends it. Errors: those of a write, for an
// optimistic transaction `ESKER_CONFLICT` as well; nothing is written then, and it is still active, with all its locks.
ESKER_MUST_USE
esker_error *esker_transaction_commit(esker_transaction *transaction);

// Forgets its writes, gives its locks back and ends it. Nothing to do for one that has ended. Errors: none, unless it is prepared: then
// those of a write, and it is prepared as before.
ESKER_MUST_USE
esker_error *esker_transaction_roll_back(esker_transaction *transaction);

// Remembers what is written and locked now, on top of earlier save points.
ESKER_MUST_USE esker_error *esker_transaction_set_save_point(esker_transaction *transaction);

// Takes back all that was written and locked since the last save point, and forgets that one; the snapshot stays. `done` (may be
// null) is set to whether there was one.
ESKER_MUST_USE
esker_error *esker_transaction_roll_back_to_save_point(esker_transaction *transaction,
                                                       bool *done);

// Forgets the last save point, and keeps what was written and locked since. `done` (may be null) is set to whether there was one.
ESKER_MUST_USE
esker_error *esker_transaction_pop_save_point(esker_transaction *transaction,
                                              bool *done);

// Its number, which no other transaction of this opening of the database has or had; 0 for null.
uint64_t esker_transaction_id(const esker_transaction *transaction);

// What its options call it, until it is restarted or freed; data is null if they don't.
esker_slice esker_transaction_label(const esker_transaction *transaction);

// What its plain reads see.
esker_isolation esker_transaction_isolation(const esker_transaction *transaction);

// Whether it has neither been committed nor rolled back.
bool esker_transaction_is_active(const esker_transaction *transaction);

// Locks that it holds; of an optimistic one, keys and ranges that its commit will ask about.
size_t esker_transaction_lock_count(const esker_transaction *transaction);

// Mutations that it would commit.
size_t esker_transaction_write_count(const esker_transaction *transaction);

// What it has written, as `max_write_set_bytes` counts it.
size_t esker_transaction_write_bytes(const esker_transaction *transaction);

// Memory that its writes take, in bytes.
size_t esker_transaction_memory_bytes(const esker_transaction *transaction);

// Whether it has written `key` itself (range deletes do not count).
ESKER_MUST_USE
esker_error *esker_transaction_has_written(const esker_transaction *transaction,
                                           const esker_family *family,
                                           esker_slice key,
                                           bool *written);

// Shows what it would commit, in order.
ESKER_MUST_USE
esker_error *esker_transaction_visit(const esker_transaction *transaction,
                                     esker_visit_mutation visit,
                                     void *state);

// The snapshot since which nobody else may have written what it writes or locks: a handle of its own, to be freed; null if it has
// none.
esker_snapshot *esker_transaction_snapshot(const esker_transaction *transaction);

// Takes a snapshot of now, in place of an earlier one. Under `ESKER_READ_COMMITTED` writes and locks are then checked against it, and
// reads still see what is newest.
ESKER_MUST_USE
esker_error *esker_transaction_set_snapshot(esker_transaction *transaction);

// Gives the snapshot up. Under `ESKER_REPEATABLE_READ` the next operation takes another one.
ESKER_MUST_USE esker_error *esker_transaction_clear_snapshot(esker_transaction *transaction);

// What ends waits for locks of this object's transactions, all that it becomes included: to be freed, before or after it. Each call
// gives a handle to the same one. Null for null.
esker_interrupter *esker_transaction_interrupter(esker_transaction *transaction);

// Refuses the lock that the transaction waits for, and each that it would have to wait for, with `ESKER_INTERRUPTED`, until
// `esker_interrupter_clear`. Locks that are free are granted all the same. From any thread.
void esker_interrupter_request(const esker_interrupter *interrupter);

// Lets waits go on as if nobody had asked.
void esker_interrupter_clear(const esker_interrupter *interrupter);

// Whether waits are refused.
bool esker_interrupter_is_requested(const esker_interrupter *interrupter);

// Frees a handle to an interrupter.
void esker_interrupter_free(esker_interrupter *interrupter);

// Changes how long it waits for a lock, in microseconds, as `esker_transaction_options_set_lock_timeout_us`.
ESKER_MUST_USE
esker_error *esker_transaction_set_lock_timeout_us(esker_transaction *transaction,
                                                   uint64_t microseconds);

// Sets `key` to `value`, under an exclusive lock. Errors: `ESKER_TIMED_OUT`, `ESKER_DEADLOCK`, `ESKER_LOCK_LIMIT` and
// `ESKER_INTERRUPTED` of the lock; `ESKER_WRITE_LIMIT` past `max_write_set_bytes`;
// `ESKER_CONFLICT` if there is a snapshot and the key was written since; `ESKER_INVALID_ARGUMENT` past a limit, and if it has ended.
ESKER_MUST_USE
esker_error *esker_transaction_put(esker_transaction *transaction,
                                   const esker_family *family,
                                   esker_slice key,
                                   esker_slice value);

// Removes `key`, under an exclusive lock. Errors: as `esker_transaction_put`.
ESKER_MUST_USE
esker_error *esker_transaction_delete(esker_transaction *transaction,
                                      const esker_family *family,
                                      esker_slice key);

// Removes a key that was put once, as `esker_db_single_delete`, under an exclusive lock. Errors: as `esker_transaction_put`.
ESKER_MUST_USE
esker_error *esker_transaction_single_delete(esker_transaction *transaction,
                                             const esker_family *family,
                                             esker_slice key);

// Applies the merge operator's `operand` to `key`, under an exclusive lock. Errors: as `esker_transaction_put`.
ESKER_MUST_USE
esker_error *esker_transaction_merge(esker_transaction *transaction,
                                     const esker_family *family,
                                     esker_slice key,
                                     esker_slice operand);

// Removes all keys from `start` up to `end` (exclusive), under an exclusive lock of the range. Errors: as
// `esker_transaction_put`.
ESKER_MUST_USE
esker_error *esker_transaction_delete_range(esker_transaction *transaction,
                                            const esker_family *family,
                                            esker_slice start,
                                            esker_slice end);

// `esker_transaction_put` without lock and without check, for keys that the caller knows nobody else to touch. Conflict checks of
// others see it. Error: `ESKER_INVALID_ARGUMENT`, as there.
ESKER_MUST_USE
esker_error *esker_transaction_put_untracked(esker_transaction *transaction,
                                             const esker_family *family,
                                             esker_slice key,
                                             esker_slice value);

// `esker_transaction_delete`, as `esker_transaction_put_untracked`.
ESKER_MUST_USE
esker_error *esker_transaction_delete_untracked(esker_transaction *transaction,
                                                const esker_family *family,
                                                esker_slice key);

// `esker_transaction_single_delete`, as `esker_transaction_put_untracked`.
ESKER_MUST_USE
esker_error *esker_transaction_single_delete_untracked(esker_transaction *transaction,
                                                       const esker_family *family,
                                                       esker_slice key);

// `esker_transaction_merge`, as `esker_transaction_put_untracked`.
ESKER_MUST_USE
esker_error *esker_transaction_merge_untracked(esker_transaction *transaction,
                                               const esker_family *family,
                                               esker_slice key,
                                               esker_slice operand);

// `esker_transaction_delete_range`, as `esker_transaction_put_untracked`.
ESKER_MUST_USE
esker_error *esker_transaction_delete_range_untracked(esker_transaction *transaction,
                                                      const esker_family *family,
                                                      esker_slice start,
                                                      esker_slice end);

// The value of `key`, own writes included, as `esker_db_get` gives it. Takes no lock and waits for nobody. A snapshot among the
// options goes before that of the transaction.
ESKER_MUST_USE
esker_error *esker_transaction_get(esker_transaction *transaction,
                                   const esker_family *family,
                                   esker_slice key,
                                   const esker_read_options *options,
                                   esker_value *value,
                                   esker_slice *slice);

// The values of `count` keys, own writes included, all of one moment, as `esker_db_multi_get` gives them. Options: as for
// `esker_transaction_get`.
ESKER_MUST_USE
esker_error *esker_transaction_multi_get(esker_transaction *transaction,
                                         const esker_family *family,
                                         const esker_slice *keys,
                                         size_t count,
                                         const esker_read_options *options,
                                         esker_values *values);

// The value of `key`, which nobody else can write until this transaction ends, nor lock, if the mode is exclusive. So it is the newest
// there is. Errors: those of a get and of the lock; nothing is locked by it then.
ESKER_MUST_USE
esker_error *esker_transaction_get_for_update(esker_transaction *transaction,
                                              const esker_family *family,
                                              esker_slice key,
                                              esker_lock_mode mode,
                                              esker_value *value,
                                              esker_slice *slice);

// `esker_transaction_get_for_update` for several keys, which are locked in the order in which they come; on an error none is locked by
// it.
ESKER_MUST_USE
esker_error *esker_transaction_multi_get_for_update(esker_transaction *transaction,
                                                    const esker_family *family,
                                                    const esker_slice *keys,
                                                    size_t count,
                                                    esker_lock_mode mode,
                                                    esker_values *values);

// `esker_transaction_get_for_update` without the read.
ESKER_MUST_USE
esker_error *esker_transaction_lock_key(esker_transaction *transaction,
                                        const esker_family *family,
                                        esker_slice key,
                                        esker_lock_mode mode);

// Keeps others from writing any key of the range (an end with data null: to the last key) until this transaction ends, those that are
// not there as well. Costs time proportional to the locks that all hold. Errors: those of the lock; `ESKER_INVALID_ARGUMENT` for a range
// without keys.
ESKER_MUST_USE
esker_error *esker_transaction_lock_range(esker_transaction *transaction,
                                          const esker_family *family,
                                          esker_range range,
                                          esker_lock_mode mode);

// Undoes the last read for update, or lock, of `key` since the last save point, for a program that has found that it does not need
// the row. `undone` (may be null) is set to whether anything was given back: not, if the lock was held before, or the key was written.
ESKER_MUST_USE
esker_error *esker_transaction_undo_get_for_update(esker_transaction *transaction,
                                                   const esker_family *family,
                                                   esker_slice key,
                                                   bool *undone);

// Makes an iterator over a family as the transaction sees it now, own writes included; later ones are not until it is refreshed.
// Takes no lock.
ESKER_MUST_USE
esker_error *esker_transaction_iterator(esker_transaction *transaction,
                                        const esker_family *family,
                                        const esker_read_options *options,
                                        esker_iterator **iterator);

// Shows what an iterator of this transaction would see if it were made now. Not positioned afterwards.
ESKER_MUST_USE
esker_error *esker_transaction_refresh_iterator(esker_transaction *transaction,
                                                esker_iterator *iterator);

// Gives a transaction the name under which it will be prepared: any bytes, such as an XA transaction's. No other transaction of the
// database may have it until this one is committed or rolled back. Error: `ESKER_INVALID_ARGUMENT` if the name is in use or has not 1
// to 4,096 bytes, if the transaction has one or has ended, and for an optimistic one.
ESKER_MUST_USE
esker_error *esker_transaction_set_name(esker_transaction *transaction,
                                        esker_slice name);

// The name that it was given, until it ends or is freed; data is null without one.
esker_slice esker_transaction_name(const esker_transaction *transaction);

// Changes how its steps are written from now on: prepare, commit, and roll back once it is prepared. Null: the defaults.
ESKER_MUST_USE
esker_error *esker_transaction_set_write_options(esker_transaction *transaction,
                                                 const esker_write_options *options);

// Prepares it under its name: on success it survives crashes, as its write options say, keeps its locks, and can only be committed or
// rolled back. Freed or restarted it stays prepared, and `esker_transaction_take_prepared` gives it back. Errors: `ESKER_INVALID_ARGUMENT`
// if it has no name, is prepared or has ended; those of `esker_db_prepare`. It is active then, as it was.
ESKER_MUST_USE
esker_error *esker_transaction_prepare(esker_transaction *transaction);

// Whether it is prepared, and neither committed nor rolled back.
bool esker_transaction_is_prepared(const esker_transaction *transaction);

// The transactions that are prepared, by name: behind an opening, what a coordinator has to decide. To be freed.
// Error: `ESKER_INVALID_ARGUMENT` in a database without transactions that lock.
ESKER_MUST_USE
esker_error *esker_db_prepared_transactions(const esker_db *db,
                                            esker_prepared_transactions **prepared);

// The transactions, until the list is freed; `count` is set to how many they are.
const esker_prepared_transaction *esker_prepared_transactions_items(const esker_prepared_transactions *prepared,
                                                                    size_t *count);

// Frees a list of prepared transactions.
void esker_prepared_transactions_free(esker_prepared_transactions *prepared);

// The prepared transaction of this name, if no other object has it: it can be committed and rolled back, and nothing else. Freed, it
// stays prepared. Errors: `ESKER_NOT_FOUND` if nothing is prepared under the name; `ESKER_RETRY` if another object has it;
// `ESKER_INVALID_ARGUMENT` in a database without transactions that lock.
ESKER_MUST_USE
esker_error *esker_transaction_take_prepared(const esker_db *db,
                                             esker_slice name,
                                             esker_transaction **transaction);

// All locks that are held, by family and key; none in a database whose transactions take none. To be freed.
ESKER_MUST_USE esker_error *esker_db_locks(const esker_db *db, esker_locks **locks);

// The locks, until the list is freed; `count` is set to how many they are.
const esker_lock *esker_locks_items(const esker_locks *locks, size_t *count);

// Frees a list of locks.
void esker_locks_free(esker_locks *locks);

// All requests that wait for a lock, in the order in which they came. To be freed.
ESKER_MUST_USE esker_error *esker_db_waits(const esker_db *db, esker_waits **waits);

// The requests, until the list is freed; `count` is set to how many they are.
const esker_wait *esker_waits_items(const esker_waits *waits, size_t *count);

// Frees a list of requests.
void esker_waits_free(esker_waits *waits);

// The last deadlocks, as many as the settings keep, the oldest first. To be freed.
ESKER_MUST_USE esker_error *esker_db_deadlocks(const esker_db *db, esker_deadlocks **deadlocks);

// The deadlocks, until the list is freed; `count` is set to how many they are.
const esker_deadlock *esker_deadlocks_items(const esker_deadlocks *deadlocks, size_t *count);

// Frees a list of deadlocks.
void esker_deadlocks_free(esker_deadlocks *deadlocks);

// The transactions that run, in the order in which they began. To be freed.
ESKER_MUST_USE esker_error *esker_db_running(const esker_db *db, esker_running_list **running);

// The transactions, until the list is freed; `count` is set to how many they are.
const esker_running *esker_running_items(const esker_running_list *running, size_t *count);

// Frees a list of transactions that run.
void esker_running_free(esker_running_list *running);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ESKER_H */
