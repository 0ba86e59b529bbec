/*
 * Many writers at once, threads and processes, on the same and on different conversations, while
 * others prune, delete and copy them. Some processes are killed on the way.
 *
 * A checkpoint's id determines its contents, so every checkpoint can be checked. Every acknowledged
 * put is recorded in a file; afterwards the conversations without deletions must hold all of them.
 *
 *   HEDDLE_CROWD_SECONDS   duration of each case (1.5)
 *   HEDDLE_TEST_SEED       another course of events
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/contract/store_help.h"
#include "tests/contract/store_watch.h"

enum { ELEMENTS = 40, COLOURS = 6, MAX_WORKERS = 16, ELEMENT_LEN = 300 };

/* The operations on a conversation besides writing. */
enum fate { KEPT, PRUNED, DELETED, RUNS_DELETED, FATES };

static const struct {
    const char *thread;
    enum fate fate;
} conversations[] = {
    {"kept0", KEPT},    {"kept1", KEPT},      {"kept2", KEPT},
    {"pruned", PRUNED}, {"deleted", DELETED}, {"runs", RUNS_DELETED},
};

struct worker {
    struct heddle *store;
    int number;
    uint64_t random;
    double until;
    int log;          /* a file */
    char failed[300]; /* empty: all is well */
    long done;
    char last[COUNT_OF(conversations)][64]; /* the id this worker put last */
    uint64_t last_time;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static unsigned pick(struct worker *w, unsigned count)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((w->random >> 33) % count);
}

/* ---- contents of a checkpoint ---- */

struct content {
    unsigned elements; /* of the list m */
    unsigned colour;   /* of the value b, which is carried on until it changes */
};

static bool parse_id(struct heddle_bytes id, struct content *out)
{
    char copy[64];

    snprintf(copy, sizeof(copy), "%.*s", (int)id.len, (const char *)id.data);
    return sscanf(copy, "%*16[0-9a-f]-%*d-%u-%u", &out->elements, &out->colour) == 2;
}

static char *make_list(const char *thread, unsigned count, size_t *len)
{
    char *list = malloc(count * (ELEMENT_LEN + 1) + 2), *end = list;

    assert_non_null(list);
    *end++ = '[';
    for (unsigned i = 0; i < count; i++) {
        char *element =
            long_json(ELEMENT_LEN, i * 31 + (unsigned)thread[0] * 7 + (unsigned)thread[4]);

        if (i)
            *end++ = ',';
        memcpy(end, element, ELEMENT_LEN);
        end += ELEMENT_LEN;
        free(element);
    }
    *end++ = ']';
    *len = (size_t)(end - list);
    return list;
}

/* Copies bear the name of their source after a slash. */
static const char *original(const char *thread)
{
    const char *slash = strchr(thread, '/');

    return slash ? slash + 1 : thread;
}

static bool is_value(const struct heddle_value *value, const char *expected, size_t len)
{
    return value->data.len == len && memcmp(value->data.data, expected, len) == 0;
}

/* NULL, or the error. */
static const char *find_fault(const char *thread, const struct heddle_tuple *tuple, bool is_whole)
{
    const struct heddle_value *m = value_of(tuple, "m"), *b = value_of(tuple, "b");
    struct content content;
    const char *fault = NULL;
    size_t len;
    char *list, *colour;

    if (!parse_id(tuple->id, &content))
        return "a strange id";
    list = make_list(original(thread), content.elements, &len);
    colour = long_json(700, 1000 + content.colour);
    if (!m || !is_value(m, list, len))
        fault = "m is not what was put";
    else if (b ? !is_value(b, colour, 700) : is_whole)
        fault = "b is not what was put";
    for (size_t i = 0; !fault && i < tuple->write_count; i++) {
        const struct heddle_value *value = &tuple->writes[i].value;

        if (value->data.len > 10 && !is_value(value, list, len))
            fault = "a write is not what was put";
    }
    free(list);
    free(colour);
    return fault;
}

/* ---- the work ---- */

static void give_up(struct worker *w, const char *what, const char *why)
{
    if (!w->failed[0])
        snprintf(w->failed, sizeof(w->failed), "worker %d, step %ld, %s: %.200s", w->number,
                 w->done, what, why);
}

static void note(struct worker *w, char kind, const char *thread, const char *id)
{
    char line[160];
    int len = snprintf(line, sizeof(line), "%c %s %s\n", kind, thread, id);

    if (write(w->log, line, (size_t)len) != len)
        give_up(w, "note", "the log cannot be written");
}

static void make_id(struct worker *w, struct content content, char id[64])
{
    struct timespec t;
    uint64_t time;

    clock_gettime(CLOCK_REALTIME, &t);
    time = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
    w->last_time = time > w->last_time ? time : w->last_time + 1;
    snprintf(id, 64, "%016llx-%d-%u-%u", (unsigned long long)w->last_time, w->number,
             content.elements, content.colour);
}

static int put(struct worker *w, const char *thread, const char *id, const char *parent,
               struct content content, bool carries, const char *run, struct heddle_error *error)
{
    size_t len;
    char *list = make_list(thread, content.elements, &len);
    char *colour = long_json(700, 1000 + content.colour);
    char versions[100], changed[100], metadata[100];
    struct put p = {.thread = thread,
                    .id = id,
                    .parent = parent,
                    .versions = versions,
                    .changed = changed,
                    .metadata = metadata};
    int code;

    snprintf(versions, sizeof(versions), "{\"m\":\"%u\",\"b\":%u}", content.elements,
             content.colour);
    snprintf(changed, sizeof(changed), carries ? "{\"m\":\"%u\"}" : "{\"m\":\"%u\",\"b\":%u}",
             content.elements, content.colour);
    snprintf(metadata, sizeof(metadata), "{\"run_id\":\"%s\"}", run);
    p.values[0] = (struct heddle_value){text("m"), text("json"), bytes(list, len)};
    p.values[1] = (struct heddle_value){text("b"), text("json"), text(colour)};
    code = try_put(w->store, &p, error);
    free(list);
    free(colour);
    return code;
}

static void do_put(struct worker *w, size_t c)
{
    const char *thread = conversations[c].thread, *parent = w->last[c];
    struct content content = {1, pick(w, COLOURS)};
    struct content old;
    bool carries = *parent && parse_id(text(parent), &old) && pick(w, 100) < 80;
    bool has_runs = conversations[c].fate == RUNS_DELETED;
    bool is_again = *parent && !has_runs && pick(w, 100) < 4;
    struct heddle_error error = {0};
    char run[16], id[64];

    if (carries)
        content.colour = old.colour;
    content.elements =
        *parent && pick(w, 100) < 90 ? old.elements % ELEMENTS + 1 : 1 + pick(w, ELEMENTS);
    snprintf(run, sizeof(run), has_runs && pick(w, 2) ? "goes%u" : "stays", pick(w, 3));
    if (is_again)
        content = old;
    make_id(w, content, id);
    if (is_again)
        snprintf(id, sizeof(id), "%s", parent);
    if (put(w, thread, id, is_again ? "" : parent, content, carries && !is_again, run, &error) != 0)
        give_up(w, "put", error.text);
    else if (strcmp(run, "stays") == 0)
        note(w, 'P', thread, id);
    snprintf(w->last[c], sizeof(w->last[c]), "%s", id);
}

static void do_writes(struct worker *w, size_t c)
{
    const char *thread = conversations[c].thread;
    struct writes batch = {.thread = thread, .id = w->last[c]};
    struct heddle_error error = {0};
    struct content content;
    char task[16];
    char *list;
    size_t len;

    if (!*w->last[c] || !parse_id(text(w->last[c]), &content))
        return;
    list = make_list(thread, content.elements, &len);
    snprintf(task, sizeof(task), "k%u", pick(w, 4));
    batch.task = task;
    batch.values[0] = (struct heddle_value){text(pick(w, 3) ? "m" : "__resume__"), text("json"),
                                            bytes(list, len)};
    batch.values[1] = (struct heddle_value)VALUE("x", "1");
    if (try_writes(w->store, &batch, &error) != 0)
        give_up(w, "put_writes", error.text);
    else
        note(w, 'W', thread, w->last[c]);
    free(list);
}

static void do_get(struct worker *w, size_t c)
{
    const char *thread = conversations[c].thread;
    struct heddle_key key = {thread_of(thread), text(""), text(pick(w, 2) ? w->last[c] : "")};
    struct heddle_tuple *tuple;
    struct heddle_error error = {0};
    int code = heddle_get(w->store, &key, &tuple, &error);

    if (code == HEDDLE_ENOTFOUND) {
        if (conversations[c].fate == KEPT && *w->last[c])
            give_up(w, "get", "an acknowledged put is not there");
        return;
    }
    if (code)
        give_up(w, "get", error.text);
    else if (find_fault(thread, tuple, conversations[c].fate == KEPT))
        give_up(w, "get", find_fault(thread, tuple, conversations[c].fate == KEPT));
    if (!code)
        heddle_tuple_free(tuple);
}

static long check_thread(struct worker *w, const char *thread, bool is_whole, int64_t limit)
{
    struct heddle_bytes name = text(thread);
    struct heddle_query query = {.thread = &name, .limit = limit};
    const struct heddle_tuple *tuple;
    struct heddle_list *list;
    struct heddle_error error = {0};
    int code = heddle_list_open(w->store, &query, &list, &error);
    long count = 0;

    if (code) {
        give_up(w, "list", error.text);
        return 0;
    }
    for (; (code = heddle_list_next(list, &tuple, &error)) == 0; count++) {
        const char *fault = find_fault(thread, tuple, is_whole);

        if (fault)
            give_up(w, thread, fault);
    }
    if (code != HEDDLE_ENOTFOUND)
        give_up(w, "list", error.text);
    heddle_list_close(list);
    return count;
}

static void do_copy(struct worker *w, size_t c)
{
    const char *thread = conversations[c].thread;
    struct heddle_thread from = thread_of(thread), to;
    struct heddle_error error = {0};
    char name[64];
    int code;

    snprintf(name, sizeof(name), "copy%d.%ld/%s", w->number, w->done, thread);
    to = thread_of(name);
    code = heddle_copy_thread(w->store, &from, &to, &error);
    if (code == HEDDLE_EBUSY)
        return; /* a source that changes all the time */
    if (code) {
        give_up(w, "copy", error.text);
        return;
    }
    check_thread(w, name, conversations[c].fate == KEPT, -1);
    if (conversations[c].fate == KEPT && *w->last[c]) {
        struct heddle_key key = {to, text(""), text(w->last[c])};
        struct heddle_tuple *tuple = NULL;

        if (heddle_get(w->store, &key, &tuple, &error) != 0)
            give_up(w, "copy", "what was put before the copy is not in it");
        heddle_tuple_free(tuple);
    }
    if (pick(w, 4) && heddle_delete_thread(w->store, &to, &error) != 0)
        give_up(w, "delete of a copy", error.text);
}

static void do_harm(struct worker *w, size_t c)
{
    struct heddle_thread thread = thread_of(conversations[c].thread);
    struct heddle_error error = {0};
    struct heddle_bytes run;
    char name[16];
    int code = 0;

    snprintf(name, sizeof(name), "goes%u", pick(w, 3));
    run = text(name);
    switch (conversations[c].fate) {
    case PRUNED:
        code = heddle_prune(w->store, &thread, 1, HEDDLE_KEEP_LATEST, &error);
        break;
    case DELETED:
        code = heddle_delete_thread(w->store, &thread, &error);
        w->last[c][0] = '\0';
        break;
    case RUNS_DELETED:
        /* In all threads; only this one has runs of that name. */
        code = heddle_delete_runs(w->store, text(""), &run, 1, &error);
        break;
    case KEPT:
    case FATES:
        break;
    }
    if (code)
        give_up(w, "harm", error.text);
}

static void work_once(struct worker *w)
{
    size_t c = pick(w, COUNT_OF(conversations));
    unsigned lot = pick(w, 1000);
    struct heddle_error error = {0};

    w->done++;
    if (lot < 450)
        do_put(w, c);
    else if (lot < 650)
        do_writes(w, c);
    else if (lot < 850)
        do_get(w, c);
    else if (lot < 900)
        check_thread(w, conversations[c].thread, conversations[c].fate == KEPT, 5);
    else if (lot < 960)
        do_harm(w, c);
    else if (lot < 998)
        do_copy(w, c);
    else if (heddle_check(w->store, &error) != 0)
        give_up(w, "check", error.text);
}

static void *work(void *arg)
{
    struct worker *w = arg;

    /* A few times in any case, however slow the machine is. */
    for (int times = 0; (times < 20 || now() < w->until) && !w->failed[0]; times++)
        work_once(w);
    return NULL;
}

/* ---- crews ---- */

static void log_name(char *out, size_t size, const char *dir, int number)
{
    snprintf(out, size, "%s/log%d", dir, number);
}

static void start_worker(struct worker *w, struct heddle *store, int number, const char *dir,
                         unsigned seed, double until)
{
    char path[300];

    memset(w, 0, sizeof(*w));
    w->store = store;
    w->number = number;
    w->random = seed * 1000003u + (unsigned)number * 7919u;
    w->until = until;
    log_name(path, sizeof(path), dir, number);
    w->log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_true(w->log >= 0);
    for (int i = 0; i < 8; i++)
        pick(w, 2);
}

/* Runs `count` workers on these stores in turn. Errors are in `failed`. */
static long run_threads(struct heddle *const *stores, int store_count, int first, int count,
                        const char *dir, unsigned seed, double until, char failed[300])
{
    static struct worker workers[MAX_WORKERS];
    pthread_t threads[MAX_WORKERS];
    long done = 0;

    for (int i = 0; i < count; i++) {
        start_worker(&workers[i], stores[i % store_count], first + i, dir, seed, until);
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        close(workers[i].log);
        done += workers[i].done;
        if (workers[i].failed[0])
            memcpy(failed, workers[i].failed, sizeof(workers[i].failed));
    }
    return done;
}

/* The error of a process, for its parent: the file exists if the process fails. */
static void tell_failure(const char *dir, const char *text)
{
    char path[300];
    FILE *out;

    snprintf(path, sizeof(path), "%s/failed", dir);
    out = fopen(path, "a");
    if (!out)
        return;
    fprintf(out, "%s\n", text);
    fclose(out);
}

static void hear_failure(const char *dir, char text[300])
{
    char path[300];
    FILE *in;

    snprintf(path, sizeof(path), "%s/failed", dir);
    text[0] = '\0';
    in = fopen(path, "r");
    if (!in)
        return;
    if (!fgets(text, 300, in))
        text[0] = '\0';
    fclose(in);
}

/* The work of an executed copy of this program: crowd --worker url dir first count seed seconds */
static int worker_main(char **argv)
{
    char failed[300] = "";
    struct heddle_error error = {0};
    struct heddle *store;

    if (heddle_open(&store, argv[2], &error) != 0) {
        tell_failure(argv[3], error.text);
        return 1;
    }
    run_threads(&store, 1, (int)strtol(argv[4], NULL, 10), (int)strtol(argv[5], NULL, 10), argv[3],
                (unsigned)strtoul(argv[6], NULL, 10), now() + strtod(argv[7], NULL), failed);
    heddle_close(store);
    if (failed[0])
        tell_failure(argv[3], failed);
    return failed[0] ? 1 : 0;
}

static pid_t start_process(const char *url, const char *dir, int first, int count, unsigned seed,
                           double seconds)
{
    char numbers[4][24];
    pid_t pid;

    snprintf(numbers[0], sizeof(numbers[0]), "%d", first);
    snprintf(numbers[1], sizeof(numbers[1]), "%d", count);
    snprintf(numbers[2], sizeof(numbers[2]), "%u", seed);
    snprintf(numbers[3], sizeof(numbers[3]), "%.2f", seconds);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execl("/proc/self/exe", "crowd", "--worker", url, dir, numbers[0], numbers[1], numbers[2],
              numbers[3], (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* ---- afterwards ---- */

/* Reads the notes: each must be true. */
static long check_notes(struct worker *w, const char *path, char latest[64])
{
    FILE *log = fopen(path, "r");
    char line[200], thread[64], id[64], kind;
    long count = 0;

    assert_non_null(log);
    while (fgets(line, sizeof(line), log)) {
        struct heddle_key key;
        struct heddle_tuple *tuple;
        bool is_kept;

        if (strchr(line, '\n') == NULL || sscanf(line, "%c %63s %63s", &kind, thread, id) != 3)
            continue; /* cut off by a kill */
        is_kept = strncmp(thread, "kept", 4) == 0;
        if (strcmp(thread, "pruned") == 0 && kind == 'P' && strcmp(id, latest) > 0)
            snprintf(latest, 64, "%s", id);
        if (!is_kept && (strcmp(thread, "runs") != 0 || kind != 'P'))
            continue;
        count++;
        key = (struct heddle_key){thread_of(thread), text(""), text(id)};
        if (heddle_get(w->store, &key, &tuple, NULL) != 0) {
            give_up(w, thread, "an acknowledged put is lost");
            continue;
        }
        if (find_fault(thread, tuple, is_kept))
            give_up(w, thread, find_fault(thread, tuple, is_kept));
        if (kind == 'W' && tuple->write_count == 0)
            give_up(w, thread, "acknowledged writes are lost");
        heddle_tuple_free(tuple);
    }
    fclose(log);
    return count;
}

/* A writer that was killed may have put a later one and not noted it: then that was kept. */
static bool has_as_late(struct heddle *store, const char *thread, const char *id)
{
    struct heddle_key key = {thread_of(thread), text(""), text("")};
    struct heddle_tuple *tuple;
    char latest[64];

    if (heddle_get(store, &key, &tuple, NULL) != 0)
        return false;
    snprintf(latest, sizeof(latest), "%.*s", (int)tuple->id.len, (const char *)tuple->id.data);
    heddle_tuple_free(tuple);
    return strcmp(latest, id) >= 0;
}

static void delete_everything(struct heddle *store)
{
    struct heddle_threads *threads;

    assert_ok(heddle_list_threads(store, text(""), text(""), SIZE_MAX, &threads, NULL));
    for (size_t i = 0; i < threads->count; i++) {
        struct heddle_usage usage;

        assert_ok(heddle_delete_thread(store, &threads->threads[i].thread, NULL));
        assert_ok(heddle_thread_usage(store, &threads->threads[i].thread, &usage, NULL));
        assert_int_equal(usage.bytes, 0);
    }
    heddle_threads_free(threads);
}

static void check_afterwards(struct heddle *store, const char *dir, int workers)
{
    struct worker w = {.store = store, .number = -1};
    struct heddle_error error = {0};
    struct heddle_threads *threads;
    char latest[64] = "", path[300];
    long noted = 0, found = 0;

    for (int i = 0; i < workers; i++) {
        log_name(path, sizeof(path), dir, i);
        noted += check_notes(&w, path, latest);
        unlink(path);
    }
    if (*latest && !has_as_late(store, "pruned", latest))
        give_up(&w, "pruned", "the latest was not kept");
    assert_ok(heddle_list_threads(store, text(""), text(""), SIZE_MAX, &threads, NULL));
    for (size_t i = 0; i < threads->count; i++) {
        char name[80];

        snprintf(name, sizeof(name), "%.*s", (int)threads->threads[i].thread.id.len,
                 (const char *)threads->threads[i].thread.id.data);
        found += check_thread(&w, name, strncmp(original(name), "kept", 4) == 0, -1);
    }
    print_message("# %ld notes are true, %ld checkpoints in %zu threads are whole\n", noted, found,
                  threads->count);
    heddle_threads_free(threads);
    if (heddle_check(store, &error) != 0)
        give_up(&w, "check", error.text);
    if (w.failed[0])
        fail_msg("%s", w.failed);
    assert_true(noted > 0);
    delete_everything(store);
    rmdir(dir);
}

/* ---- the cases ---- */

static double seconds(void)
{
    const char *value = getenv("HEDDLE_CROWD_SECONDS");

    return value ? strtod(value, NULL) : 1.5;
}

static unsigned seed(void)
{
    const char *value = getenv("HEDDLE_TEST_SEED");

    return value ? (unsigned)strtoul(value, NULL, 10) : (unsigned)time(NULL);
}

static void make_dir(char dir[100])
{
    const char *tmp = getenv("TMPDIR");

    snprintf(dir, 100, "%.60s/heddle-crowd.XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(dir));
}

static void writers_in_threads_lose_nothing(struct fixture *f)
{
    char dir[100], failed[300] = "";

    make_dir(dir);
    run_threads(&f->store, 1, 0, 6, dir, seed(), now() + seconds(), failed);
    if (failed[0])
        fail_msg("%s", failed);
    check_afterwards(f->store, dir, 6);
}

static void writers_on_two_handles_lose_nothing(struct fixture *f)
{
    struct heddle *stores[2] = {f->store, open_store(f->url)};
    char dir[100], failed[300] = "";
    struct watch watches[2];

    make_dir(dir);
    if (!is_shared(f->base)) {
        watch_store(&watches[0], stores[0]);
        share_backend(&watches[1], &watches[0], stores[1]);
    }
    run_threads(stores, 2, 0, 6, dir, seed(), now() + seconds(), failed);
    if (failed[0])
        fail_msg("%s", failed);
    heddle_close(stores[1]);
    if (!is_shared(f->base))
        ((struct hd_store *)stores[0])->backend = watches[0].inner;
    check_afterwards(f->store, dir, 6);
}

static void await(pid_t pid, const char *dir, bool was_killed)
{
    char why[300];
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (was_killed) {
        assert_true(WIFSIGNALED(status) || WIFEXITED(status));
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        hear_failure(dir, why);
        fail_msg("a worker process ended with status %d: %s", status, why);
    }
}

static void writers_in_processes_lose_nothing(struct fixture *f)
{
    enum { PROCESSES = 3, EACH = 2 };
    pid_t pids[PROCESSES];
    char dir[100];

    if (!is_shared(f->base))
        return;
    make_dir(dir);
    for (int i = 0; i < PROCESSES; i++)
        pids[i] = start_process(f->url, dir, i * EACH, EACH, seed() + (unsigned)i, seconds());
    for (int i = 0; i < PROCESSES; i++)
        await(pids[i], dir, false);
    check_afterwards(f->store, dir, PROCESSES * EACH);
}

/* Killed at any point, and replaced: acknowledged puts stay. */
static void killed_writers_lose_nothing(struct fixture *f)
{
    enum { EACH = 2, MAX_KILLS = 6 };
    char dir[100];
    double until = now() + seconds();
    pid_t steady;
    int number = EACH, kills = 0;
    unsigned random = seed();

    if (!is_shared(f->base))
        return;
    make_dir(dir);
    steady = start_process(f->url, dir, 0, EACH, random, seconds());
    for (; now() < until && kills < MAX_KILLS; kills++, number += EACH) {
        pid_t pid = start_process(f->url, dir, number, EACH, random + (unsigned)kills, 60);
        struct timespec wait = {0, 0};

        random = random * 1103515245u + 12345u;
        wait.tv_nsec = 300000000L + (long)(random >> 8) % 500000000L;
        nanosleep(&wait, NULL);
        kill(pid, SIGKILL);
        await(pid, dir, true);
    }
    await(steady, dir, false);
    for (int i = EACH; i < number; i++) { /* some had no time to begin */
        char path[300];
        int fd;

        log_name(path, sizeof(path), dir, i);
        fd = open(path, O_WRONLY | O_CREAT, 0600);
        assert_true(fd >= 0);
        close(fd);
    }
    check_afterwards(f->store, dir, number);
}

int main(int argc, char **argv)
{
    static const struct store_case cases[] = {
        STORE_CASE(writers_in_threads_lose_nothing),
        STORE_CASE(writers_on_two_handles_lose_nothing),
        STORE_CASE(writers_in_processes_lose_nothing),
        STORE_CASE(killed_writers_lose_nothing),
        {NULL, NULL},
    };
    static const struct store_case *const tables[] = {cases};

    if (argc == 8 && strcmp(argv[1], "--worker") == 0)
        return worker_main(argv);
    return run_cases("crowd", tables, 1, "durability=relaxed&timeout=60");
}
