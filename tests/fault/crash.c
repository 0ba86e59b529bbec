/*
 * Kills writers at random moments and checks the remaining data:
 *
 *   crash sqlite DIRECTORY       one or two processes on a file, one of them killed
 *   crash power DIRECTORY        the machine loses power; durability=full
 *   crash relaxed DIRECTORY      the same with durability=relaxed
 *   crash postgres URL           clients killed
 *   crash server URL RESTART     the server killed under its clients (RESTART kills and starts it)
 *
 * After each death the store is opened and checked: all acknowledged data must exist to the byte,
 * and of each worker's unfinished operation everything or nothing; relaxed: exactly the result of
 * the first m operations, for some m. Then new writers continue with that data.
 *
 * HEDDLE_FAULT_SECONDS (10) and HEDDLE_FAULT_KILLS (no limit) end the test, HEDDLE_FAULT_SEED
 * repeats the choices of an earlier run.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef HD_WITH_POSTGRESQL
#include <libpq-fe.h>
#endif

#include "base/clock.h"
#include "vfs.h"
#include "writer.h"

enum mode { MODE_SQLITE, MODE_POWER, MODE_RELAXED, MODE_POSTGRES, MODE_SERVER };
enum { WORKERS = 6, PER_PROCESS = 3, PROCESSES = 2 };

struct child {
    pid_t pid;
    int pipe;              /* -1: at its end */
    unsigned first, count; /* its workers */
};

struct harness {
    enum mode mode;
    const char *place; /* directory or URL */
    const char *restart;
    char path[256]; /* SQLite */
    char url[400];
    unsigned generation;
    bool is_fresh; /* nothing was acknowledged since the store was made */
    uint64_t seed, random;
    struct worker workers[WORKERS];
    uint32_t acked[WORKERS];  /* number of the last operation that was */
    bool is_unknown[WORKERS]; /* it reported an unknown outcome */
    struct child children[PROCESSES];
    unsigned child_count;
    _Atomic int *phases;
    bool has_failed;

    unsigned long kills, in_phase[PHASES], in_creation, ops, unknown, survived, lost, kept_ops;
};

static bool fail(struct harness *h, const char *what, const char *detail)
{
    (void)fprintf(stderr, "FAILED (seed %llu, kill %lu): %s: %s\n", (unsigned long long)h->seed,
                  h->kills, what, detail);
    h->has_failed = true;
    return false;
}

/* ---- stores ---- */

static bool is_file(const struct harness *h)
{
    return h->mode <= MODE_RELAXED;
}

#ifdef HD_WITH_POSTGRESQL
static bool ask(struct harness *h, const char *sql, long *out)
{
    PGconn *conn = PQconnectdb(h->place);
    PGresult *result = PQexec(conn, sql);
    bool is_well =
        PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK;

    if (!is_well)
        fail(h, sql, PQerrorMessage(conn));
    else if (out)
        *out = strtol(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    PQfinish(conn);
    return is_well;
}

/* Statements of a killed client may still be running. */
static bool await_silence(struct harness *h)
{
    long others = 1;

    for (int i = 0; others > 0 && i < 30000; i++) {
        if (!ask(h,
                 "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                 " AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
                 &others))
            return false;
        if (others > 0)
            hd_clock_sleep_us(2000);
    }
    return others == 0 || fail(h, "server", "sessions of killed clients do not end");
}

static bool drop_schema(struct harness *h)
{
    char sql[120];

    (void)snprintf(sql, sizeof(sql),
                   "SET client_min_messages = error; DROP SCHEMA IF EXISTS fault%u CASCADE",
                   h->generation);
    return ask(h, sql, NULL);
}
#else
static bool await_silence(struct harness *h)
{
    return fail(h, "postgres", "built without it");
}

static bool drop_schema(struct harness *h)
{
    return await_silence(h);
}
#endif

static void remove_files(const struct harness *h)
{
    static const char *const tails[] = {"", "-wal", "-shm", "-journal"};
    char path[300];

    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", h->path, tails[i]);
        unlink(path);
    }
}

/* A new empty store, or rather the place for one: writers create it. */
static void clear_away(struct harness *h)
{
    if (is_file(h))
        remove_files(h);
    else
        drop_schema(h);
}

static void start_over(struct harness *h)
{
    for (unsigned i = 0; i < WORKERS; i++)
        worker_fini(&h->workers[i]);
    if (h->generation > 0)
        clear_away(h);
    h->generation++;
    if (is_file(h)) {
        (void)snprintf(h->path, sizeof(h->path), "%s/%u.db", h->place, h->generation);
        (void)snprintf(h->url, sizeof(h->url), "sqlite:%s?timeout=60%s", h->path,
                       h->mode == MODE_RELAXED ? "&durability=relaxed" : "");
    } else {
        (void)snprintf(h->url, sizeof(h->url), "%s%sschema=fault%u&timeout=60", h->place,
                       strchr(h->place, '?') ? "&" : "?", h->generation);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        worker_init(&h->workers[i], i, mix(h->seed + h->generation));
        h->workers[i].is_big = h->generation % 6 == 5;
        h->acked[i] = 0;
    }
    h->is_fresh = true;
    clear_away(h); /* an earlier run that failed */
}

/* ---- writers ---- */

static void child_main(struct harness *h, unsigned process, int pipe, long off_at)
{
    struct child *child = &h->children[process];
    struct writer writer = {.url = h->url,
                            .workers = &h->workers[child->first],
                            .worker_count = child->count,
                            .pipe = pipe,
                            .phase = &h->phases[process],
                            .random = mix(h->random + process),
                            .may_lose_server = h->mode == MODE_SERVER,
                            .ends_itself = off_at > 0};
    int status;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (off_at) {
        vfs_install();
        vfs_power(mix(h->random), off_at);
    }
    status = writer_run(&writer);
    if (off_at && status == 0)
        vfs_power_off(); /* after everything was closed */
    _exit(status);
}

static void start(struct harness *h, unsigned processes, long off_at)
{
    h->child_count = processes;
    for (unsigned i = 0; i < processes; i++) {
        struct child *child = &h->children[i];
        int ends[2];

        *child = (struct child){.first = i * PER_PROCESS, .count = PER_PROCESS};
        if (h->mode == MODE_RELAXED)
            child->count = 1;
        if (pipe2(ends, O_CLOEXEC) != 0)
            abort();
        (void)fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
        atomic_store(&h->phases[i], PHASE_START);
        (void)fflush(NULL);
        child->pid = fork();
        if (child->pid == 0)
            child_main(h, i, ends[1], off_at);
        close(ends[1]);
        child->pipe = ends[0];
    }
}

static void hear(struct harness *h, const struct report *report)
{
    switch (report->kind) {
    case REPORT_DONE:
        h->acked[report->worker] = report->number;
        h->ops++;
        break;
    case REPORT_UNKNOWN:
        h->unknown++;
        if (report->worker < WORKERS)
            h->is_unknown[report->worker] = true;
        break;
    case REPORT_FAILED:
        fail(h, "a writer", report->text);
        break;
    }
}

/* One report, or the end of the pipe. */
static void hear_child(struct harness *h, struct child *child)
{
    struct report report;
    ssize_t got = read(child->pipe, &report, sizeof(report));

    if (got == (ssize_t)sizeof(report)) {
        hear(h, &report);
    } else if (got != -1 || errno != EINTR) {
        close(child->pipe);
        child->pipe = -1;
    }
}

/* Reads the children's messages until the time has come or all have ended. */
static void listen_until(struct harness *h, int64_t deadline)
{
    for (;;) {
        struct pollfd fds[PROCESSES];
        int64_t left = deadline - hd_clock_monotonic_us();
        nfds_t count = 0;
        struct child *speakers[PROCESSES];

        for (unsigned i = 0; i < h->child_count; i++) {
            if (h->children[i].pipe < 0)
                continue;
            speakers[count] = &h->children[i];
            fds[count++] = (struct pollfd){.fd = h->children[i].pipe, .events = POLLIN};
        }
        if (count == 0 || left <= 0)
            return;
        struct timespec wait = {left / 1000000, left % 1000000 * 1000};

        if (ppoll(fds, count, &wait, NULL) <= 0)
            continue;
        for (nfds_t i = 0; i < count; i++) {
            if (fds[i].revents)
                hear_child(h, speakers[i]);
        }
    }
}

static void hear_rest(struct harness *h, struct child *child)
{
    while (child->pipe >= 0)
        hear_child(h, child);
}

static void kill_child(struct harness *h, unsigned process)
{
    struct child *child = &h->children[process];
    int phase = atomic_load(&h->phases[process]);
    int status;

    kill(child->pid, SIGKILL);
    waitpid(child->pid, &status, 0);
    hear_rest(h, child);
    h->kills++;
    h->in_phase[phase]++;
    if (h->is_fresh && h->acked[child->first] == 0 && phase == PHASE_OPENING)
        h->in_creation++;
}

/* It was stopped by a signal, or stops by itself. */
static void await_child(struct harness *h, unsigned process, int wanted)
{
    struct child *child = &h->children[process];
    char text[60];
    int status;

    hear_rest(h, child);
    waitpid(child->pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == wanted)
        return;
    (void)snprintf(text, sizeof(text), "wait status 0x%x", (unsigned)status);
    fail(h, "a writer ended badly", text);
}

/* ---- verification ---- */

static bool matches(const struct worker *worker, unsigned conv, const char *actual)
{
    char *wanted = dump_model(worker, conv);
    bool is_same = strcmp(wanted, actual) == 0;

    free(wanted);
    return is_same;
}

/* The conversation as it was before the operation in flight, or as it leaves it. */
static bool verify_conv(struct harness *h, struct worker *worker, unsigned conv,
                        const struct op *in_flight, const char *actual)
{
    struct conv before;
    char *wanted;
    char text[120];

    if (matches(worker, conv, actual)) {
        h->lost += in_flight->touched >> conv & 1;
        return true;
    }
    if (in_flight->touched & 1u << conv) {
        conv_copy(&before, &worker->convs[conv]);
        op_model(in_flight, worker, 1u << conv);
        if (matches(worker, conv, actual)) {
            conv_fini(&before);
            h->survived++;
            return true;
        }
        conv_fini(&worker->convs[conv]);
        worker->convs[conv] = before;
    }
    (void)snprintf(text, sizeof(text),
                   "thread %s differs after operation %u (then in flight: %s %d)",
                   worker->convs[conv].thread, worker->count, op_name(in_flight->kind),
                   (int)(in_flight->touched >> conv & 1));
    fail(h, "verification", text);
    wanted = dump_model(worker, conv);
    dump_diff(wanted, actual);
    free(wanted);
    return false;
}

/* Applies the acknowledged operations to the model. */
static void catch_up(struct harness *h, struct worker *worker)
{
    while (worker->count < h->acked[worker->index]) {
        struct op op;

        op_make(worker, &op);
        op_model(&op, worker, ~0u);
        op_fini(&op);
        worker->count++;
    }
}

static bool read_convs(struct harness *h, const struct worker *worker, struct heddle *store,
                       char *actual[CONVS])
{
    struct heddle_error error = {0};

    for (unsigned i = 0; i < CONVS; i++) {
        actual[i] = dump_store(worker, i, store, &error);
        if (actual[i])
            continue;
        while (i > 0)
            free(actual[--i]);
        return fail(h, "reading", error.text);
    }
    return true;
}

static bool is_running(const struct harness *h, const struct worker *worker)
{
    const struct child *last = &h->children[h->child_count - 1];

    return worker->index < last->first + last->count;
}

/*
 * Whether an operation happened or not, its number and ids are not used again; nor is the next one,
 * for which it may have left invisible writes.
 */
static void use_up(struct harness *h, struct worker *worker, uint32_t number)
{
    worker->count = number + 1;
    h->acked[worker->index] = worker->count;
}

static bool verify_worker(struct harness *h, struct worker *worker, struct heddle *store)
{
    char *actual[CONVS];
    struct op in_flight;
    bool is_well = true;

    catch_up(h, worker);
    if (!read_convs(h, worker, store, actual))
        return false;
    op_make(worker, &in_flight);
    if (!is_running(h, worker))
        in_flight.touched = 0;
    for (unsigned i = 0; i < CONVS; i++) {
        is_well = verify_conv(h, worker, i, &in_flight, actual[i]) && is_well;
        free(actual[i]);
    }
    op_fini(&in_flight);
    use_up(h, worker, worker->count + 1);
    return is_well;
}

static void convs_copy(struct conv to[CONVS], const struct worker *worker)
{
    for (unsigned i = 0; i < CONVS; i++)
        conv_copy(&to[i], &worker->convs[i]);
}

static void convs_fini(struct conv convs[CONVS])
{
    for (unsigned i = 0; i < CONVS; i++)
        conv_fini(&convs[i]);
}

/*
 * The current state, or one between the threads of a following deletion: that is all or nothing
 * only for each thread. Applies the finished part to the model.
 */
static bool all_match(struct worker *worker, char *const actual[CONVS])
{
    struct conv before[CONVS];
    unsigned differ = 0;
    struct op next;
    bool is_same;

    for (unsigned i = 0; i < CONVS; i++)
        differ |= matches(worker, i, actual[i]) ? 0 : 1u << i;
    if (!differ)
        return true;
    op_make(worker, &next);
    convs_copy(before, worker);
    is_same = next.kind == OP_DELETE_RUNS && !(differ & ~next.touched);
    if (is_same)
        op_model(&next, worker, differ);
    for (unsigned i = 0; is_same && i < CONVS; i++)
        is_same = matches(worker, i, actual[i]);
    if (is_same) {
        convs_fini(before);
    } else {
        convs_fini(worker->convs);
        memcpy(worker->convs, before, sizeof(before));
    }
    op_fini(&next);
    return is_same;
}

/* Some number of operations, possibly the one in flight too, and nothing of the later ones. */
static bool verify_prefix(struct harness *h, struct worker *worker, struct heddle *store)
{
    uint32_t last = h->acked[worker->index] + 1, first = worker->count;
    char *actual[CONVS];
    bool is_found;

    if (!read_convs(h, worker, store, actual))
        return false;
    is_found = all_match(worker, actual);
    while (!is_found && worker->count < last) {
        struct op op;

        op_make(worker, &op);
        op_model(&op, worker, ~0u);
        op_fini(&op);
        worker->count++;
        is_found = all_match(worker, actual);
    }
    if (is_found) {
        h->kept_ops += worker->count - first;
        h->lost += last - 1 > worker->count ? last - 1 - worker->count : 0;
    } else {
        fail(h, "verification", "what is there is no prefix of the operations");
    }
    for (unsigned i = 0; i < CONVS; i++)
        free(actual[i]);
    use_up(h, worker, last);
    return is_found;
}

static bool verify(struct harness *h)
{
    struct heddle_error error = {0};
    struct heddle *store;
    bool is_well = true;

    if (!is_file(h) && !await_silence(h))
        return false;
    if (heddle_open(&store, h->url, &error))
        return fail(h, "open after the kill", error.text);
    if (heddle_check(store, &error))
        is_well = fail(h, "heddle_check", error.text);
    for (unsigned i = 0; is_well && i < WORKERS; i++) {
        /* Those that did not run are looked at now and then all the same. */
        if (!is_running(h, &h->workers[i]) && h->kills % 4)
            continue;
        if (h->mode == MODE_RELAXED)
            is_well = i > 0 || verify_prefix(h, &h->workers[i], store);
        else
            is_well = verify_worker(h, &h->workers[i], store);
    }
    heddle_close(store);
    h->is_fresh = false;
    return is_well;
}

/* ---- rounds ---- */

static int64_t some_delay_us(struct harness *h)
{
    static const uint32_t spans_us[] = {2000, 5000, 15000, 50000, 200000};
    uint32_t span = spans_us[random_below(&h->random, 5)];

    if (h->mode == MODE_POSTGRES)
        span *= 4; /* connecting takes longer than opening a file */
    if (h->workers[0].is_big)
        span *= 3;
    if (h->is_fresh) /* creating the tables must be met too */
        span = 40000;
    return random_below(&h->random, span);
}

static void round_killed(struct harness *h)
{
    unsigned processes = 1 + random_below(&h->random, PROCESSES);

    start(h, processes, 0);
    listen_until(h, hd_clock_monotonic_us() + some_delay_us(h));
    kill_child(h, 0);
    if (processes == 1)
        return;
    /* The other one continues, then is killed as well or ends normally. */
    listen_until(h, hd_clock_monotonic_us() + some_delay_us(h) / 2);
    if (random_below(&h->random, 2)) {
        kill_child(h, 1);
    } else {
        kill(h->children[1].pid, SIGUSR1);
        await_child(h, 1, 0);
    }
}

static void round_power(struct harness *h)
{
    static const uint32_t spans[] = {60, 300, 2000, 20000};
    long off_at = 1 + (long)random_below(&h->random, spans[random_below(&h->random, 4)]);

    start(h, 1, off_at);
    listen_until(h, INT64_MAX);
    h->in_phase[atomic_load(&h->phases[0])]++;
    if (h->is_fresh && atomic_load(&h->phases[0]) == PHASE_OPENING && h->acked[0] == 0)
        h->in_creation++;
    await_child(h, 0, VFS_POWER_STATUS);
    h->kills++;
}

static void round_server(struct harness *h)
{
    int64_t start_us = hd_clock_monotonic_us();

    start(h, PROCESSES, 0);
    listen_until(h, start_us + 100000 + random_below(&h->random, 400000));
    if (system(h->restart) != 0)
        fail(h, "server", "cannot be restarted");
    h->kills++;
    listen_until(h, hd_clock_monotonic_us() + 300000 + random_below(&h->random, 300000));
    for (unsigned i = 0; i < h->child_count; i++)
        kill(h->children[i].pid, SIGUSR1);
    for (unsigned i = 0; i < h->child_count; i++)
        await_child(h, i, 0);
}

static void run_round(struct harness *h)
{
    if (h->generation == 0 || random_below(&h->random, h->mode == MODE_SERVER ? 5 : 14) == 0)
        start_over(h);
    memset(h->is_unknown, 0, sizeof(h->is_unknown));
    if (h->mode == MODE_POWER || h->mode == MODE_RELAXED)
        round_power(h);
    else if (h->mode == MODE_SERVER)
        round_server(h);
    else
        round_killed(h);
    if (!h->has_failed)
        verify(h);
    random_next(&h->random);
}

/* ---- the program ---- */

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static bool parse(struct harness *h, int argc, char **argv)
{
    static const char *const names[] = {"sqlite", "power", "relaxed", "postgres", "server"};

    if (argc < 3)
        return false;
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(argv[1], names[i]) == 0) {
            h->mode = (enum mode)i;
            h->place = argv[2];
            h->restart = argc > 3 ? argv[3] : NULL;
            return (argc == 4) == (h->mode == MODE_SERVER);
        }
    }
    return false;
}

static void sum_up(const struct harness *h, const char *name)
{
    (void)printf("%s: %lu kills (%lu while creating, %lu opening, %lu working, %lu closing), "
                 "%u stores, %lu operations acknowledged, "
                 "of those in flight %lu were there and %lu not",
                 name, h->kills, h->in_creation, h->in_phase[PHASE_OPENING],
                 h->in_phase[PHASE_WORKING], h->in_phase[PHASE_CLOSING] + h->in_phase[PHASE_START],
                 h->generation, h->ops, h->survived, h->lost);
    if (h->mode == MODE_RELAXED)
        (void)printf(" (relaxed: %lu kept)", h->kept_ops);
    if (h->unknown)
        (void)printf(", %lu times the database was unavailable", h->unknown);
    (void)printf("%s\n", h->has_failed ? ": FAILED" : "");
}

int main(int argc, char **argv)
{
    static struct harness h;
    uint64_t kills = number_from("HEDDLE_FAULT_KILLS", UINT64_MAX);
    int64_t deadline =
        hd_clock_monotonic_us() + (int64_t)number_from("HEDDLE_FAULT_SECONDS", 10) * 1000000;

    if (!parse(&h, argc, argv)) {
        (void)fprintf(stderr, "crash sqlite|power|relaxed DIRECTORY | postgres URL | "
                              "server URL RESTART\n");
        return 2;
    }
    h.seed = number_from("HEDDLE_FAULT_SEED", (uint64_t)hd_clock_now_us());
    h.random = mix(h.seed);
    h.phases = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (h.phases == MAP_FAILED)
        return 2;
    (void)signal(SIGPIPE, SIG_IGN);
    writer_prepare();
    while (!h.has_failed && h.kills < kills && hd_clock_monotonic_us() < deadline)
        run_round(&h);
    sum_up(&h, argv[1]);
    for (unsigned i = 0; i < WORKERS; i++)
        worker_fini(&h.workers[i]);
    if (!h.has_failed)
        clear_away(&h);
    return h.has_failed;
}
