/* Calls every function of the library. Usage: program FOLDER */
#include "check.h"

int main(int argc, char **argv) {
  CHECK(argc == 2);
  CHECK(strchr(esker_version(), '.') != NULL);
  test_options();
  test_database();
  test_batches();
  test_reads();
  test_hooks();
  test_listeners(argv[1]);
  test_maintenance(argv[1]);
  test_files(argv[1]);
  test_tables(argv[1]);
  test_prepared(argv[1]);
  test_transactions();
  test_locks();
  test_misuse();
  puts("done");
  return 0;
}
