/* Requests in the audit log (gate/audit.h). */
#ifndef HD_API_AUDIT_REQUEST_H
#define HD_API_AUDIT_REQUEST_H

#include "api/api.h"

/* Loop, when the answer is known: once for a call. Public routes are nobody's business. */
void hd_call_note(struct hd_call *call);

#endif
