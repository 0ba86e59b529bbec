#include "worker/worker_ops.h"

#include <string.h>

#include "worker/worker_internal.h"

static int carry_out(struct hd_worker_op *op)
{
    static const struct {
        const char *name;
        int (*fn)(struct hd_worker_op *op);
        bool needs_thread;
    } handlers[] = {
        {"get", hd_worker_get, true},         {"put", hd_worker_put, true},
        {"writes", hd_worker_writes, true},   {"list", hd_worker_list, true},
        {"history", hd_worker_history, true}, {"items", hd_worker_items, false},
    };
    const char *name = op->request->op;

    for (size_t i = 0; i < HD_COUNT(handlers); i++) {
        if (strcmp(handlers[i].name, name) != 0)
            continue;
        if (handlers[i].needs_thread && op->scope->thread.len == 0)
            return hd_error_set(op->in.fault, HD_EINVAL, "%s: the call has no thread", name);
        return handlers[i].fn(op);
    }
    return hd_error_set(op->in.fault, HD_EUNSUPPORTED, "unknown operation '%s'", name);
}

void hd_worker_op_end(struct hd_rt_request *request, int err)
{
    if (!err) {
        request->fault = (struct heddle_error){0}; /* drops that of a lookup that found nothing */
        return;
    }
    hd_error_set(&request->fault, err, "%s", hd_error_text(err));
    hd_buf_reset(&request->head);
    request->blob_count = 0;
    if (request->free_blobs)
        request->free_blobs(request->free_arg);
    request->free_blobs = NULL;
}

void hd_worker_work(struct hd_rt_request *request)
{
    struct hd_worker_op op = {.app = request->ctx, .request = request, .scope = request->scope};

    op.in = (struct hd_wire_in){.message = &request->message,
                                .head = request->root,
                                .arena = request->arena,
                                .fault = &request->fault};
    hd_worker_op_end(request, carry_out(&op));
}

int hd_worker_ops_add(struct hd_app *app)
{
    static const struct hd_rt_op ops[] = {
        {.name = "get", .work = hd_worker_work, .needs_scope = true},
        {.name = "put", .work = hd_worker_work, .needs_scope = true},
        {.name = "writes", .work = hd_worker_work, .needs_scope = true},
        {.name = "list", .work = hd_worker_work, .needs_scope = true},
        {.name = "history", .work = hd_worker_work, .needs_scope = true},
    };
    static const struct hd_rt_op items[] = {
        {.name = "items", .work = hd_worker_work, .needs_scope = true},
        {.name = "items", .start = hd_worker_items_start, .needs_scope = true},
    };
    int err = hd_runtime_add_ops(app->runtime, ops, HD_COUNT(ops), app);

    /* Only semantic search needs the loop, between reading a batch and executing it. */
    return err ? err : hd_runtime_add_ops(app->runtime, &items[app->embedder != NULL], 1, app);
}
