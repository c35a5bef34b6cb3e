// Brings many entries into the database at once.
#include "loader.h"

#include <atomic>
#include <filesystem>
#include <system_error>

#include "engine.h"
#include "errors.h"
#include "variables.h"

namespace esker {

namespace {

constexpr size_t kSortBytes = 64 << 20;             // of all indexes of a load together
constexpr uint64_t kTableBytes = 128 << 20;
constexpr uint kEntriesBetweenLooks = 4096;         // at whether the statement was given up

std::atomic<uint64_t> last_file;

}  // namespace

const char *load_folder() {
  static const Bytes folder = Bytes(data_folder()) + "-load";
  return folder.c_str();
}

bool clear_load_folder() {
  std::error_code error;
  std::filesystem::remove_all(load_folder(), error);
  if (!error) std::filesystem::create_directory(load_folder(), error);
  if (error) sql_print_error("ESKER: the folder %s can't be made: %s", load_folder(), error.message().c_str());
  return static_cast<bool>(error);
}

Loader::Loader(size_t index_count) {
  for (size_t i = 0; i < index_count; i++) sorters_.push_back(std::make_unique<Sorter>(kSortBytes / index_count));
}

Loader::~Loader() {
  esker_table_writer_free(writer_);
  esker_family_options_free(options_);
  for (const Bytes &path : paths_) {
    std::error_code error;
    std::filesystem::remove(path, error);
  }
}

int Loader::begin_table() {
  if (options_ == nullptr) {
    // Tables as the database writes them.
    options_ = esker_family_options_create();
    esker_buffer *settings = esker_buffer_create();
    esker_error *error = esker_db_family_settings(db, rows, settings);
    if (error == nullptr) {
      const Bytes text(view(esker_buffer_slice(settings)));
      error = esker_family_options_set_text(options_, text.c_str());
    }
    esker_buffer_free(settings);
    if (const int code = code_of(error, nullptr)) return code;
  }
  paths_.push_back(Bytes(load_folder()) + "/" + std::to_string(++last_file));
  return code_of(esker_table_writer_create(nullptr, paths_.back().c_str(), options_, &writer_), nullptr);
}

int Loader::end_table() {
  esker_error *error = esker_table_writer_finish(writer_, nullptr);
  esker_table_writer_free(std::exchange(writer_, nullptr));
  return code_of(error, nullptr);
}

int Loader::write_index(THD *thd, size_t index, const Duplicate &duplicate) {
  Sorter &sorter = *sorters_[index];
  if (const int code = sorter.finish()) return code;
  Bytes before;
  for (uint count = 0;; count++) {
    bool has_entry;
    View key, value;
    if (const int code = sorter.next(has_entry, key, value)) return code;
    if (!has_entry) break;
    if (count % kEntriesBetweenLooks == 0 && thd_killed(thd)) return HA_ERR_ABORTED_BY_USER;
    if (count > 0 && key == View(before)) return duplicate(index, key, value);
    before.assign(key);
    if (writer_ == nullptr) {
      if (const int code = begin_table()) return code;
    }
    if (const int code = code_of(esker_table_writer_put(writer_, slice(key), slice(value)), nullptr)) return code;
    if (esker_table_writer_estimated_bytes(writer_) >= kTableBytes) {
      if (const int code = end_table()) return code;
    }
  }
  return writer_ == nullptr ? 0 : end_table();
}

int Loader::finish(THD *thd, const Duplicate &duplicate) {
  for (size_t index = 0; index < sorters_.size(); index++) {
    if (const int code = write_index(thd, index, duplicate)) return code;
    sorters_[index].reset();
  }
  if (paths_.empty()) return 0;
  esker_ingestion *ingestion = esker_ingestion_create();
  esker_ingestion_set_move_files(ingestion, true);
  esker_error *error = nullptr;
  for (size_t i = 0; i < paths_.size() && error == nullptr; i++) error = esker_ingestion_add(ingestion, db, rows, paths_[i].c_str());
  if (error == nullptr) error = esker_db_ingest(db, ingestion, nullptr);
  esker_ingestion_free(ingestion);
  return code_of(error, nullptr);
}

}  // namespace esker
