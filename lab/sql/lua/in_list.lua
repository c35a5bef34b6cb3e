-- Statements over a list of primary keys: SELECT or UPDATE … WHERE id IN (…). Ids are random, or always the same ones.

sysbench.cmdline.options = {
   table_size = {"Rows of the table", 10000},
   tables = {"Tables; the first is used", 1},
   mysql_storage_engine = {"Unused here: the table is there", "innodb"},
   ids = {"Ids in the list", 100},
   same_ids = {"Ask for the same ids every time", false},
   update = {"Update the rows rather than read them", false}
}

local function list_of_marks(count)
   return string.rep("?, ", count - 1) .. "?"
end

function thread_init()
   connection = sysbench.sql.driver():connect()
   local kinds = sysbench.sql.type
   local where = " WHERE id IN (" .. list_of_marks(sysbench.opt.ids) .. ")"
   params = {}
   if sysbench.opt.update then
      statement = connection:prepare("UPDATE sbtest1 SET c = ?" .. where)
      text = statement:bind_create(kinds.CHAR, 120)
      params[1] = text
   else
      statement = connection:prepare("SELECT c FROM sbtest1" .. where)
   end
   ids = {}
   for i = 1, sysbench.opt.ids do
      ids[i] = statement:bind_create(kinds.INT)
      params[#params + 1] = ids[i]
   end
   statement:bind_param(unpack(params))
   for i = 1, sysbench.opt.ids do
      ids[i]:set(sysbench.rand.uniform(1, sysbench.opt.table_size))
   end
end

function event()
   if not sysbench.opt.same_ids then
      for i = 1, sysbench.opt.ids do
         ids[i]:set(sysbench.rand.uniform(1, sysbench.opt.table_size))
      end
   end
   if sysbench.opt.update then
      text:set(sysbench.rand.string(string.rep("###########-", 9) .. "###########"))
   end
   statement:execute()
end

function thread_done()
   statement:close()
   connection:disconnect()
end
