// The transaction of a connection.
#include "transaction.h"

#include "decided.h"
#include "dictionary.h"
#include "engine.h"
#include "errors.h"
#include "variables.h"

namespace esker {

namespace {

bool spans_statements(THD *thd) { return thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN); }

}  // namespace

Transaction::Transaction()
    : options_(esker_transaction_options_create()), read_options_(esker_read_options_create()) {}

Transaction::~Transaction() {
  esker_transaction_free(transaction_);
  esker_transaction_options_free(options_);
  esker_interrupter_free(interrupter_);
  for (esker_interrupter *interrupter : given_up_) esker_interrupter_free(interrupter);
  esker_read_options_free(read_options_);
  esker_snapshot_free(snapshot_);
  esker_snapshot_free(statement_snapshot_);
  esker_error_free(commit_error_);
}

Transaction *Transaction::find(THD *thd) { return static_cast<Transaction *>(thd_get_ha_data(thd, engine_handlerton)); }

Transaction *Transaction::of(THD *thd) {
  Transaction *transaction = find(thd);
  if (transaction == nullptr) {
    transaction = new (std::nothrow) Transaction();
    if (transaction != nullptr) thd_set_ha_data(thd, engine_handlerton, transaction);
  }
  return transaction;
}

void Transaction::forget(THD *thd) {
  Transaction *transaction = find(thd);
  if (transaction == nullptr) return;
  thd_set_ha_data(thd, engine_handlerton, nullptr);
  delete transaction;
}

int Transaction::begin(THD *thd, bool snapshot_now) {
  if (active_) return 0;
  end_decided();
  const uint isolation = static_cast<uint>(thd_tx_isolation(thd));
  if (transaction_ == nullptr) {
    // What lists show it as.
    const Bytes label = std::to_string(thd_get_thread_id(thd));
    if (const int code = code_of(esker_transaction_options_set_label(options_, label.c_str()), thd)) return code;
  }
  read_committed_ = isolation <= ISO_READ_COMMITTED;
  serializable_ = isolation == ISO_SERIALIZABLE;
  esker_transaction_options_set_lock_timeout_us(options_, lock_wait_timeout_us(thd));
  const int code = code_of(transaction_ == nullptr ? esker_transaction_begin(db, options_, &transaction_)
                                                   : esker_transaction_restart(transaction_, options_),
                           thd);
  if (code != 0) return code;
  if (interrupter_ == nullptr) interrupter_ = esker_transaction_interrupter(transaction_);
  active_ = true;
  depth_ = 0;
  statement_point_ = false;
  epoch_++;
  // As in InnoDB only REPEATABLE READ knows such a beginning; serializable reads are of what nobody else may change any more.
  return snapshot_now && isolation == ISO_REPEATABLE_READ ? take_snapshot(thd) : 0;
}

int Transaction::enter_statement(THD *thd) {
  trans_register_ha(thd, false, engine_handlerton, 0);
  if (spans_statements(thd)) trans_register_ha(thd, true, engine_handlerton, 0);
  if (const int code = begin(thd, false)) return code;
  // An interruption of an earlier statement is over; one of this statement has told the server before it came here.
  esker_interrupter_clear(interrupter_);
  if (thd_killed(thd)) interrupt();
  if (!spans_statements(thd) || statement_point_) return 0;
  // The statement alone can be undone from here on.
  if (const int code = code_of(esker_transaction_set_save_point(transaction_), thd)) return code;
  depth_++;
  statement_point_ = true;
  return 0;
}

void Transaction::leave_statement() {
  if (tables_ > 0) tables_--;
  if (tables_ == 0) release_snapshot();
}

void Transaction::release_snapshot() {
  if (statement_snapshot_ == nullptr) return;
  esker_read_options_set_snapshot(read_options_, nullptr);
  seen_ = nullptr;
  esker_snapshot_free(statement_snapshot_);
  statement_snapshot_ = nullptr;
  epoch_++;
}

// What is locked or written from here on must not have been written by others behind it.
int Transaction::take_snapshot(THD *thd) {
  if (const int code = code_of(esker_transaction_set_snapshot(transaction_), thd)) return code;
  snapshot_ = esker_transaction_snapshot(transaction_);
  return 0;
}

int Transaction::snapshot(THD *thd, bool locks, const esker_snapshot *&snapshot) {
  snapshot = nullptr;
  if (serializable_ && locks) return 0;
  if (snapshot_ == nullptr && !read_committed_ && !locks) {
    if (const int code = take_snapshot(thd)) return code;
  }
  if (snapshot_ == nullptr && statement_snapshot_ == nullptr) {
    if (const int code = code_of(esker_snapshot_create(db, &statement_snapshot_), thd)) return code;
  }
  snapshot = snapshot_ != nullptr ? snapshot_ : statement_snapshot_;
  return 0;
}

int Transaction::read_options(THD *thd, bool locks, const esker_read_options *&options) {
  const esker_snapshot *seen;
  if (const int code = snapshot(thd, locks, seen)) return code;
  if (seen != seen_) esker_read_options_set_snapshot(read_options_, seen);
  seen_ = seen;
  options = read_options_;
  return 0;
}

void Transaction::note_auto_increment(uint32_t index_number, uint64_t next) {
  for (auto &[number, value] : counters_) {
    if (number == index_number) {
      value = std::max<uint64_t>(value, next);
      return;
    }
  }
  counters_.emplace_back(index_number, next);
}

int Transaction::add_counters(THD *thd) {
  for (const auto &[number, next] : counters_) {
    if (const int code = code_of(merge_auto_increment(transaction_, number, next), thd)) return code;
  }
  counters_.clear();
  return 0;
}

void Transaction::ended() {
  active_ = false;
  committed_in_order_ = false;
  statement_point_ = false;
  depth_ = 0;
  epoch_++;
  counters_.clear();
  esker_snapshot_free(std::exchange(snapshot_, nullptr));
  esker_read_options_set_snapshot(read_options_, nullptr);
  seen_ = nullptr;
  release_snapshot();
}

int Transaction::commit(THD *thd) {
  if (!active_) return 0;
  esker_error *error = std::exchange(commit_error_, nullptr);
  if (!committed_in_order_ && error == nullptr) {
    if (!esker_transaction_is_prepared(transaction_)) {
      if (const int code = add_counters(thd)) {
        end(thd, esker_transaction_roll_back(transaction_), false);
        return code;
      }
    }
    error = esker_transaction_commit(transaction_);
  }
  return end(thd, error, true);
}

int Transaction::roll_back(THD *thd) {
  if (!active_) return 0;
  return end(thd, esker_transaction_roll_back(transaction_), false);
}

// The server asks for nothing more once it has told the client of an error. What is prepared ends as decided then, as soon as that can be
// written.
int Transaction::end(THD *thd, esker_error *error, bool commits) {
  if (error != nullptr && esker_transaction_is_prepared(transaction_)) {
    end_later(std::exchange(transaction_, nullptr), commits, error);
    // Somebody may be using it.
    given_up_.push_back(interrupter_.exchange(nullptr));
  } else if (error != nullptr) {
    logged(esker_transaction_roll_back(transaction_), "rolling back what could not be committed");
  }
  ended();
  return code_of(error, thd);
}

void Transaction::commit_in_order() {
  if (!active_ || committed_in_order_) return;
  // What is prepared survives a crash, and the coordinator's log says then that it is to be committed: nothing to wait for.
  static esker_write_options *const buffered = [] {
    esker_write_options *options = esker_write_options_create();
    esker_error_free(esker_write_options_set_durability(options, ESKER_BUFFERED));
    return options;
  }();
  commit_error_ = esker_transaction_set_write_options(transaction_, buffered);
  if (commit_error_ == nullptr) commit_error_ = esker_transaction_commit(transaction_);
  committed_in_order_ = commit_error_ == nullptr;
}

int Transaction::end_statement(THD *thd) {
  release_snapshot();
  if (!active_ || !statement_point_) return 0;
  statement_point_ = false;
  depth_--;
  return code_of(esker_transaction_pop_save_point(transaction_, nullptr), thd);
}

int Transaction::roll_back_one(THD *thd) {
  depth_--;
  epoch_++;
  return code_of(esker_transaction_roll_back_to_save_point(transaction_, nullptr), thd);
}

int Transaction::roll_back_statement(THD *thd) {
  release_snapshot();
  if (!active_ || !statement_point_) return 0;
  statement_point_ = false;
  return roll_back_one(thd);
}

int Transaction::set_save_point(THD *thd, uint &number) {
  if (const int code = begin(thd, false)) return code;
  number = depth_;
  const int code = code_of(esker_transaction_set_save_point(transaction_), thd);
  if (code == 0) depth_++;
  return code;
}

int Transaction::roll_back_to(THD *thd, uint number) {
  // What was set behind a transaction's end is not in it any more.
  if (!active_) return HA_ERR_NO_SAVEPOINT;
  statement_point_ = false;
  while (depth_ > number) {
    if (const int code = roll_back_one(thd)) return code;
  }
  return set_save_point(thd, number);
}

int Transaction::release_save_point(THD *thd, uint number) {
  // One with others above it stays where it is: those above it are still to be reached.
  if (!active_ || depth_ != number + 1) return 0;
  depth_--;
  return code_of(esker_transaction_pop_save_point(transaction_, nullptr), thd);
}

int Transaction::prepare(THD *thd, View name) {
  if (!active_) return 0;
  if (const int code = add_counters(thd)) return code;
  if (esker_transaction_name(transaction_).data == nullptr) {
    if (const int code = code_of(esker_transaction_set_name(transaction_, slice(name)), thd)) return code;
  }
  return code_of(esker_transaction_prepare(transaction_), thd);
}

void apply_durability() {
  if (db == nullptr) return;
  const esker_durability wanted = flush_at_commit() == kFlushAlways ? ESKER_SYNC : ESKER_BUFFERED;
  logged(esker_db_set_durability(db, wanted), "esker_flush_log_at_trx_commit");
}

}  // namespace esker
