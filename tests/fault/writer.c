#include "writer.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t must_stop;

static void on_stop(int signal)
{
    (void)signal;
    must_stop = 1;
}

struct thread {
    pthread_t id;
    struct writer *writer;
    struct worker *worker;
    struct heddle *store;
    uint32_t budget;
    bool has_failed;
};

static void say(const struct writer *writer, const struct report *report)
{
    ssize_t got = write(writer->pipe, report, sizeof(*report));

    (void)got; /* the parent is gone, and we shall be too */
}

static void say_failure(struct thread *thread, const struct op *op, int err,
                        const struct heddle_error *error)
{
    struct report report = {
        .kind = REPORT_FAILED, .worker = thread->worker->index, .number = op->number};

    if (thread->writer->may_lose_server && err == HEDDLE_EUNAVAILABLE)
        report.kind = REPORT_UNKNOWN;
    (void)snprintf(report.text, sizeof(report.text), "%s: %d %s", op_name(op->kind), err,
                   error->text);
    say(thread->writer, &report);
}

static void *work(void *arg)
{
    struct thread *thread = arg;
    struct worker *worker = thread->worker;

    for (uint32_t i = 0; i < thread->budget && !must_stop && !thread->has_failed; i++) {
        struct heddle_error error = {0};
        struct call call;
        struct op op;
        int err;

        op_make(worker, &op);
        call_make(&call, &op, worker);
        err = call_run(&call, thread->store, &error);
        if (err) {
            say_failure(thread, &op, err, &error);
            thread->has_failed = true;
        } else {
            struct report report = {
                .kind = REPORT_DONE, .worker = worker->index, .number = op.number};

            say(thread->writer, &report);
            op_model(&op, worker, ~0u);
            worker->count++;
        }
        op_fini(&op);
    }
    return NULL;
}

/* One session of a store. False: a call failed and was reported. */
static bool session(struct writer *writer)
{
    struct thread threads[8];
    struct heddle_error error;
    struct heddle *store;
    uint32_t budget =
        1 + random_below(&writer->random, random_below(&writer->random, 3) ? 20 : 300);
    bool is_well = true;

    atomic_store(writer->phase, PHASE_OPENING);
    if (heddle_open(&store, writer->url, &error)) {
        struct report report = {.kind = writer->may_lose_server && error.code == HEDDLE_EUNAVAILABLE
                                            ? REPORT_UNKNOWN
                                            : REPORT_FAILED,
                                .worker = ~0u};

        (void)snprintf(report.text, sizeof(report.text), "open: %d %s", error.code, error.text);
        say(writer, &report);
        return false;
    }
    atomic_store(writer->phase, PHASE_WORKING);
    for (unsigned i = 0; i < writer->worker_count; i++) {
        threads[i] = (struct thread){
            .writer = writer, .worker = &writer->workers[i], .store = store, .budget = budget};
        if (pthread_create(&threads[i].id, NULL, work, &threads[i]) != 0)
            _exit(4);
    }
    for (unsigned i = 0; i < writer->worker_count; i++) {
        pthread_join(threads[i].id, NULL);
        is_well = is_well && !threads[i].has_failed;
    }
    atomic_store(writer->phase, PHASE_CLOSING);
    heddle_close(store);
    atomic_store(writer->phase, PHASE_START);
    return is_well;
}

void writer_prepare(void)
{
    struct sigaction action = {.sa_handler = on_stop};

    sigaction(SIGUSR1, &action, NULL);
}

int writer_run(struct writer *writer)
{
    bool is_well = true;
    unsigned sessions = 0;

    while (is_well && !must_stop && (!writer->ends_itself || sessions++ < 3))
        is_well = session(writer);
    return is_well || writer->may_lose_server ? 0 : 3;
}
