// What the server shows of the engine. Counters come from the engine's registry, so that none is forgotten.
#include "status.h"

#include <deque>

#include "engine.h"
#include "errors.h"

namespace esker {

namespace {

// Names and values stay where they are until this thread asks again.
struct Shown {
  std::deque<Bytes> names;
  std::deque<ulonglong> values;
  std::vector<st_mysql_show_var> variables;

  void add(View name, ulonglong value) {
    names.emplace_back(name);
    values.push_back(value);
    variables.push_back({names.back().c_str(), &values.back(), SHOW_LONGLONG});
  }
};

int show(THD *, st_mysql_show_var *variable, void *, system_status_var *, enum_var_type) {
  thread_local Shown shown;
  shown = {};
  esker_counters *counters;
  if (!logged(esker_db_counters(db, &counters), "status variables")) {
    size_t count;
    const esker_counter *items = esker_counters_items(counters, &count);
    for (size_t i = 0; i < count; i++) shown.add(view(items[i].name), items[i].value);
    esker_counters_free(counters);
  }
  esker_stats stats;
  if (!logged(esker_db_stats(db, &stats), "status variables")) {
    shown.add("memtable_bytes", stats.memtable_bytes);
    shown.add("cache_bytes", stats.cache_bytes);
    shown.add("table_bytes", stats.table_bytes);
    shown.add("blob_bytes", stats.blob_bytes);
    shown.add("wal_live_bytes", stats.wal_live_bytes);
    shown.add("snapshots", stats.snapshots);
  }
  shown.variables.push_back({nullptr, nullptr, SHOW_LONG});
  variable->type = SHOW_ARRAY;
  variable->value = shown.variables.data();
  return 0;
}

void add_transactions(Bytes &text) {
  esker_running_list *running;
  if (logged(esker_db_running(db, &running), "engine status")) return;
  size_t count;
  const esker_running *items = esker_running_items(running, &count);
  text.append("\nTRANSACTIONS\n");
  for (size_t i = 0; i < count; i++) {
    text.append("transaction " + std::to_string(items[i].id) + (items[i].is_prepared ? ", prepared, " : ", ") +
                std::to_string(items[i].age_us / 1000000) + " s, " + std::to_string(items[i].writes) + " writes, " +
                std::to_string(items[i].locks) + " locks\n");
  }
  esker_running_free(running);
}

void add_waits(Bytes &text) {
  esker_waits *waits;
  if (logged(esker_db_waits(db, &waits), "engine status")) return;
  size_t count;
  const esker_wait *items = esker_waits_items(waits, &count);
  text.append("\nWAITS\n");
  for (size_t i = 0; i < count; i++) {
    text.append("transaction " + std::to_string(items[i].transaction) + " for " + std::to_string(items[i].waited_us / 1000) + " ms, for");
    for (size_t at = 0; at < items[i].waits_for_count; at++) text.append(" " + std::to_string(items[i].waits_for[at]));
    text.push_back('\n');
  }
  esker_waits_free(waits);
}

void add_deadlocks(Bytes &text) {
  esker_deadlocks *deadlocks;
  if (logged(esker_db_deadlocks(db, &deadlocks), "engine status")) return;
  size_t count;
  const esker_deadlock *items = esker_deadlocks_items(deadlocks, &count);
  text.append("\nDEADLOCKS\n");
  for (size_t i = 0; i < count; i++) {
    text.append(std::to_string(items[i].age_us / 1000000) + " s ago:");
    for (size_t at = 0; at < items[i].step_count; at++) {
      const esker_deadlock_step &step = items[i].steps[at];
      const View key = view(step.target.start);
      text.append(" " + std::to_string(step.transaction) + " waited for " + std::to_string(step.waits_for) + " in index " +
                  std::to_string(key.size() >= 4 ? read_u32_be(key.data()) : 0) + ";");
    }
    text.push_back('\n');
  }
  esker_deadlocks_free(deadlocks);
}

void add_levels(Bytes &text) {
  esker_levels *levels;
  if (logged(esker_db_levels(db, rows, &levels), "engine status")) return;
  size_t count;
  const esker_level *items = esker_levels_items(levels, &count);
  text.append("LEVELS\n");
  for (size_t i = 0; i < count; i++) {
    if (items[i].files == 0) continue;
    text.append("level " + std::to_string(i) + ": " + std::to_string(items[i].files) + " files, " +
                std::to_string(items[i].bytes) + " bytes\n");
  }
  esker_levels_free(levels);
}

}  // namespace

st_mysql_show_var status_variables[] = {{"Esker", reinterpret_cast<void *>(show), SHOW_FUNC}, {nullptr, nullptr, SHOW_LONG}};

bool show_engine_status(handlerton *, THD *thd, stat_print_fn *print, enum ha_stat_type kind) {
  if (kind != HA_ENGINE_STATUS) return false;
  Bytes text;
  add_levels(text);
  add_transactions(text);
  add_waits(text);
  add_deadlocks(text);
  if (esker_error *trouble = esker_db_trouble(db)) {
    text.append("\nTROUBLE\n").append(esker_error_message(trouble)).push_back('\n');
    esker_error_free(trouble);
  }
  return print(thd, "ESKER", 5, "", 0, text.data(), text.size());
}

}  // namespace esker
