/*
 * Delegates: other assistants of this server that an agent calls as its tools.
 *
 * A delegate works on the thread of the run that called it, in the namespace of its own
 * assistant, so it remembers what it was told there and nobody else's words. It has no
 * record: its checkpoints name the run, its events are the run's, and it ends with the
 * run. Its checkpoints also name the task that waits for it, so that after a crash, a cancel
 * or a question it goes on where it stands.
 *
 * One call of an assistant at a time works in a namespace; the others wait for their turn.
 *
 * Everything here happens on the loop.
 */
#ifndef HD_RUN_DELEGATE_H
#define HD_RUN_DELEGATE_H

#include <stdbool.h>

#include "base/compiler.h"

struct hd_app;
struct hd_delegates;
struct hd_delegation;
struct hd_active_run;

#define HD_MAX_DELEGATES 5 /* one within the other */

HD_MUST_CHECK int hd_delegation_create(struct hd_app *app, struct hd_delegation **out);
/* No run may be at work. */
void hd_delegation_destroy(struct hd_delegation *delegation);

/* For hd_agents_create(); stays as long as the delegation. */
const struct hd_delegates *hd_delegation_table(const struct hd_delegation *delegation);

/* The operation `delegate` of workers, for app->runtime before it starts. */
HD_MUST_CHECK int hd_delegation_add_ops(struct hd_delegation *delegation);

/* As hd_run_hold(), for all delegates of a run. */
void hd_delegation_hold(struct hd_delegation *delegation, const struct hd_active_run *active,
                        bool is_held);

#endif
