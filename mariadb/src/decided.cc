// Prepared transactions whose end is decided and could not be written.
#include "decided.h"

#include <atomic>
#include <deque>
#include <mutex>

namespace esker {

namespace {

struct Decided {
  esker_transaction *transaction;
  bool commits;
};

std::mutex mutex;
std::deque<Decided> waiting;
std::atomic<size_t> count = 0;

// Whether it has ended.
bool end(const Decided &decided, const esker_write_options *options) {
  esker_transaction *transaction = decided.transaction;
  esker_error *error = esker_transaction_set_write_options(transaction, options);
  if (error == nullptr) error = decided.commits ? esker_transaction_commit(transaction) : esker_transaction_roll_back(transaction);
  // Of none under its name there is nothing to end.
  const bool is_over = error == nullptr || esker_error_get_kind(error) == ESKER_NOT_FOUND;
  esker_error_free(error);
  return is_over;
}

bool end_all(const esker_write_options *options) {
  while (!waiting.empty() && end(waiting.front(), options)) {
    esker_transaction_free(waiting.front().transaction);
    waiting.pop_front();
    if (waiting.empty()) sql_print_information("ESKER: all transactions that could not be ended before are committed or rolled back");
  }
  count.store(waiting.size(), std::memory_order_relaxed);
  return waiting.empty();
}

}  // namespace

void end_later(esker_transaction *transaction, bool commits, const esker_error *reason) {
  sql_print_warning("ESKER: a prepared transaction can't be %s: %s. It will be as soon as that can be written, and keeps its locks until then",
                    commits ? "committed" : "rolled back", esker_error_message(reason));
  const std::lock_guard<std::mutex> guard(mutex);
  waiting.push_back({transaction, commits});
  count.store(waiting.size(), std::memory_order_relaxed);
}

void end_decided() {
  if (likely(count.load(std::memory_order_relaxed) == 0)) return;
  const std::unique_lock<std::mutex> guard(mutex, std::try_to_lock);
  if (!guard.owns_lock()) return;
  // Who only begins a transaction does not wait for background work. What was prepared survives a crash without a sync of its end.
  static esker_write_options *const at_once = [] {
    esker_write_options *options = esker_write_options_create();
    esker_write_options_set_no_wait(options, true);
    esker_error_free(esker_write_options_set_durability(options, ESKER_BUFFERED));
    return options;
  }();
  end_all(at_once);
}

void end_decided_or_crash() {
  const std::lock_guard<std::mutex> guard(mutex);
  if (end_all(nullptr)) return;
  sql_print_error("ESKER: %zu prepared transactions can't be ended; the server ends without closing its log, which knows at the next start what "
                  "was decided. Make room on the device before",
                  waiting.size());
  // Who asked for the shutdown waits until this file is gone.
  my_delete(pidfile_name, MYF(0));
  _exit(EXIT_FAILURE);
}

void leave_decided() {
  const std::lock_guard<std::mutex> guard(mutex);
  for (const Decided &decided : waiting) esker_transaction_free(decided.transaction);
  waiting.clear();
  count.store(0, std::memory_order_relaxed);
}

}  // namespace esker
