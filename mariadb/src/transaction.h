// The transaction of a connection: one object of the engine, used again for each, and what the server adds: statements that are undone
// alone, named save points, counters that go with a commit.
#pragma once

#include <atomic>
#include <vector>

#include "server.h"

namespace esker {

class Transaction {
 public:
  // Of this connection, made if it has none. Null if there is no memory.
  static Transaction *of(THD *thd);
  // Of this connection; null if it has none.
  static Transaction *find(THD *thd);
  static void forget(THD *thd);

  // Tells the server that the engine takes part in its statement, and begins what has not begun.
  int enter_statement(THD *thd);
  void add_table() { tables_++; }
  // The last table of the statement was given back: under READ COMMITTED the next statement sees what is new.
  void leave_statement();
  int begin(THD *thd, bool snapshot_now);

  int commit(THD *thd);
  int roll_back(THD *thd);
  int end_statement(THD *thd);
  int roll_back_statement(THD *thd);

  // Save points are numbered by how many are below them.
  int set_save_point(THD *thd, uint &number);
  int roll_back_to(THD *thd, uint number);
  int release_save_point(THD *thd, uint number);

  int prepare(THD *thd, View name);
  // The commit's place in the order of all; its error is kept for `commit`.
  void commit_in_order();

  esker_transaction *get() const { return transaction_; }
  bool is_active() const { return active_; }
  bool is_serializable() const { return serializable_; }
  bool is_read_committed() const { return read_committed_; }
  // What a read of this statement sees. Under READ COMMITTED each statement has a snapshot. From REPEATABLE READ on the first read that
  // does not lock takes one for all that come, and nothing can be locked then that others have written since; reads that lock have
  // one for their statement until then, as what they lock is read once more. Null for those of SERIALIZABLE: what they look at does not
  // change any more.
  int snapshot(THD *thd, bool locks, const esker_snapshot *&snapshot);
  // Options with that snapshot.
  int read_options(THD *thd, bool locks, const esker_read_options *&options);
  // The sequence number of the snapshot that all reads of the transaction see; 0 if it has none yet.
  uint64_t sequence() const { return esker_snapshot_sequence(snapshot_); }
  // Ends its wait for a lock, as its connection was told to give its statement up. From any thread.
  void interrupt() { esker_interrupter_request(interrupter_.load(std::memory_order_acquire)); }
  // Changes whenever an iterator of before must not be used any more.
  uint64_t epoch() const { return epoch_; }

  // `next` comes next in the auto_increment column, once this is committed.
  void note_auto_increment(uint32_t index_number, uint64_t next);

  // The key that the last write found taken. Of two partitions of a table the server may ask the one that did not find it.
  void note_duplicate(const TABLE_SHARE *table, uint key) {
    duplicate_table_ = table;
    duplicate_key_ = key;
  }
  uint duplicate_key(const TABLE_SHARE *table) const { return table == duplicate_table_ ? duplicate_key_ : MAX_KEY; }

 private:
  Transaction();
  ~Transaction();
  void ended();
  void release_snapshot();
  int add_counters(THD *thd);
  int roll_back_one(THD *thd);
  int take_snapshot(THD *thd);
  int end(THD *thd, esker_error *error, bool commits);

  esker_transaction *transaction_ = nullptr;
  esker_transaction_options *options_;
  std::atomic<esker_interrupter *> interrupter_ = nullptr;
  std::vector<esker_interrupter *> given_up_;      // of transactions that end later
  esker_read_options *read_options_;
  esker_snapshot *snapshot_ = nullptr;             // of the transaction
  esker_snapshot *statement_snapshot_ = nullptr;
  const esker_snapshot *seen_ = nullptr;           // among the read options
  esker_error *commit_error_ = nullptr;
  bool active_ = false, read_committed_ = false, serializable_ = false, committed_in_order_ = false;
  bool statement_point_ = false;      // the topmost save point is that of the statement
  uint depth_ = 0;                    // save points, that of the statement included
  uint tables_ = 0;                   // in use by the statement
  uint64_t epoch_ = 0;
  std::vector<std::pair<uint32_t, uint64_t>> counters_;
  const TABLE_SHARE *duplicate_table_ = nullptr;
  uint duplicate_key_ = MAX_KEY;
};

// Commits wait for the device or not, as esker_flush_log_at_trx_commit says.
void apply_durability();

// Commit, rollback, save points, prepare and what recovery needs.
void fill_transaction_calls(handlerton *hton);

}  // namespace esker
