// What the server calls for transactions: commit, rollback, save points, prepare, and recovery of what is prepared.
#include "decided.h"
#include "engine.h"
#include "errors.h"
#include "transaction.h"

namespace esker {

namespace {

bool is_whole(THD *thd, bool all) { return all || !thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN); }

int commit(handlerton *, THD *thd, bool all) {
  Transaction *transaction = Transaction::find(thd);
  if (transaction == nullptr) return 0;
  return is_whole(thd, all) ? transaction->commit(thd) : transaction->end_statement(thd);
}

int roll_back(handlerton *, THD *thd, bool all) {
  Transaction *transaction = Transaction::find(thd);
  if (transaction == nullptr) return 0;
  return is_whole(thd, all) ? transaction->roll_back(thd) : transaction->roll_back_statement(thd);
}

int close_connection(handlerton *, THD *thd) {
  Transaction::forget(thd);
  return 0;
}

// The server calls it while the connection can't end.
void kill_query(handlerton *, THD *thd, thd_kill_levels) {
  if (Transaction *transaction = Transaction::find(thd)) transaction->interrupt();
}

int set_save_point(handlerton *, THD *thd, void *place) {
  Transaction *transaction = Transaction::of(thd);
  return transaction == nullptr ? HA_ERR_OUT_OF_MEM : transaction->set_save_point(thd, *static_cast<uint *>(place));
}

int roll_back_to_save_point(handlerton *, THD *thd, void *place) {
  Transaction *transaction = Transaction::find(thd);
  return transaction == nullptr ? HA_ERR_NO_SAVEPOINT : transaction->roll_back_to(thd, *static_cast<uint *>(place));
}

int release_save_point(handlerton *, THD *thd, void *place) {
  Transaction *transaction = Transaction::find(thd);
  return transaction == nullptr ? 0 : transaction->release_save_point(thd, *static_cast<uint *>(place));
}

// Locks that were taken behind a save point are given back, so nothing keeps the server's own from going.
bool can_release_metadata_locks(handlerton *, THD *) { return true; }

int start_consistent_snapshot(handlerton *hton, THD *thd) {
  Transaction *transaction = Transaction::of(thd);
  if (transaction == nullptr) return HA_ERR_OUT_OF_MEM;
  trans_register_ha(thd, true, hton, 0);
  return transaction->begin(thd, true);
}

// The name of a prepared transaction: format (8 bytes), length of the global part (1 byte), both parts.
Bytes name_of(const XID &xid) {
  Bytes name;
  append_u64_be(name, static_cast<uint64_t>(xid.formatID));
  name.push_back(static_cast<char>(xid.gtrid_length));
  append(name, xid.data, static_cast<size_t>(xid.gtrid_length + xid.bqual_length));
  return name;
}

bool read_name(View name, XID &xid) {
  if (name.size() < 9 || name.size() - 9 > XIDDATASIZE) return false;
  const long global = static_cast<uint8_t>(name[8]);
  const long both = static_cast<long>(name.size()) - 9;
  if (global > both) return false;
  xid.set(static_cast<long>(read_u64_be(name.data())), name.data() + 9, global, name.data() + 9 + global, both - global);
  return true;
}

int prepare(handlerton *, THD *thd, bool all) {
  Transaction *transaction = Transaction::find(thd);
  if (transaction == nullptr) return 0;
  if (!is_whole(thd, all)) return transaction->end_statement(thd);
  MYSQL_XID xid;
  thd_get_xid(thd, &xid);
  return transaction->prepare(thd, name_of(*reinterpret_cast<XID *>(&xid)));
}

void commit_ordered(handlerton *, THD *thd, bool all) {
  Transaction *transaction = Transaction::find(thd);
  if (transaction != nullptr && is_whole(thd, all)) transaction->commit_in_order();
}

// The server asks until it gets fewer than it has room for.
int recover(handlerton *, XID *xids, uint room) {
  static Bytes last;
  esker_prepared_transactions *prepared;
  if (logged(esker_db_prepared_transactions(db, &prepared), "listing prepared transactions")) return 0;
  size_t count;
  const esker_prepared_transaction *items = esker_prepared_transactions_items(prepared, &count);
  uint found = 0;
  for (size_t i = 0; i < count && found < room; i++) {
    const View name = view(items[i].name);
    if (name <= View(last) || !read_name(name, xids[found])) continue;
    last = name;
    found++;
  }
  esker_prepared_transactions_free(prepared);
  if (found < room) last.clear();
  return static_cast<int>(found);
}

// Answers of the X/Open specification.
constexpr int kXaOk = 0, kXaResourceError = -3, kXaUnknown = -4;

int decide(XID *xid, bool commits) {
  esker_transaction *transaction;
  esker_error *error = esker_transaction_take_prepared(db, slice(name_of(*xid)), &transaction);
  if (error != nullptr) {
    // The server asks every engine, whether it took part or not.
    const bool unknown = esker_error_get_kind(error) == ESKER_NOT_FOUND;
    if (unknown) esker_error_free(error);
    else logged(error, "deciding on a prepared transaction");
    return unknown ? kXaUnknown : kXaResourceError;
  }
  error = commits ? esker_transaction_commit(transaction) : esker_transaction_roll_back(transaction);
  if (error == nullptr) {
    esker_transaction_free(transaction);
    return kXaOk;
  }
  end_later(transaction, commits, error);
  esker_error_free(error);
  // Of the server's own transactions its log knows the decision. Who decides on one of XA has to know that it may be forgotten.
  return xid->get_my_xid() != 0 ? kXaOk : kXaResourceError;
}

int commit_by_xid(handlerton *, XID *xid) { return decide(xid, true); }

int roll_back_by_xid(handlerton *, XID *xid) { return decide(xid, false); }

// Commits so far must not need the coordinator's log any more.
void commit_checkpoint_request(void *cookie) {
  if (!logged(esker_db_sync(db), "syncing the log")) commit_checkpoint_notify_ha(cookie);
}

bool flush_logs(handlerton *) { return logged(esker_db_sync(db), "syncing the log"); }

}  // namespace

void fill_transaction_calls(handlerton *hton) {
  hton->savepoint_offset = sizeof(uint);
  hton->commit = commit;
  hton->rollback = roll_back;
  hton->close_connection = close_connection;
  hton->kill_query = kill_query;
  hton->savepoint_set = set_save_point;
  hton->savepoint_rollback = roll_back_to_save_point;
  hton->savepoint_rollback_can_release_mdl = can_release_metadata_locks;
  hton->savepoint_release = release_save_point;
  hton->start_consistent_snapshot = start_consistent_snapshot;
  hton->prepare = prepare;
  hton->commit_ordered = commit_ordered;
  hton->recover = recover;
  hton->commit_by_xid = commit_by_xid;
  hton->rollback_by_xid = roll_back_by_xid;
  hton->commit_checkpoint_request = commit_checkpoint_request;
  hton->flush_logs = flush_logs;
  hton->pre_shutdown = end_decided_or_crash;
}

}  // namespace esker
