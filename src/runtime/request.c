/*
 * Requests of workers to the server. An op with `work` runs on a store thread and returns through
 * runtime->wake; one with `start` responds asynchronously.
 */
#include <heddle.h>
#include <string.h>

#include "base/alloc.h"
#include "runtime/runtime_internal.h"

#define MAX_ANSWER HD_FRAME_MAX_HEAD
#define MAX_ARENA HD_FRAME_MAX

static const char *code_of(int err)
{
    switch (err) {
    case HD_ENOTFOUND:
        return "not_found";
    case HD_EINVAL:
    case HD_EUNSUPPORTED:
        return "invalid";
    case HD_ECONFLICT:
    case HD_EEXISTS:
        return "conflict";
    case HD_ECLOSED:
        return "gone";
    case HD_ELIMIT:
    case HD_EFULL:
        return "limit";
    case HD_EBUSY:
        return "busy";
    case HD_ENOMEM:
    case HD_EIO:
    case HD_EUNAVAILABLE:
        return "unavailable";
    default:
        return "internal";
    }
}

int hd_rt_request_write_error(struct hd_buf *out, const char *type, int code, const char *text)
{
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "type", hd_slice_cstr(type));
    hd_jw_put_string(&jw, "message", hd_slice_cstr(text));
    hd_jw_put_string(&jw, "code", hd_slice_cstr(code_of(code)));
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

int hd_rt_request_refuse(struct hd_link *link, uint32_t id, int code, const char *text)
{
    struct hd_rt_message message = {.head = HD_S("{}")};
    struct hd_buf head;
    int err;

    hd_buf_init(&head, 4096);
    if (hd_rt_request_write_error(&head, "HeddleError", code, text) == 0)
        message.head = hd_buf_slice(&head);
    err = hd_link_send(link, HD_FRAME_ERROR, id, &message, NULL, NULL);
    hd_buf_fini(&head);
    return err;
}

/* A worker without a response would wait forever. */
static void refuse_request(struct hd_rt_worker *worker, uint32_t id, int code, const char *text)
{
    if (worker->link && hd_rt_request_refuse(worker->link, id, code, text) == HD_ENOMEM)
        hd_rt_worker_end(worker, "out of memory for a message to it");
}

/* ---- boxes -------------------------------------------------------------- */

static void free_box(void *arg)
{
    struct hd_rt_request_box *box = arg;

    if (box->request.free_blobs)
        box->request.free_blobs(box->request.free_arg);
    hd_buf_fini(&box->request.head);
    hd_json_fini(&box->json);
    hd_arena_fini(&box->arena);
    hd_scope_unref(box->scope);
    hd_free(box->memory);
    hd_free(box);
}

static struct hd_rt_request_box **find_box(struct hd_rt_worker *worker, uint32_t id)
{
    struct hd_rt_request_box **at = &worker->requests[id % HD_RT_BUCKETS];

    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

static void unlink_box(struct hd_rt_request_box *box)
{
    struct hd_rt_worker *worker = box->worker;
    struct hd_rt_request_box **at = find_box(worker, box->id);

    *at = box->next;
    box->worker = NULL;
    if (box->op->work) {
        worker->work_count--;
        worker->work_bytes -= box->bytes;
    } else {
        worker->started_count--;
    }
}

static struct hd_rt_request_box *make_box(struct hd_rt_worker *worker,
                                          const struct hd_frame *borrowed)
{
    struct hd_rt_request_box *box = hd_calloc(1, sizeof(*box));
    struct hd_frame frame = *borrowed;
    struct hd_slice *blobs;

    if (!box)
        return NULL;
    hd_arena_init(&box->arena, MAX_ARENA);
    hd_buf_init(&box->request.head, MAX_ANSWER);
    box->id = frame.id;
    box->bytes = frame.head.len + frame.blobs.len;
    box->request.runtime = worker->runtime;
    box->request.language = worker->language;
    box->request.arena = &box->arena;
    blobs = hd_arena_calloc(&box->arena, frame.blob_count, sizeof(*blobs));
    if (!blobs || hd_link_keep(worker->link, &frame, &box->memory)) {
        free_box(box);
        return NULL;
    }
    hd_frame_split(&frame, blobs);
    box->request.message =
        (struct hd_rt_message){.head = frame.head, .blobs = blobs, .blob_count = frame.blob_count};
    return box;
}

/* ---- responses -------------------------------------------------------- */

static void send_answer(struct hd_rt_worker *worker, struct hd_rt_request_box *box)
{
    struct hd_rt_request *request = &box->request;
    struct hd_rt_message message = {.head = hd_buf_slice(&request->head),
                                    .blobs = request->blobs,
                                    .blob_count = request->blob_count};
    uint32_t id = box->id;
    int err;

    if (request->fault.code) {
        refuse_request(worker, id, request->fault.code,
                       request->fault.text[0] ? request->fault.text
                                              : hd_error_text(request->fault.code));
        free_box(box);
        return;
    }
    if (message.head.len == 0)
        message.head = HD_S("{}");
    err = hd_link_send(worker->link, HD_FRAME_ANSWER, id, &message, free_box, box);
    if (err)
        free_box(box);
    if (err == HD_ELIMIT)
        refuse_request(worker, id, err, "the response exceeds the maximum frame size");
    else if (err < 0 && err != HD_ECLOSED)
        hd_rt_worker_end(worker, "out of memory for a message to it");
}

static void finish_box(struct hd_rt_request_box *box)
{
    struct hd_scope_ref *scope = box->scope;
    struct hd_rt_worker *worker = box->worker;
    struct hd_runtime *runtime = box->request.runtime;

    runtime->open_requests--;
    if (scope && box->op->work && --scope->at_work == 0 && scope->call && scope->call->has_end)
        hd_rt_call_soon(scope->call);
    if (scope && box->op->start)
        scope->started--;
    if (worker) {
        unlink_box(box);
        if (worker->link)
            send_answer(worker, box);
        else
            free_box(box);
        hd_rt_worker_regulate(worker);
    } else {
        free_box(box);
    }
    if (runtime->open_requests == 0 && (runtime->is_draining || runtime->is_destroyed))
        hd_runtime_wake(runtime);
}

int hd_rt_request_piece(struct hd_rt_request *request, const struct hd_rt_message *message)
{
    struct hd_rt_request_box *box = (struct hd_rt_request_box *)request;

    if (!box->worker || !box->worker->link || box->is_cancelled)
        return HD_ECLOSED;
    if (hd_link_unsent(box->worker->link) > HD_RT_MAX_UNSENT)
        return HD_ELIMIT;
    return hd_link_send(box->worker->link, HD_FRAME_PIECE, box->id, message, NULL, NULL);
}

void hd_rt_request_answer(struct hd_rt_request *request)
{
    struct hd_rt_request_box *box = (struct hd_rt_request_box *)request;

    if (box->is_answered)
        return;
    box->is_answered = true;
    finish_box(box);
}

/* ---- work on store threads -------------------------------------------- */

static void work_on_thread(void *arg)
{
    struct hd_rt_request_box *box = arg;
    struct hd_runtime *runtime = box->request.runtime;

    box->op->work(&box->request);
    pthread_mutex_lock(&runtime->lock);
    box->done_next = NULL;
    *runtime->done_tail = box;
    runtime->done_tail = &box->done_next;
    /* Inside the lock: the runtime may be freed once the loop has seen its last request. */
    uv_async_send(&runtime->wake);
    pthread_mutex_unlock(&runtime->lock);
}

void hd_rt_request_wake(struct hd_runtime *runtime)
{
    struct hd_rt_request_box *box, *next;

    pthread_mutex_lock(&runtime->lock);
    box = runtime->done;
    runtime->done = NULL;
    runtime->done_tail = &runtime->done;
    pthread_mutex_unlock(&runtime->lock);
    for (; box; box = next) {
        next = box->done_next;
        if (!box->worker || box->is_cancelled || runtime->is_destroyed ||
            !hd_patience_wait(runtime->settings->patience, &box->retry, box->request.fault.code))
            finish_box(box);
    }
}

static void run_box_work(struct hd_rt_request_box *box);

/* Retries: the store was unavailable. */
static void work_again(void *arg)
{
    struct hd_rt_request_box *box = arg;

    box->request.fault = (struct heddle_error){0};
    run_box_work(box);
}

static void run_box_work(struct hd_rt_request_box *box)
{
    struct hd_runtime *runtime = box->request.runtime;

    box->retry.again = work_again;
    box->retry.arg = box;
    if (!runtime->store || runtime->settings->is_direct) {
        box->op->work(&box->request);
        finish_box(box);
    } else if (heddle_defer(runtime->store, work_on_thread, box)) {
        (void)hd_error_set(&box->request.fault, HD_ENOMEM, "out of memory for a store thread");
        finish_box(box);
    }
}

static void start_box(struct hd_rt_request_box *box)
{
    if (box->worker->started_count > HD_RT_MAX_STARTED) {
        (void)hd_error_set(&box->request.fault, HD_ELIMIT, "more than %d such calls are open",
                           HD_RT_MAX_STARTED);
        hd_rt_request_answer(&box->request);
    } else {
        box->op->start(&box->request);
    }
}

/* ---- frames --------------------------------------------------------------- */

static const struct hd_rt_op *find_op(struct hd_runtime *runtime, struct hd_slice name, void **ctx)
{
    for (size_t i = 0; i < runtime->table_count; i++) {
        const struct hd_op_table *table = &runtime->tables[i];

        for (size_t k = 0; k < table->count; k++) {
            if (hd_slice_eq(name, hd_slice_cstr(table->ops[k].name))) {
                *ctx = table->ctx;
                return &table->ops[k];
            }
        }
    }
    return NULL;
}

/* Finds the scope of the call that the worker names. */
static int find_scope(struct hd_rt_worker *worker, struct hd_rt_request_box *box)
{
    hd_json_val number = hd_json_get(box->request.root, HD_S("call"));
    struct hd_rt_call *call = NULL;
    int64_t id;

    if ((!number || hd_json_is_null(number)) && !box->op->needs_scope)
        return 0;
    if (!number || !hd_json_int(number, &id) || id < 0 || id > UINT32_MAX)
        return hd_error_set(&box->request.fault, HD_EINVAL, "`call` is not a call number");
    call = hd_rt_call_find_open(worker, (uint32_t)id);
    if (!call)
        return hd_error_set(&box->request.fault, HD_ECLOSED, "call %lld has ended", (long long)id);
    if (!call->scope)
        return box->op->needs_scope ? hd_error_set(&box->request.fault, HD_EINVAL,
                                                   "call %lld has no thread", (long long)id)
                                    : 0;
    box->scope = hd_scope_ref(call->scope);
    box->request.scope = &box->scope->scope;
    return 0;
}

static void put_in(struct hd_rt_worker *worker, struct hd_rt_request_box *box)
{
    struct hd_rt_request_box **bucket = &worker->requests[box->id % HD_RT_BUCKETS];

    box->worker = worker;
    box->next = *bucket;
    *bucket = box;
    worker->runtime->open_requests++;
    if (box->op->work) {
        worker->work_count++;
        worker->work_bytes += box->bytes;
    } else {
        worker->started_count++;
    }
    if (box->scope && box->op->work)
        box->scope->at_work++;
    else if (box->scope)
        box->scope->started++;
}

/* Ops of the runtime itself; false: another op. */
static bool is_runtime_op(struct hd_rt_worker *worker, struct hd_slice op, uint32_t id,
                          struct hd_slice head)
{
    if (hd_slice_eq(op, HD_S("ready"))) {
        hd_rt_worker_is_ready(worker, id, head);
        return true;
    }
    if (hd_slice_eq(op, HD_S("changed"))) {
        hd_rt_worker_answer(worker, id, HD_S("{}"));
        hd_pool_changed(worker, hd_runtime_now(worker->runtime));
        return true;
    }
    return false;
}

static void begin_box(struct hd_rt_worker *worker, struct hd_rt_request_box *box,
                      struct hd_slice name)
{
    box->op = find_op(worker->runtime, name, &box->request.ctx);
    if (!box->op)
        (void)hd_error_set(&box->request.fault, HD_EINVAL, "unknown operation `%.*s`",
                           (int)(name.len < 64 ? name.len : 64), name.ptr);
    if (!box->op || find_scope(worker, box)) {
        refuse_request(worker, box->id, box->request.fault.code, box->request.fault.text);
        free_box(box);
        return;
    }
    box->request.op = box->op->name;
    put_in(worker, box);
    hd_rt_worker_regulate(worker);
    if (box->op->work)
        run_box_work(box);
    else
        start_box(box);
}

static bool take_call(struct hd_rt_worker *worker, const struct hd_frame *frame)
{
    struct hd_rt_request_box *box;
    struct hd_slice name;

    if (*find_box(worker, frame->id))
        return false;
    box = make_box(worker, frame);
    if (!box) {
        refuse_request(worker, frame->id, HD_ENOMEM, hd_error_text(HD_ENOMEM));
        return true;
    }
    if (hd_json_parse(&box->json, box->request.message.head, NULL) ||
        !hd_json_is_object(hd_json_root(&box->json))) {
        free_box(box);
        return false;
    }
    box->request.root = hd_json_root(&box->json);
    name = hd_json_string(hd_json_get(box->request.root, HD_S("op")));
    if (is_runtime_op(worker, name, box->id, box->request.message.head))
        free_box(box);
    else
        begin_box(worker, box, name);
    return true;
}

static void cancel_box(struct hd_rt_request_box *box)
{
    if (box->is_cancelled || box->is_answered || !box->op->start)
        return;
    box->is_cancelled = true;
    if (box->request.on_cancel)
        box->request.on_cancel(&box->request);
}

bool hd_rt_request_frame(struct hd_rt_worker *worker, const struct hd_frame *frame)
{
    struct hd_rt_request_box *box;

    if (frame->type == HD_FRAME_CALL)
        return take_call(worker, frame);
    /* The cancelled request may have ended already. HOLD and GO have no effect here. */
    box = *find_box(worker, frame->id);
    if (box && frame->type == HD_FRAME_CANCEL)
        cancel_box(box);
    return true;
}

/* ---- lost requests ---------------------------------------------------- */

void hd_rt_request_lose_all(struct hd_rt_worker *worker)
{
    for (size_t i = 0; i < HD_RT_BUCKETS; i++) {
        while (worker->requests[i]) {
            struct hd_rt_request_box *box = worker->requests[i];

            unlink_box(box);
            cancel_box(box);
        }
    }
}

/* The first open one; callbacks may complete others, so the search starts over each time. */
static struct hd_rt_request_box *find_started(struct hd_runtime *runtime,
                                              const struct hd_scope_ref *scope)
{
    for (struct hd_rt_worker *worker = runtime->workers; worker; worker = worker->next)
        for (size_t i = 0; i < HD_RT_BUCKETS; i++)
            for (struct hd_rt_request_box *box = worker->requests[i]; box; box = box->next)
                if (box->scope == scope && box->op->start && !box->is_cancelled)
                    return box;
    return NULL;
}

void hd_rt_request_scope_ended(struct hd_runtime *runtime, const struct hd_scope_ref *scope)
{
    struct hd_rt_request_box *box;

    while (scope->started > 0 && (box = find_started(runtime, scope)))
        cancel_box(box);
}

int hd_runtime_add_ops(struct hd_runtime *runtime, const struct hd_rt_op *ops, size_t count,
                       void *ctx)
{
    if (runtime->table_count == HD_RT_MAX_OPS)
        return HD_ELIMIT;
    runtime->tables[runtime->table_count++] = (struct hd_op_table){ops, count, ctx};
    return 0;
}
