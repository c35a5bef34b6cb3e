// What becomes of the engine's errors: the server's codes, and the message that goes with them.
#pragma once

#include "server.h"

namespace esker {

// The first code that is not the server's own: the message is the engine's, kept for this thread until the next one.
constexpr int kEngineError = HA_ERR_LAST + 1;

// A transaction writes more than it may: the server has a code for that, and no handler's code. The message is the engine's.
constexpr int kTransactionTooLarge = HA_ERR_LAST + 2;

// The server's code for an error, which is freed; 0 for null. Where the engine has decided that a transaction must end, the
// server is told so. `thd` may be null.
int code_of(esker_error *error, THD *thd);

// The message behind `kEngineError` and `kTransactionTooLarge`.
View engine_message();

// Frees an error that nobody waits for, and writes it into the server's log with what was being done.
bool logged(esker_error *error, const char *doing);

}  // namespace esker
