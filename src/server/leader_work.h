/*
 * The work of the leader of a cluster that cannot wait: when this server becomes the leader, or
 * another one is gone, it looks at crons and the outbox, and compares the index of threads with the
 * threads. The parts themselves ask hd_cluster_is_leader() whenever they are due.
 */
#ifndef HD_SERVER_LEADER_WORK_H
#define HD_SERVER_LEADER_WORK_H

#include "base/compiler.h"

struct hd_app;

/* Once the parts are open; they may be closed again. On the loop. */
HD_MUST_CHECK int hd_leader_work_start(struct hd_app *app);

#endif
