/* Emits events to the owner of a run. */
#include "graph/engine/events.h"

#include "base/buf.h"
#include "base/slice.h"
#include "graph/engine/engine.h"
#include "graph/engine/loop.h"
#include "graph/engine/run.h"
#include "graph/engine/task.h"

void hd_emit(struct hd_loop *loop, const struct hd_event *event)
{
    const struct hd_engine_run_options *options = &loop->run->options;

    if (!options->on_event || loop->run->is_cancelled)
        return;
    loop->run->telling++;
    options->on_event(options->ctx, event);
    loop->run->telling--;
}

struct hd_slice hd_event_ns(const struct hd_event *event)
{
    return hd_loop_ns(event->loop);
}

int hd_event_shown_ns(const struct hd_engine_run *run, struct hd_buf *out)
{
    const struct hd_task *task = run->options.around;
    int err;

    if (!task)
        return 0;
    err = hd_event_shown_ns(task->loop->run, out);
    if (!err && out->len > 0)
        err = hd_buf_append_byte(out, '|');
    return err ? err : hd_task_ns(task, hd_loop_ns(task->loop), out);
}

struct hd_slice hd_event_node(const struct hd_event *event)
{
    return event->task ? event->task->node->name : hd_slice("", 0);
}
