/*
 * Human approval of tool calls: which calls need it, the interrupt, and how a reply is read. Pure:
 * node_tools.c stops the run and continues it.
 *
 * A policy is true, false, null or a list of rules, of which the first match counts: a name (`*`
 * matches anything), or an object with `tool`, `args`, `allow` and `description`. A comparison
 * without a result (a string and a number) counts as true: in doubt, approval is required.
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
    struct hd_slice description; /* borrowed from the policy; empty: the default */
};

/* HD_EINVAL with the reason. */
HD_MUST_CHECK int hd_approval_check(const struct hd_val *policy, struct heddle_error *fault);

/* `own_name` is the source's name of the tool: a rule for either name matches. */
HD_MUST_CHECK int hd_approval_find(const struct hd_val *policy, struct hd_slice name,
                                   struct hd_slice own_name, const struct hd_val *args,
                                   struct hd_approval *out, struct heddle_error *fault);

/* The interrupt's value; `error`, or NULL, says why the last reply was invalid. NULL: HD_ENOMEM. */
HD_MUST_CHECK struct hd_val *hd_approval_question(const struct hd_approval *approval,
                                                  struct hd_slice name, const struct hd_val *args,
                                                  struct hd_slice call_id, const char *error);
/*
 * Whether it is the interrupt of this call, and which replies it allows. A tool may raise a similar
 * one for a call of its own: an assistant does.
 */
bool hd_approval_is_question(const struct hd_val *question, struct hd_slice name,
                             struct hd_slice call_id, struct hd_approval *out);

struct hd_decision {
    enum hd_verdict verdict;
    struct hd_val *args; /* HD_EDIT: the arguments */
    struct hd_val *text; /* HD_RESPOND: the result; HD_IGNORE: the reason, or NULL */
};

/* HD_EINVAL: invalid, or not allowed; the reason is in `fault`. */
HD_MUST_CHECK int hd_approval_answer(const struct hd_val *answer,
                                     const struct hd_approval *approval, struct hd_slice name,
                                     struct hd_decision *out, struct heddle_error *fault);
void hd_decision_fini(struct hd_decision *answer);

/* `*` matches any characters, also none. */
bool hd_pattern_matches(struct hd_slice pattern, struct hd_slice text);

#endif
