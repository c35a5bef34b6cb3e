-- A look at every row of the table, of which none is sent to the client.

sysbench.cmdline.options = {
   table_size = {"Rows of the table", 10000},
   tables = {"Tables; the first is used", 1},
   mysql_storage_engine = {"Unused here: the table is there", "innodb"}
}

function thread_init()
   connection = sysbench.sql.driver():connect()
   statement = connection:prepare("SELECT * FROM sbtest1 WHERE LENGTH(c) < 0")
end

function event()
   statement:execute()
end

function thread_done()
   statement:close()
   connection:disconnect()
end
