// Prepared transactions whose end is decided and could not be written, as on a full device. They keep their locks, and are ended as soon as
// that can be written: whoever begins a transaction tries. The coordinator's log, which has the decision, ends them after a crash.
#pragma once

#include "server.h"

namespace esker {

// Takes a prepared transaction over that did not end, for this reason.
void end_later(esker_transaction *transaction, bool commits, const esker_error *reason);

// Ends what was taken over, as far as that can be written without a wait. Costs nothing where there is none.
void end_decided();

// Before the server closes its binary log, and all connections have ended. A log that was closed is not asked any more what was
// decided: where something is left, the process ends at once, as in a crash, and the next start asks the log.
void end_decided_or_crash();

// Leaves them prepared, for the next opening of the database.
void leave_decided();

}  // namespace esker
