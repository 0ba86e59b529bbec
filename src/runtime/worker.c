/* One worker: its process and its link, from the start to the end. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/uuid.h"
#include "runtime/runtime_internal.h"

#define MAX_HELLO ((size_t)16 << 20)
#define TELL_US INT64_C(250000)   /* time to learn how the process ended */
#define LEAVE_US INT64_C(5000000) /* time for a drained process to end */
#define DRY_US INT64_C(1000000)   /* time to read a dead process's socket */
#define LONGEST_PING_US INT64_C(5000000)
#define WEIGH_US INT64_C(500000) /* between checks of its memory */
#define BEATS_PER_LEASE 6        /* signs of life */
#define MEMORY_FACTOR 2          /* times its limit: kill the worker without waiting */

/* ---- end -------------------------------------------------------------- */

static void set_state(struct hd_rt_worker *worker, enum hd_rt_worker_state state)
{
    worker->state = state;
    worker->since_us = hd_runtime_now(worker->runtime);
}

void hd_rt_worker_end(struct hd_rt_worker *worker, const char *fmt, ...)
{
    va_list args;

    if (worker->state == HD_WORKER_ENDING)
        return;
    va_start(args, fmt);
    (void)vsnprintf(worker->why, sizeof(worker->why), fmt, args);
    va_end(args);
    worker->kill_us = worker->state == HD_WORKER_DRAINING && worker->drain_id == 0 ? LEAVE_US : 0;
    if (worker->is_shut)
        worker->kill_us = LEAVE_US;
    set_state(worker, HD_WORKER_ENDING);
    hd_link_close(worker->link);
    worker->link = NULL;
    hd_runtime_wake(worker->runtime);
}

/* Reaps its process; true: there is none left. */
static bool bury(struct hd_rt_worker *worker, int64_t now)
{
    char how[64];

    if (!worker->proc)
        return true;
    if (hd_proc_has_ended(worker->proc, how, sizeof(how))) {
        if (worker->is_shut)
            (void)snprintf(worker->why, sizeof(worker->why), "%s", how);
        hd_proc_close(worker->proc);
        worker->proc = NULL;
        return true;
    }
    if (now - worker->since_us >= worker->kill_us)
        hd_proc_kill(worker->proc, SIGKILL);
    return false;
}

bool hd_rt_worker_settle(struct hd_rt_worker *worker)
{
    int64_t now = hd_runtime_now(worker->runtime);
    bool is_dead;

    if (worker->state != HD_WORKER_ENDING)
        return false;
    is_dead = bury(worker, now);
    if (!worker->is_notified &&
        (is_dead || !worker->is_shut || now - worker->since_us >= TELL_US)) {
        worker->is_notified = true;
        hd_rt_request_lose_all(worker);
        hd_rt_call_lose_all(worker);
        hd_pool_lost(worker, now);
    }
    return is_dead && worker->is_notified;
}

void hd_rt_worker_destroy(struct hd_rt_worker *worker)
{
    struct hd_rt_worker **at = &worker->runtime->workers;

    while (*at != worker)
        at = &(*at)->next;
    *at = worker->next;
    hd_free(worker);
}

static bool fits_draining(const struct hd_runtime *runtime)
{
    return runtime->is_draining || runtime->is_destroyed;
}

void hd_rt_worker_drain(struct hd_rt_worker *worker)
{
    if (worker->state == HD_WORKER_STARTING || worker->state == HD_WORKER_LOADING) {
        hd_rt_worker_end(worker, "is no longer needed");
        return;
    }
    if (worker->state != HD_WORKER_READY)
        return;
    set_state(worker, HD_WORKER_DRAINING);
    if (hd_rt_call_plain(worker, HD_S("{\"op\":\"drain\"}"), &worker->drain_id))
        hd_rt_worker_end(worker, "cannot receive a drain");
}

/* ---- link ------------------------------------------------------------- */

void hd_rt_worker_answer(struct hd_rt_worker *worker, uint32_t id, struct hd_slice head)
{
    const struct hd_rt_message message = {.head = head};

    if (worker->link && hd_link_send(worker->link, HD_FRAME_ANSWER, id, &message, NULL, NULL) &&
        worker->link)
        hd_rt_worker_end(worker, "out of memory for a message to it");
}

void hd_rt_worker_regulate(struct hd_rt_worker *worker)
{
    if (!worker->link)
        return;
    worker->is_crowding = worker->queued > HD_RT_MAX_QUEUED ||
                          worker->work_count >= HD_RT_MAX_WORK ||
                          worker->work_bytes > HD_RT_MAX_WORK_BYTES;
    hd_link_set_reading(worker->link,
                        !worker->is_crowding && hd_link_unsent(worker->link) <= HD_RT_MAX_UNSENT);
}

static bool on_frame(void *ctx, const struct hd_frame *frame)
{
    struct hd_rt_worker *worker = ctx;

    switch (frame->type) {
    case HD_FRAME_ANSWER:
    case HD_FRAME_ERROR:
    case HD_FRAME_PIECE:
        return hd_rt_call_frame(worker, frame);
    default:
        return hd_rt_request_frame(worker, frame);
    }
}

static void on_worker_end(void *ctx, const char *why)
{
    struct hd_rt_worker *worker = ctx;

    /* After an invalid frame the worker is killed. */
    worker->is_shut = strcmp(why, HD_LINK_CLOSED) == 0;
    if (worker->state == HD_WORKER_DRAINING && worker->is_shut)
        worker->drain_id = 0;
    hd_rt_worker_end(worker, "is lost: %s", why);
}

static void on_sent(void *ctx)
{
    hd_rt_worker_regulate(ctx);
}

static const struct hd_link_events worker_events = {on_frame, on_worker_end, on_sent};

static int write_hello(const struct hd_rt_worker *worker, struct hd_buf *out)
{
    struct hd_slice project = worker->runtime->settings->programs[worker->language].project;
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_int(&jw, "protocol", HD_RT_PROTOCOL);
    hd_jw_put_string(&jw, "version", HD_S(HD_VERSION));
    hd_jw_put_int(&jw, "worker", worker->number);
    if (worker->runtime->settings->lease_us > 0)
        hd_jw_put_int(&jw, "lease_ms", worker->runtime->settings->lease_us / 1000);
    hd_jw_put_raw(&jw, "project", project.len > 0 ? project : HD_S("{}"));
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

void hd_rt_worker_adopt(struct hd_rt_worker *worker, struct hd_link *link, uint32_t id)
{
    struct hd_buf head;

    worker->link = link;
    worker->heard_us = hd_runtime_now(worker->runtime);
    hd_link_hand_over(link, &worker_events, worker);
    hd_link_set_limit(link, SIZE_MAX);
    /* Its timeout counts from the start of the process. */
    worker->state = HD_WORKER_LOADING;
    hd_buf_init(&head, MAX_HELLO);
    if (write_hello(worker, &head))
        hd_rt_worker_end(worker, "cannot receive the response to hello");
    else
        hd_rt_worker_answer(worker, id, hd_buf_slice(&head));
    hd_buf_fini(&head);
}

void hd_rt_worker_is_ready(struct hd_rt_worker *worker, uint32_t id, struct hd_slice head)
{
    struct hd_runtime *runtime = worker->runtime;

    hd_rt_worker_answer(worker, id, HD_S("{}"));
    if (worker->state == HD_WORKER_LOADING) {
        set_state(worker, HD_WORKER_READY);
        worker->ready_us = worker->pinged_us = worker->heard_us = worker->since_us;
        hd_log(HD_LOG_INFO, worker->name, "is ready");
        hd_pool_ready(worker);
    }
    if (worker->state == HD_WORKER_READY && !fits_draining(runtime) && runtime->on_ready)
        runtime->on_ready(runtime->ready_ctx, worker->language, head);
}

/* ---- start ------------------------------------------------------------ */

static struct hd_rt_worker *create_worker(struct hd_runtime *runtime, enum hd_rt_language language,
                                          int slot)
{
    struct hd_rt_worker *worker = hd_calloc(1, sizeof(*worker));
    struct hd_rt_worker **at = &runtime->workers;

    if (!worker)
        return NULL;
    worker->runtime = runtime;
    worker->language = language;
    worker->slot = slot;
    worker->number = ++runtime->last_number[language];
    (void)snprintf(worker->name, sizeof(worker->name), "%s %d", hd_rt_language_names[language],
                   worker->number);
    set_state(worker, HD_WORKER_STARTING);
    while (*at)
        at = &(*at)->next;
    *at = worker;
    return worker;
}

static void make_worker_key(char out[HD_RT_KEY_SIZE])
{
    unsigned char bytes[(HD_RT_KEY_SIZE - 1) / 2];

    hd_random(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

int hd_rt_worker_start(struct hd_runtime *runtime, enum hd_rt_language language, int slot,
                       struct hd_rt_worker **out, struct heddle_error *fault)
{
    const struct hd_rt_program *program = &runtime->settings->programs[language];
    struct hd_rt_worker *worker = create_worker(runtime, language, slot);
    char address[160], key[HD_RT_KEY_SIZE + 32];
    const char *const more[] = {address, key, NULL};
    const struct hd_proc_options options = {.argv = program->argv,
                                            .env = program->env,
                                            .more = more,
                                            .folder = program->folder,
                                            .name = worker ? worker->name : "",
                                            .on_closed = hd_runtime_closed,
                                            .arg = runtime};
    int err;

    if (!worker)
        return hd_error_set(fault, HD_ENOMEM, "out of memory");
    make_worker_key(worker->key);
    (void)snprintf(address, sizeof(address), "HEDDLE_RUNTIME_SOCKET=%s", runtime->path);
    (void)snprintf(key, sizeof(key), "HEDDLE_RUNTIME_KEY=%s", worker->key);
    err = hd_proc_start(runtime->loop, &options, &worker->proc, fault);
    if (err) {
        hd_rt_worker_destroy(worker);
        return err;
    }
    runtime->open_handles++;
    *out = worker;
    return 0;
}

/* ---- hello ------------------------------------------------------------------- */

static bool is_same_key(struct hd_slice a, struct hd_slice b)
{
    unsigned char differs = a.len != b.len || a.len == 0;

    for (size_t i = 0; i < a.len && i < b.len; i++)
        differs |= (unsigned char)(a.ptr[i] ^ b.ptr[i]);
    return differs == 0;
}

/* "0.1" of "0.1.7". */
static struct hd_slice first_two(struct hd_slice version)
{
    size_t dots = 0;

    for (size_t i = 0; i < version.len; i++) {
        dots += version.ptr[i] == '.';
        if (dots == 2)
            return hd_slice(version.ptr, i);
    }
    return version;
}

bool hd_rt_is_new_enough(struct hd_slice version)
{
    return !hd_slice_starts(version, HD_S("0."));
}

static int check_langgraph(hd_json_val hello, enum hd_rt_language language,
                           struct heddle_error *fault)
{
    struct hd_slice version = hd_json_string(hd_json_get(hello, HD_S("langgraph")));

    if (hd_rt_is_new_enough(version))
        return 0;
    return hd_error_set(fault, HD_EUNSUPPORTED,
                        "the worker's LangGraph is %.*s, and graphs need " HD_RT_LANGGRAPH
                        " or newer: %s",
                        (int)(version.len < 32 ? version.len : 32), version.ptr,
                        language == HD_RT_PYTHON ? "pip install -U 'langgraph>=" HD_RT_LANGGRAPH "'"
                                                 : "npm install @langchain/langgraph@latest");
}

static int check_versions(hd_json_val hello, enum hd_rt_language language,
                          struct heddle_error *fault)
{
    struct hd_slice version = hd_json_string(hd_json_get(hello, HD_S("version")));
    struct hd_slice ours = first_two(HD_S(HD_VERSION));
    int64_t protocol = 0;

    (void)hd_json_int(hd_json_get(hello, HD_S("protocol")), &protocol);
    if (protocol == HD_RT_PROTOCOL && hd_slice_eq(first_two(version), ours))
        return check_langgraph(hello, language, fault);
    if (version.len > 32)
        version.len = 32;
    return hd_error_set(
        fault, HD_EUNSUPPORTED,
        "the server is Heddle %s with protocol %d, the worker's package is %.*s "
        "with protocol %lld: %s%.*s%s",
        HD_VERSION, HD_RT_PROTOCOL, (int)version.len, version.ptr, (long long)protocol,
        language == HD_RT_PYTHON ? "pip install 'heddle[runtime]==" : "npm install heddle@",
        (int)ours.len, ours.ptr, language == HD_RT_PYTHON ? ".*'" : "");
}

static int find_language(hd_json_val hello, enum hd_rt_language *out, struct heddle_error *fault)
{
    struct hd_slice name = hd_json_string(hd_json_get(hello, HD_S("runtime")));

    for (int i = 0; i < HD_RT_LANGUAGES; i++) {
        if (hd_slice_eq(name, hd_slice_cstr(hd_rt_language_names[i]))) {
            *out = (enum hd_rt_language)i;
            return 0;
        }
    }
    return hd_error_set(fault, HD_EINVAL, "`runtime` is neither `python` nor `js`");
}

/* The worker that was started with this key, which is valid once. */
static struct hd_rt_worker *find_started(struct hd_runtime *runtime, struct hd_slice key)
{
    struct hd_rt_worker *found = NULL;

    for (struct hd_rt_worker *worker = runtime->workers; worker; worker = worker->next)
        if (worker->state == HD_WORKER_STARTING && is_same_key(key, hd_slice_cstr(worker->key)))
            found = worker;
    if (found)
        memset(found->key, 0, sizeof(found->key));
    return found;
}

static int greet_started(struct hd_runtime *runtime, hd_json_val hello,
                         enum hd_rt_language language, struct hd_rt_worker **out,
                         struct heddle_error *fault)
{
    struct hd_slice key = hd_json_string(hd_json_get(hello, HD_S("key")));
    struct hd_rt_worker *worker = find_started(runtime, key);
    int err = 0;

    if (!worker)
        return hd_error_set(fault, HD_EACCESS, "the key is not that of a worker");
    if (worker->language != language)
        err = hd_error_set(fault, HD_EINVAL, "it was started as a %s worker",
                           hd_rt_language_names[worker->language]);
    if (!err)
        err = check_versions(hello, language, fault);
    worker->is_refused = err == HD_EUNSUPPORTED;
    if (err)
        hd_rt_worker_end(worker, "was refused: %s", fault->text);
    else
        *out = worker;
    return err;
}

static int greet_remote(struct hd_runtime *runtime, hd_json_val hello, enum hd_rt_language language,
                        struct hd_rt_worker **out, struct heddle_error *fault)
{
    struct hd_slice key = hd_json_string(hd_json_get(hello, HD_S("key")));
    int err, count = 0;

    if (!is_same_key(key, hd_slice_cstr(runtime->settings->key)))
        return hd_error_set(fault, HD_EACCESS, "the key is wrong");
    err = check_versions(hello, language, fault);
    if (err)
        return err;
    if (runtime->settings->programs[language].project.len == 0)
        return hd_error_set(fault, HD_ENOTFOUND, "the project has no code for a %s worker",
                            hd_rt_language_names[language]);
    for (struct hd_rt_worker *worker = runtime->workers; worker; worker = worker->next)
        count += worker->slot < 0;
    if (count >= HD_RT_MAX_WORKERS || runtime->is_draining)
        return hd_error_set(fault, HD_ELIMIT, "the server accepts no more workers");
    *out = create_worker(runtime, language, -1);
    return *out ? 0 : hd_error_set(fault, HD_ENOMEM, "out of memory");
}

int hd_rt_worker_greet(struct hd_runtime *runtime, hd_json_val hello, bool is_remote,
                       struct hd_rt_worker **out, struct heddle_error *fault)
{
    enum hd_rt_language language = HD_RT_PYTHON;
    int err = find_language(hello, &language, fault);

    if (err)
        return err;
    return is_remote ? greet_remote(runtime, hello, language, out, fault)
                     : greet_started(runtime, hello, language, out, fault);
}

/* ---- timers ----------------------------------------------------------- */

static void watch_memory(struct hd_rt_worker *worker, int64_t now)
{
    size_t limit = worker->runtime->settings->memory, size;

    if (limit == 0 || !worker->proc || now - worker->weighed_us < WEIGH_US)
        return;
    worker->weighed_us = now;
    size = hd_proc_memory(worker->proc);
    if (size <= limit)
        return;
    if (size / MEMORY_FACTOR > limit) {
        hd_rt_worker_end(worker, "was killed: it has grown to %zu MiB", size >> 20);
    } else if (worker->state == HD_WORKER_READY && worker->age == HD_WORKER_FINE) {
        hd_log(HD_LOG_WARN, worker->name, "has grown to %zu MiB: starting another one", size >> 20);
        hd_pool_replace(worker, HD_WORKER_HEAVY);
    }
}

/* Checks whether it sent or read data since the last time. */
static void listen_for_life(struct hd_rt_worker *worker, int64_t now)
{
    size_t unsent = hd_link_unsent(worker->link);

    if (hd_link_heard(worker->link) > 0 || unsent < worker->unsent || worker->is_crowding) {
        worker->heard_us = now;
        worker->is_late = false;
    }
    worker->unsent = unsent;
}

/*
 * Data that arrived while the loop was busy is read after timers run: a worker is lost only if it
 * is still silent at the next tick.
 */
static void watch_pings(struct hd_rt_worker *worker, int64_t now)
{
    int64_t limit = worker->runtime->settings->hang_timeout_us;
    int64_t pause = limit / 3 < LONGEST_PING_US ? limit / 3 : LONGEST_PING_US;

    if (limit <= 0)
        return;
    listen_for_life(worker, now);
    if (worker->ping_id == 0) {
        if (now - worker->pinged_us < pause)
            return;
        worker->pinged_us = now;
        if (hd_rt_call_plain(worker, HD_S("{\"op\":\"ping\"}"), &worker->ping_id))
            hd_rt_worker_end(worker, "cannot receive a ping");
        return;
    }
    if (now - worker->pinged_us < limit || now - worker->heard_us < limit)
        return;
    if (worker->is_late)
        hd_rt_worker_end(worker, "was killed: it did not respond for %lld ms",
                         (long long)(limit / 1000));
    else
        worker->is_late = true;
}

/*
 * With a lease the worker gets a sign of life several times in it: a GO for no call. While the
 * server is suspended it sends none, so that remote workers end.
 */
static void send_beat(struct hd_rt_worker *worker, int64_t now)
{
    static const struct hd_rt_message nothing = {.head = HD_S_INIT("{}")};
    int64_t lease = worker->runtime->settings->lease_us;

    if (lease <= 0 || !worker->link || now - worker->beaten_us < lease / BEATS_PER_LEASE)
        return;
    worker->beaten_us = now;
    if (hd_link_send(worker->link, HD_FRAME_GO, 0, &nothing, NULL, NULL) == HD_ENOMEM)
        hd_rt_worker_end(worker, "out of memory for a message to it");
}

/* Before it is ready. */
static void watch_start(struct hd_rt_worker *worker, int64_t now)
{
    int64_t limit = worker->runtime->settings->start_timeout_us;

    if (limit > 0 && now - worker->since_us >= limit)
        hd_rt_worker_end(worker, "was killed: it was not ready within %lld ms",
                         (long long)(limit / 1000));
}

static void watch_process(struct hd_rt_worker *worker, int64_t now)
{
    char how[64];

    if (worker->state == HD_WORKER_ENDING || !worker->proc ||
        !hd_proc_has_ended(worker->proc, how, sizeof(how)))
        return;
    if (!worker->exited_us)
        worker->exited_us = now;
    if (worker->link && now - worker->exited_us < DRY_US)
        return;
    worker->is_shut = true;
    hd_rt_worker_end(worker, "%s", how);
}

void hd_rt_worker_suspend(struct hd_rt_worker *worker, bool is_suspended)
{
    int64_t now = hd_runtime_now(worker->runtime);

    if (worker->state == HD_WORKER_ENDING)
        return;
    if (worker->proc)
        hd_proc_kill(worker->proc, is_suspended ? SIGSTOP : SIGCONT);
    else
        hd_rt_call_suspend_all(worker, is_suspended);
    /* Its time starts again. */
    worker->pinged_us = worker->heard_us = now;
    worker->is_late = false;
    if (!is_suspended) {
        worker->beaten_us = 0;
        send_beat(worker, now);
    }
    if (worker->state == HD_WORKER_STARTING || worker->state == HD_WORKER_LOADING)
        worker->since_us = now;
}

void hd_rt_worker_tick(struct hd_rt_worker *worker, int64_t now)
{
    watch_process(worker, now);
    if (worker->runtime->is_suspended)
        return;
    send_beat(worker, now);
    if (worker->state == HD_WORKER_STARTING || worker->state == HD_WORKER_LOADING)
        watch_start(worker, now);
    else if (worker->link)
        watch_pings(worker, now);
    if (worker->state != HD_WORKER_ENDING)
        watch_memory(worker, now);
    if (worker->state == HD_WORKER_READY)
        hd_pool_retire(worker);
}
