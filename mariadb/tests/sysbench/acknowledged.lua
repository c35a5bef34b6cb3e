-- sysbench's oltp_read_write, whose transactions are numbered: the number is a row of the transaction, and is noted in a file of its thread
-- once the server has acknowledged the commit.
require("oltp_common")

sysbench.cmdline.options.notes = {"Folder of the files with the numbers that were acknowledged", ""}

local number, notes

function prepare_statements()
  prepare_begin()
  prepare_commit()
  prepare_point_selects()
  prepare_simple_ranges()
  prepare_sum_ranges()
  prepare_order_ranges()
  prepare_distinct_ranges()
  prepare_index_updates()
  prepare_non_index_updates()
  prepare_delete_inserts()
  if not notes then
    notes = assert(io.open(sysbench.opt.notes .. "/" .. sysbench.tid, "a"))
    number = tonumber(con:query_row("SELECT COALESCE(MAX(number), 0) FROM committed WHERE thread = " .. sysbench.tid))
  end
end

function event()
  begin()
  execute_point_selects()
  execute_simple_ranges()
  execute_sum_ranges()
  execute_order_ranges()
  execute_distinct_ranges()
  execute_index_updates()
  execute_non_index_updates()
  execute_delete_inserts()
  con:query(string.format("INSERT INTO committed VALUES (%d, %d)", sysbench.tid, number + 1))
  commit()
  number = number + 1
  notes:write(number, "\n")
  notes:flush()
end
