// The handler: a table as one statement at a time uses it. handler_table.cc opens, creates and describes, handler_alter.cc changes tables in
// place, handler_check.cc checks,
// handler_read.cc reads, handler_batch.cc reads many rows at once, handler_statistics.cc counts, handler_write.cc writes.
#pragma once

#include <memory>
#include <vector>

#include "batch.h"
#include "cursor.h"
#include "loader.h"
#include "row.h"
#include "share.h"
#include "ttl.h"

namespace esker {

class Handler final : public handler {
 public:
  Handler(handlerton *hton, TABLE_SHARE *share);
  ~Handler() override;

  // What a table can have: handler_table.cc.
  Table_flags table_flags() const override;
  ulong index_flags(uint index, uint part, bool all_parts) const override;
  // Ordered and good for ranges, which is what clients ask by this name.
  const char *index_type(uint) override { return "BTREE"; }
  uint max_supported_keys() const override { return MAX_KEY; }
  uint max_supported_key_length() const override { return 3072; }
  uint max_supported_key_part_length() const override { return 3072; }
  uint8 table_cache_type() override { return HA_CACHE_TBL_NOCACHE; }
  const key_map *keys_to_use_for_scanning() override { return &key_map_full; }

  int create(const char *name, TABLE *form, HA_CREATE_INFO *info) override;
  int delete_table(const char *name) override;
  int rename_table(const char *from, const char *to) override;
  int truncate() override;
  int open(const char *name, int mode, uint test_if_locked) override;
  int close() override;
  int reset() override;
  int info(uint flag) override;
  int extra(enum ha_extra_function operation) override;
  handler *clone(const char *name, MEM_ROOT *root) override;
  int check(THD *thd, HA_CHECK_OPT *) override;
  int analyze(THD *thd, HA_CHECK_OPT *) override;
  int optimize(THD *thd, HA_CHECK_OPT *) override;
  void update_create_info(HA_CREATE_INFO *info) override;
  bool check_if_incompatible_data(HA_CREATE_INFO *info, uint changes) override;

  // handler_alter.cc
  enum_alter_inplace_result check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *info) override;
  bool prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *info) override;
  bool inplace_alter_table(TABLE *altered, Alter_inplace_info *info) override;
  bool commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit) override;
  bool get_error_message(int error, String *message) override;
  void print_error(int error, myf flag) override;
  ha_rows records_in_range(uint key, const key_range *min, const key_range *max, page_range *pages) override;
  double scan_time() override;
  double read_time(uint index, uint ranges, ha_rows rows) override;

  // The statement.
  uint lock_count() const override { return 0; }
  THR_LOCK_DATA **store_lock(THD *thd, THR_LOCK_DATA **to, enum thr_lock_type lock_type) override;
  int external_lock(THD *thd, int lock_type) override;
  int start_stmt(THD *thd, thr_lock_type lock_type) override;
  void unlock_row() override;

  // handler_read.cc
  int index_init(uint index, bool sorted) override;
  int index_end() override;
  int index_read_map(uchar *buf, const uchar *key, key_part_map map, enum ha_rkey_function flag) override;
  int index_read_last_map(uchar *buf, const uchar *key, key_part_map map) override;
  int index_next(uchar *buf) override;
  int index_prev(uchar *buf) override;
  int index_first(uchar *buf) override;
  int index_last(uchar *buf) override;
  int index_next_same(uchar *buf, const uchar *key, uint key_length) override;
  int rnd_init(bool scan) override;
  int rnd_end() override;
  int rnd_next(uchar *buf) override;
  int rnd_pos(uchar *buf, uchar *position) override;
  void position(const uchar *record) override;
  int cmp_ref(const uchar *left, const uchar *right) override;
  Item *idx_cond_push(uint key, Item *condition) override;

  // handler_batch.cc
  ha_rows multi_range_read_info_const(uint key, RANGE_SEQ_IF *sequence, void *parameter, uint ranges, uint *buffer_size,
                                      uint *mode, Cost_estimate *cost) override;
  ha_rows multi_range_read_info(uint key, uint ranges, uint rows, uint key_parts, uint *buffer_size, uint *mode,
                                Cost_estimate *cost) override;
  int multi_range_read_init(RANGE_SEQ_IF *sequence, void *parameter, uint ranges, uint mode, HANDLER_BUFFER *buffer) override;
  int multi_range_read_next(range_id_t *range) override;
  int multi_range_read_explain_info(uint mode, char *text, size_t size) override;

  // handler_load.cc
  void start_bulk_insert(ha_rows rows, uint flags) override;
  int end_bulk_insert() override;

  // handler_write.cc
  int write_row(const uchar *buf) override;
  int update_row(const uchar *old_record, const uchar *new_record) override;
  int delete_row(const uchar *buf) override;
  void get_auto_increment(ulonglong offset, ulonglong increment, ulonglong count, ulonglong *first,
                          ulonglong *reserved) override;

 private:
  enum LockMode : uint8_t { kNoLock, kSharedLock, kExclusiveLock };

  // Where the cursor ends because a search for equal keys does, which a scan that goes on passes.
  enum Limit : uint8_t { kNoLimit, kUpperLimit, kLowerLimit };

  // An entry that is none after all: the row is gone or has changed, or a pushed condition does not hold. The scan goes on.
  static constexpr int kSkipped = -1;

  THD *thd() const { return table->in_use; }
  int fail(esker_error *error) const;
  const Index &index(uint key) const { return indexes_[key] == nullptr ? *primary_ : *indexes_[key]; }
  bool has_hidden_key() const { return primary_->kind() == Index::kHidden; }
  // What the server gives out of a sequence is never taken back: its row is written at once, apart from all transactions, read as it is by
  // now, and locked by none; the server keeps those who use it apart.
  bool is_sequence() const { return table->s->table_type == TABLE_TYPE_SEQUENCE; }
  // Makes the codecs anew if the table has got other index numbers.
  void follow_entry();
  int estimate_size(TableSize &size);
  void read_statistics(uint flag);
  int sample(size_t places);
  void show_rows_per_key();
  int check_entries(const esker_snapshot *snapshot, const esker_read_options *options, ha_rows &count);

  // The server may ask for no more than an index has where that is not the whole of its columns: it wants positions then.
  bool reads_entries(const Index &index) { return lock_ == kNoLock && keyread_enabled() && index.has_whole_columns(); }
  int begin_read(const Index &index);
  int open_cursor(View start, View end);
  bool is_check(const uchar *buf) const;
  int open_check(const uchar *search);
  int open_whole(bool from_start);
  int pass_limit(uchar *buf, bool forward);
  int lock_scan(const Index &index, View start, View end);
  int step(uchar *buf, bool forward, int code);
  int show_entry(uchar *buf);
  int check_condition(uchar *buf);
  bool is_computed(const Index &index) const;
  int compute_columns(const Index &index, View key, View value, uchar *buf);
  int check_entry(const Index &index, View key, uchar *buf);
  int read_row(uchar *buf, View primary);
  int show_row(uchar *buf, View primary, View row);
  int point_read(uchar *buf, const Index &index);
  void choose_batches(uint key, bool are_points, uint *mode) const;
  int begin_range(bool &is_point);
  int add_to_batch(View key, View value);
  int collect_batch();
  int fetch_batch();
  int seek_search(const Index &index, size_t stored_size, enum ha_rkey_function flag, const uchar *check);
  int adjust(const Index &index, bool forward, bool (*fits)(View logical, View search));
  int resume_after_point();

  int begin_load();
  int find_any(esker_range range, bool &is_empty);
  int load_row(View primary, const uchar *record);

  int build_indexes(TABLE *altered, const std::vector<const Index *> &built);
  int report_duplicate(TABLE *altered, const Index &built, View key, View value);

  int check_unique(const Index &index, View key);
  int lock_first_row();
  // The entry of a record that counts from a time, if rows expire.
  void make_entry(const Index &index, Bytes &key, Bytes &value, const uchar *record, View primary, uint64_t time) const;
  int put_at_once(View key, View value);
  int put_row(View primary, const uchar *record);
  int put_entry(View key, View value);
  int remove_entry(const Index &index, View key);
  int note_auto_increment(const uchar *record);
  int commit_copy();
  bool is_touched(const Index &index) const;
  bool is_same(const uchar *old_record, const uchar *new_record) const;
  int update_entries(const uchar *old_record, const uchar *new_record, View old_primary, View new_primary);
  void current_primary(Bytes &primary, const uchar *record);

  Bytes name_;                     // of the table, or of a partition of it
  TableShare *share_ = nullptr;
  TablePointer entry_;
  std::unique_ptr<Index> primary_;
  std::vector<std::unique_ptr<Index>> indexes_;   // by number of key; null for the primary one
  std::unique_ptr<RowFormat> row_format_;
  Ttl ttl_;

  Transaction *transaction_ = nullptr;
  LockMode lock_ = kNoLock;
  Cursor cursor_;
  const Index *active_ = nullptr;
  bool begun_ = false;             // a scan of all rows has read its first one
  bool copying_ = false;           // an ALTER TABLE fills the table, which nobody else sees
  bool rows_locked_ = false;       // the statement has locked a row that it put into a table without primary key
  bool is_bulk_ = false;           // the server will say when the last row of a bulk insert has come
  bool wants_load_ = false;        // the next row may be the first that is loaded
  std::unique_ptr<Loader> loader_;
  bool point_ = false;             // the last read looked a key up, and the cursor is not there
  Bytes search_;                   // of the last read by key
  Bytes bound_, lower_bound_;      // where its cursor ends, forward and backward
  Limit limit_ = kNoLimit;
  EntryRange range_;
  Bytes last_primary_;             // of the last row that was read
  esker_value *row_value_;         // what the last row is in
  esker_value *check_value_;       // what was found by a check for duplicates
  Batch batch_;                    // of a read of many ranges
  bool is_batched_ = false;        // or one by one
  Bytes row_key_, row_, key_, value_, old_key_, old_value_, primary_buffer_, old_primary_, logical_;
};

}  // namespace esker
