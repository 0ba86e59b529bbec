/*
 * Delegates: other assistants of this server that an agent calls as its tools.
 *
 * A delegate runs on the thread of the run that called it, in the namespace of its assistant, so
 * it has the history of its own calls and sees no other messages. It has no record: its
 * checkpoints contain the run's id, its events belong to the run, and it ends with the run. Its
 * checkpoints also contain the id of the waiting task, so that it resumes at its last checkpoint
 * after a crash, a cancel or an interrupt.
 *
 * A delegate acquires the line of its assistant like a run: it waits for the run or the delegate
 * that executes there, and precedes the queued runs. A call that would wait for itself, directly or
 * through other runs, fails at once.
 *
 * Everything here runs on the loop, unless stated otherwise.
 */
#ifndef HD_RUN_DELEGATE_H
#define HD_RUN_DELEGATE_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/slice.h"

struct hd_app;
struct hd_delegates;
struct hd_delegation;
struct hd_active_run;

#define HD_MAX_DELEGATES 5 /* maximum nesting depth */

HD_MUST_CHECK int hd_delegation_create(struct hd_app *app, struct hd_delegation **out);
/* No run may be active. */
void hd_delegation_destroy(struct hd_delegation *delegation);

/* For hd_agents_create(). Valid until the delegation is destroyed. */
const struct hd_delegates *hd_delegation_table(const struct hd_delegation *delegation);

/* Adds the worker operation `delegate` to app->runtime; call it before the runtime starts. */
HD_MUST_CHECK int hd_delegation_add_ops(struct hd_delegation *delegation);

/* A line has become free: starts the delegates that wait for it. `delegation` may be NULL. */
void hd_delegation_resume(struct hd_delegation *delegation);

/* True while a delegate executes on the line. Any thread. `delegation` may be NULL. */
bool hd_delegation_is_on_line(struct hd_delegation *delegation, struct hd_slice principal,
                              struct hd_slice thread, struct hd_slice ns);

/* Calls hd_runner_hold() for all delegates of a run. */
void hd_delegation_hold(struct hd_delegation *delegation, const struct hd_active_run *active,
                        bool is_held);

#endif
