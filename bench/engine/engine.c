/*
 * The native engine's side of bench/engine: one line of JSON.
 *
 *   bench-engine run GRAPHS URL WORKLOAD SECONDS [AT_ONCE]   supersteps per second
 *   bench-engine history GRAPHS URL ROUNDS                   cost by length of the history
 *   bench-engine wait GRAPHS URL RUNS                        memory of waiting runs
 *
 * GRAPHS is the folder of the declarations. Workloads are those of graphs.py and graphs.mjs: every
 * run has a new thread, except in `chat`, whose 100 runs are turns of one thread, which each run
 * loads again. CPU is that of all threads of the process. Commits are batches written to the
 * database or to memory. Every result is checked.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/uuid.h"
#include "graph/decl/graph.h"
#include "graph/engine/events.h"
#include "graph/engine/run.h"
#include "heddle.h"
#include "store/lane.h"

#define MAX_AT_ONCE 1024
#define HISTORY_WINDOW 50 /* supersteps per measurement */

struct workload {
    const char *name;
    const char *graph;
    const char *input;
    int supersteps;    /* of a run: those with tasks */
    int turns;         /* runs on one thread */
    const char *check; /* channel of the output ... */
    int64_t expected;  /* ... and its value after the last turn; of a list the number of elements */
};

static const struct workload workloads[] = {
    {"echo", "echo", "{\"messages\": [\"Hello\"]}", 1, 1, "messages", 2},
    {"loop", "loop", "{\"count\": 0}", 5, 1, "count", 5},
    {"fanout", "fanout", "{\"n\": 100}", 2, 1, "count", 100},
    {"chat", "echo", NULL, 1, 100, "messages", 200},
};

struct bench {
    struct heddle *store;
    struct hd_graph *graph;
    uv_loop_t uv;
    struct hd_engine *engine;
};

static double seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static _Noreturn void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench-engine: %s: %s\n", what, why);
    exit(1);
}

static void *need(void *ptr)
{
    if (!ptr)
        die("memory", "exhausted");
    return ptr;
}

/* ---- opening ---------------------------------------------------------- */

static struct hd_graph *load_graph(const char *folder, const char *name)
{
    static char text[65536];
    char path[PATH_MAX];
    struct hd_graph_error error = {0};
    struct hd_graph *graph;
    size_t len;
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s.json", folder, name);
    file = fopen(path, "r");
    if (!file)
        die(path, "cannot be read");
    len = fread(text, 1, sizeof(text), file);
    (void)fclose(file);
    if (hd_graph_read((struct hd_slice){text, len}, &graph, &error) != 0)
        die(path, error.text);
    return graph;
}

static void open_bench(struct bench *b, const char *folder, const char *graph, const char *url)
{
    struct heddle_error error = {0};

    b->graph = load_graph(folder, graph);
    if (heddle_open(&b->store, url, &error) != 0)
        die(url, error.text);
    uv_loop_init(&b->uv);
    if (hd_engine_create(b->store, &b->uv, strncmp(url, "memory:", 7) == 0, &b->engine) != 0)
        die(url, "no engine");
}

static void close_bench(struct bench *b)
{
    hd_engine_destroy(b->engine);
    uv_run(&b->uv, UV_RUN_DEFAULT);
    uv_loop_close(&b->uv);
    heddle_close(b->store);
    hd_graph_destroy(b->graph);
}

/* {"messages": [500 bytes of text]} */
static struct hd_val *long_input(void)
{
    struct hd_val *list = hd_val_list();
    char text[501];

    for (size_t i = 0; i < sizeof(text) - 1; i++)
        text[i] = "word "[i % 5];
    text[sizeof(text) - 1] = '\0';
    list = hd_val_append(list, hd_val_cstr(text));
    return need(hd_val_with(hd_val_object(), HD_S("messages"), list));
}

static struct hd_val *make_input(const struct workload *w)
{
    struct hd_val *input;

    if (!w->input)
        return long_input();
    if (hd_val_parse_json(hd_slice_cstr(w->input), &input, NULL) != 0)
        die(w->name, "bad input");
    return input;
}

/* ---- supersteps per second ---------------------------------------------- */

/* A slot runs one run at a time; several slots run concurrently. */
struct slot {
    const struct workload *workload;
    bool is_busy;
    int turn;
    char thread[HD_UUID_SIZE];
    long *runs;
};

static void check(const struct slot *slot, const struct hd_engine_run_result *result)
{
    const struct workload *w = slot->workload;
    struct hd_val *found;
    int64_t number;

    if (result->status != HD_ENGINE_RUN_DONE)
        die(w->name, result->error_text ? result->error_text : "did not finish");
    if (slot->turn < w->turns)
        return;
    found = hd_val_get(result->output, hd_slice_cstr(w->check));
    if (!hd_val_get_int(found, &number))
        number = (int64_t)hd_val_count(found);
    if (number != w->expected)
        die(w->name, "wrong result");
}

static void on_done(void *ctx, const struct hd_engine_run_result *result)
{
    struct slot *slot = ctx;

    slot->turn++;
    check(slot, result);
    if (slot->turn == slot->workload->turns)
        slot->turn = 0;
    slot->is_busy = false;
    ++*slot->runs;
}

static void start(struct bench *b, struct slot *slot, const struct hd_val *input)
{
    struct hd_engine_run_options options = {
        .graph = b->graph, .input = input, .on_done = on_done, .ctx = slot};
    struct hd_engine_run *run;

    if (slot->turn == 0)
        hd_uuid_v4(slot->thread);
    options.thread = hd_slice_cstr(slot->thread);
    slot->is_busy = true;
    if (hd_engine_run_start(b->engine, &options, &run) != 0)
        die(slot->workload->name, "cannot start");
}

/* Starts runs for `length` seconds (threads are always finished); returns the number of runs. */
static long work(struct bench *b, const struct workload *w, double length, int at_once)
{
    static struct slot slots[MAX_AT_ONCE];
    struct hd_val *input = make_input(w);
    double end = seconds(CLOCK_MONOTONIC) + length;
    bool is_busy = true;
    long runs = 0;

    for (int i = 0; i < at_once; i++)
        slots[i] = (struct slot){.workload = w, .runs = &runs};
    while (is_busy) {
        bool is_over = seconds(CLOCK_MONOTONIC) >= end;

        is_busy = false;
        for (int i = 0; i < at_once; i++) {
            if (!slots[i].is_busy && (!is_over || slots[i].turn > 0))
                start(b, &slots[i], input);
            is_busy |= slots[i].is_busy;
        }
        uv_run(&b->uv, UV_RUN_ONCE);
    }
    hd_val_unref(input);
    return runs;
}

/* Since the start. */
static double commits(const struct bench *b)
{
    const struct hd_store *store = hd_store_of(b->store);
    double count = 0;

    for (unsigned i = 0; i < store->lane_count; i++)
        count += (double)store->lanes[i].batch_number;
    return count;
}

static int measure_runs(const char *folder, const char *url, const char *name, double length,
                        int at_once)
{
    const struct workload *w = NULL;
    struct bench b = {0};
    double wall, cpu, committed;
    double steps;

    for (size_t i = 0; i < HD_COUNT(workloads); i++)
        if (strcmp(workloads[i].name, name) == 0)
            w = &workloads[i];
    if (!w || at_once < 1 || at_once > MAX_AT_ONCE)
        return 2;
    open_bench(&b, folder, w->graph, url);
    (void)work(&b, w, length < 2 ? 1 : length / 2, at_once);
    committed = commits(&b);
    wall = seconds(CLOCK_MONOTONIC);
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    steps = (double)work(&b, w, length, at_once) * w->supersteps;
    wall = seconds(CLOCK_MONOTONIC) - wall;
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    (void)printf("{\"workload\": \"%s\", \"supersteps\": %.0f, \"supersteps_per_s\": %.1f, "
                 "\"cpu_us_per_superstep\": %.2f, \"commits_per_superstep\": %.3f}\n",
                 name, steps, steps / wall, 1e6 * cpu / steps, (commits(&b) - committed) / steps);
    close_bench(&b);
    return 0;
}

/* ---- cost by length of the history ---------------------------------------- */

static const int lengths[] = {10, 100, 1000};

struct history {
    int messages;
    double since;
    double best[HD_COUNT(lengths)]; /* microseconds of CPU per superstep */
    bool is_done;
};

static void on_history_event(void *ctx, const struct hd_event *event)
{
    struct history *h = ctx;
    double now;

    if (event->type != HD_EVENT_TASK)
        return;
    h->messages++;
    for (size_t i = 0; i < HD_COUNT(lengths); i++) {
        if (h->messages != lengths[i] && h->messages != lengths[i] + HISTORY_WINDOW)
            continue;
        now = 1e6 * seconds(CLOCK_PROCESS_CPUTIME_ID);
        if (h->messages == lengths[i])
            h->since = now;
        else if (h->best[i] == 0 || (now - h->since) / HISTORY_WINDOW < h->best[i])
            h->best[i] = (now - h->since) / HISTORY_WINDOW;
    }
}

static void on_history_done(void *ctx, const struct hd_engine_run_result *result)
{
    struct history *h = ctx;

    if (result->status != HD_ENGINE_RUN_DONE ||
        hd_val_count(hd_val_get(result->output, HD_S("messages"))) != 1060)
        die("history", result->error_text ? result->error_text : "wrong result");
    h->is_done = true;
}

/* Uses durability "sync", so that the saves of a superstep are in its own window. */
static int measure_history(const char *folder, const char *url, int rounds)
{
    struct history h = {0};
    struct bench b = {0};
    struct hd_val *input = long_input();

    open_bench(&b, folder, "history", url);
    for (int i = 0; i < rounds; i++) {
        char thread[HD_UUID_SIZE];
        struct hd_engine_run_options options = {.graph = b.graph,
                                                .input = input,
                                                .durability = HD_DURABLE_SYNC,
                                                .on_event = on_history_event,
                                                .on_done = on_history_done,
                                                .ctx = &h};
        struct hd_engine_run *run;

        hd_uuid_v4(thread);
        options.thread = hd_slice_cstr(thread);
        h.messages = 0;
        h.is_done = false;
        if (hd_engine_run_start(b.engine, &options, &run) != 0)
            die("history", "cannot start");
        while (!h.is_done)
            uv_run(&b.uv, UV_RUN_ONCE);
    }
    (void)printf("{\"cpu_us\": {");
    for (size_t i = 0; i < HD_COUNT(lengths); i++)
        (void)printf("%s\"%d\": %.2f", i ? ", " : "", lengths[i], h.best[i]);
    (void)printf("}}\n");
    hd_val_unref(input);
    close_bench(&b);
    return 0;
}

/* ---- waiting runs ------------------------------------------------------- */

struct crowd {
    long waiting;
    long ended;
};

static void on_wait_event(void *ctx, const struct hd_event *event)
{
    struct crowd *crowd = ctx;

    if (event->type == HD_EVENT_TASK)
        crowd->waiting++;
}

static void on_wait_done(void *ctx, const struct hd_engine_run_result *result)
{
    struct crowd *crowd = ctx;

    if (result->status != HD_ENGINE_RUN_CANCELLED)
        die("wait", result->error_text ? result->error_text : "did not wait");
    crowd->ended++;
}

/* Kilobytes of resident memory. */
static long resident(void)
{
    FILE *file = need(fopen("/proc/self/status", "r"));
    char line[256];
    long found = -1;

    while (found < 0 && fgets(line, sizeof(line), file))
        (void)sscanf(line, "VmRSS: %ld", &found);
    (void)fclose(file);
    return found;
}

static void start_waiting(struct bench *b, struct crowd *crowd, struct hd_engine_run **out)
{
    struct hd_val *input = long_input();
    char thread[HD_UUID_SIZE];
    struct hd_engine_run_options options = {.graph = b->graph,
                                            .input = input,
                                            .on_event = on_wait_event,
                                            .on_done = on_wait_done,
                                            .ctx = crowd};

    hd_uuid_v4(thread);
    options.thread = hd_slice_cstr(thread);
    if (hd_engine_run_start(b->engine, &options, out) != 0)
        die("wait", "cannot start");
    hd_val_unref(input);
}

/* Makes uv_run(UV_RUN_ONCE) return while all runs wait. */
static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static int measure_waiting(const char *folder, const char *url, long count)
{
    struct hd_engine_run **runs = need(hd_calloc((size_t)count, sizeof(*runs)));
    struct crowd crowd = {0};
    struct bench b = {0};
    double began = seconds(CLOCK_MONOTONIC);
    long before, during;
    uv_timer_t tick;

    open_bench(&b, folder, "wait", url);
    uv_timer_init(&b.uv, &tick);
    uv_timer_start(&tick, on_tick, 10, 10);
    before = resident();
    for (long i = 0; i < count; i++)
        start_waiting(&b, &crowd, &runs[i]);
    while (crowd.waiting < count)
        uv_run(&b.uv, UV_RUN_ONCE);
    during = resident();
    began = seconds(CLOCK_MONOTONIC) - began;
    for (long i = 0; i < count; i++)
        hd_engine_run_cancel(runs[i]);
    while (crowd.ended < count)
        uv_run(&b.uv, UV_RUN_ONCE);
    (void)printf("{\"runs\": %ld, \"rss_mb\": %.1f, \"kb_per_run\": %.2f, \"seconds\": %.2f}\n",
                 count, (double)during / 1024, (double)(during - before) / (double)count, began);
    uv_close((uv_handle_t *)&tick, NULL);
    close_bench(&b);
    hd_free(runs);
    return 0;
}

int main(int argc, char **argv)
{
    int status = 2;

    if (argc >= 6 && strcmp(argv[1], "run") == 0)
        status = measure_runs(argv[2], argv[3], argv[4], strtod(argv[5], NULL),
                              argc > 6 ? (int)strtol(argv[6], NULL, 10) : 1);
    else if (argc == 5 && strcmp(argv[1], "history") == 0)
        status = measure_history(argv[2], argv[3], (int)strtol(argv[4], NULL, 10));
    else if (argc == 5 && strcmp(argv[1], "wait") == 0)
        status = measure_waiting(argv[2], argv[3], strtol(argv[4], NULL, 10));
    if (status == 2)
        (void)fprintf(stderr, "usage: bench-engine run|history|wait GRAPHS URL … (see engine.c)\n");
    return status;
}
