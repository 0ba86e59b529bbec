/* Telling the owner of a run what happens. */
#include "graph/engine.h"

void hd_emit(struct hd_loop *loop, const struct hd_event *event)
{
    const struct hd_run_options *options = &loop->run->options;

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

struct hd_slice hd_event_node(const struct hd_event *event)
{
    return event->task ? event->task->node->name : hd_slice("", 0);
}
