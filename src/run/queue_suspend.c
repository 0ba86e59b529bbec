/*
 * Suspension of all runs. It acts below the runs: the engine starts no work and its HTTP client
 * does nothing, workers are stopped. So it covers delegates too, and does not mix with the
 * back-pressure of slow readers.
 */
#include "base/log.h"
#include "graph/engine/run.h"
#include "run/active_run.h"
#include "runtime/runtime.h"

void hd_queue_suspend(struct hd_queue *queue, bool is_suspended)
{
    if (queue->is_suspended == is_suspended || queue->is_draining)
        return;
    hd_log(HD_LOG_WARN, "run", is_suspended ? "runs are suspended" : "runs continue");
    queue->is_suspended = is_suspended;
    hd_engine_suspend(queue->app->engine, is_suspended);
    if (queue->app->runtime)
        hd_runtime_suspend(queue->app->runtime, is_suspended);
    hd_queue_wake(queue);
}
