/*
 * Human approval of calls of tools: which calls need it, what is asked, and what an
 * answer means. Pure.
 *
 * A policy is true, false, null or a list of rules, the first of which that matches
 * counts: a name (`*` stands for anything), or an object with `tool`, `args`, `allow` and
 * `description`. Where a comparison has no result (a string and a number) it holds: in
 * doubt a human is asked.
 */
#ifndef HD_AGENT_APPROVAL_H
#define HD_AGENT_APPROVAL_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "value/val.h"

enum hd_verdict { HD_ACCEPT, HD_EDIT, HD_RESPOND, HD_IGNORE, HD_VERDICT_COUNT };

struct hd_approval {
    bool is_needed;
    bool allows[HD_VERDICT_COUNT];
    struct hd_slice description; /* borrowed from the policy; empty: the usual one */
};

/* HD_EINVAL with the reason. */
HD_MUST_CHECK int hd_approval_check(const struct hd_val *policy, struct hd_fault *fault);

/* `own_name` is what its source calls the tool: a rule for either name matches. */
HD_MUST_CHECK int hd_approval_find(const struct hd_val *policy, struct hd_slice name,
                                   struct hd_slice own_name, const struct hd_val *args,
                                   struct hd_approval *out, struct hd_fault *fault);

/* What is asked; `error`, or NULL, says why the last answer was none. NULL: HD_ENOMEM. */
HD_MUST_CHECK struct hd_val *hd_approval_question(const struct hd_approval *approval,
                                                  struct hd_slice name, const struct hd_val *args,
                                                  struct hd_slice call_id, const char *error);
/*
 * Whether it is the question about this call, and what it allows as an answer. A tool may ask
 * likewise about a call of its own: an assistant does.
 */
bool hd_approval_is_question(const struct hd_val *question, struct hd_slice name,
                             struct hd_slice call_id, struct hd_approval *out);

struct hd_decision {
    enum hd_verdict verdict;
    struct hd_val *args; /* HD_EDIT: the arguments */
    struct hd_val *text; /* HD_RESPOND: the result; HD_IGNORE: the reason, or NULL */
};

/* HD_EINVAL: it is no answer, or not one that is allowed; `fault` says why. */
HD_MUST_CHECK int hd_approval_answer(const struct hd_val *answer,
                                     const struct hd_approval *approval, struct hd_slice name,
                                     struct hd_decision *out, struct hd_fault *fault);
void hd_decision_fini(struct hd_decision *answer);

/* `*` stands for any characters, also none. */
bool hd_pattern_matches(struct hd_slice pattern, struct hd_slice text);

#endif
