/* Requests in the audit log (gate/audit.h). */
#ifndef HD_API_REQUEST_AUDIT_REQUEST_H
#define HD_API_REQUEST_AUDIT_REQUEST_H

#include "api/api.h"

/* Loop, when the response is final: records the call once. Public routes are not recorded. */
void hd_call_audit(struct hd_call *call);

#endif
