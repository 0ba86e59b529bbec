/* Errors of model servers, as exceptions with texts for users. Pure. */
#ifndef HD_AGENT_MODEL_MODEL_ERROR_H
#define HD_AGENT_MODEL_MODEL_ERROR_H

#include "agent/exchange.h"
#include "agent/model/provider.h"

/* For no response, or one whose status is not 2xx. */
void hd_model_refused(struct hd_completion *answer, const char *provider,
                      const struct hd_reply *reply);
/* Checks a complete response: HD_EINVAL if it is invalid; else 0. */
HD_MUST_CHECK int hd_model_check(struct hd_completion *answer, const char *provider);
/* The response's error, without the key; HD_ENOMEM. */
HD_MUST_CHECK int hd_model_mask(const struct hd_completion *answer, struct hd_slice key,
                                struct hd_buf *out);

#endif
