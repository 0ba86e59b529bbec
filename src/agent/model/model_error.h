/* The ways in which the server of a model fails, as exceptions with texts for people. Pure. */
#ifndef HD_AGENT_MODEL_MODEL_ERROR_H
#define HD_AGENT_MODEL_MODEL_ERROR_H

#include "agent/exchange.h"
#include "agent/model/provider.h"

/* There was no answer, or one with a status that is not 2xx. */
void hd_model_refused(struct hd_answer *answer, const char *provider, const struct hd_reply *reply);
/* What is wrong with an answer that came to its end, if something is: HD_EINVAL; else 0. */
HD_MUST_CHECK int hd_model_check(struct hd_answer *answer, const char *provider);
/* The answer's error, without the key; HD_ENOMEM. */
HD_MUST_CHECK int hd_model_mask(const struct hd_answer *answer, struct hd_slice key,
                                struct hd_buf *out);

#endif
