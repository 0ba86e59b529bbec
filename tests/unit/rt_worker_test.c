/* Workers: how they start, fail, hang, grow, are replaced and end. */
#include "tests/unit/rt_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define SHORT_US INT64_C(1000000)

static int pid_now(struct rt_world *world)
{
    struct rt_outcome outcome;
    int pid = 0;

    rt_do(world, "[{\"do\":\"identity\"}]", &outcome);
    assert_int_equal(sscanf(outcome.head, "{\"pid\":%d", &pid), 1);
    return pid;
}

/* The worker dies during a call: the call is lost with the reason, and another worker takes
 * over. */
static void check_death(const char *step, const char *reason)
{
    struct rt_world world;
    struct rt_outcome outcome, other;
    char steps[256];

    rt_init(&world, NULL);
    rt_ready(&world);
    (void)snprintf(steps, sizeof(steps),
                   "[{\"piece\":{\"number\":0}},{\"do\":\"%s\"},"
                   "{\"do\":\"never\"}]",
                   step);
    rt_call(&world, false, "[{\"do\":\"never\"}]", &other);
    rt_do(&world, steps, &outcome);
    rt_lost(&outcome, reason);
    rt_until(&world, other.ends);
    rt_lost(&other, reason);
    assert_int_equal(outcome.pieces, 1);
    rt_is_well(&world);
    assert_int_equal(hd_runtime_counts(world.runtime, HD_RT_PYTHON).restarts, 1);
    rt_fini(&world);
}

static void a_worker_ends(void **state)
{
    (void)state;
    check_death("exit", "the worker python 1 ended with code 3");
}

static void a_worker_is_killed(void **state)
{
    (void)state;
    check_death("kill", "was killed by signal 9");
}

static void a_worker_sends_garbage(void **state)
{
    (void)state;
    check_death("garbage", "invalid frame");
}

static void a_reply_without_a_request_ends_the_worker(void **state)
{
    (void)state;
    check_death("stray", "violates the protocol");
}

/* Invalid frames, each from a new worker. */
static void a_worker_sends_wrong_frames(void **state)
{
    static const char *const frames[] = {
        "0f0000000100000084030000030000007b787d",                     /* CALL: {x} */
        "0e00000004000000a00f0000020000007b7d",                       /* PIECE of an unknown call */
        "0e0000000200000000000000020000007b7d",                       /* ANSWER with id 0 */
        "1900000001010000850300000d0000007b226f70223a2270696e67227d", /* a second byte that is not 0 */
    };
    struct rt_world world;
    struct rt_outcome outcome;
    char steps[256];

    (void)state;
    rt_init(&world, NULL);
    world.settings.programs[HD_RT_PYTHON].workers = (int)HD_COUNT(frames);
    rt_ready(&world);
    for (size_t i = 0; i < HD_COUNT(frames); i++) {
        (void)snprintf(steps, sizeof(steps),
                       "[{\"do\":\"bytes\",\"hex\":\"%s\"},{\"do\":\"never\"}]", frames[i]);
        rt_do(&world, steps, &outcome);
        rt_lost(&outcome, "is lost: it sent");
    }
    rt_is_well(&world);
    rt_fini(&world);
}

static void a_worker_closes_its_connection(void **state)
{
    (void)state;
    check_death("close", "the worker python 1");
}

static void a_worker_hangs(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome;

    (void)state;
    rt_init(&world, NULL);
    world.settings.hang_timeout_us = 3000000;
    rt_ready(&world);
    rt_do(&world, "[{\"do\":\"stop\"}]", &outcome);
    rt_lost(&outcome, "did not respond");
    world.settings.hang_timeout_us = RT_PATIENCE_US; /* the next may be slow */
    rt_is_well(&world);
    rt_fini(&world);
}

/* A worker has ended before it was ready: a restart is scheduled, or the server gave up. */
static bool has_failed_to_start(const struct rt_world *world)
{
    struct hd_rt_counts counts = hd_runtime_counts(world->runtime, HD_RT_PYTHON);

    return counts.restarts > 0 || (counts.starting == 0 && counts.workers == 0);
}

/* A worker that never becomes ready: a waiting call ends with the reason. */
static void check_start(const char *table, int64_t timeout_us, const char *reason)
{
    struct rt_world world;
    struct rt_outcome outcome = {0};
    struct hd_rt_call_options options = rt_options("{\"op\":\"draw\"}", &outcome);

    rt_init(&world, table);
    world.settings.start_timeout_us = timeout_us;
    rt_start(&world);
    rt_until(&world, has_failed_to_start(&world));
    options.patience_us = 0;
    assert_err(hd_runtime_call(world.runtime, &options, &outcome.call), 0);
    rt_until(&world, outcome.ends);
    rt_lost(&outcome, reason);
    assert_int_equal(world.ready_count, 0);
    rt_fini(&world);
}

static void start_ends(void **state)
{
    (void)state;
    check_start("{\"start\":\"exit\"}", RT_PATIENCE_US, "ended with code 3");
}

static void start_hangs(void **state)
{
    (void)state;
    check_start("{\"start\":\"hang\"}", SHORT_US, "was not ready within");
}

static void start_is_silent(void **state)
{
    (void)state;
    check_start("{\"start\":\"silent\"}", SHORT_US, "was not ready within");
}

static void start_is_garbage(void **state)
{
    (void)state;
    check_start("{\"start\":\"garbage\"}", SHORT_US, "was not ready within");
}

static void start_is_never_ready(void **state)
{
    (void)state;
    check_start("{\"start\":\"not_ready\"}", SHORT_US, "was not ready within");
}

/* A worker with incompatible versions is not restarted, and calls do not wait for another. */
static void check_refused(const char *table, const char *reason)
{
    struct rt_world world;
    struct rt_outcome outcome = {0};
    struct hd_rt_call_options options = rt_options("{\"op\":\"draw\"}", &outcome);

    rt_init(&world, table);
    rt_start(&world);
    options.patience_us = 1000 * RT_PATIENCE_US;
    assert_err(hd_runtime_call(world.runtime, &options, &outcome.call), 0);
    rt_until(&world, outcome.ends);
    rt_lost(&outcome, reason);
    assert_int_equal(hd_runtime_counts(world.runtime, HD_RT_PYTHON).restarts, 0);
    assert_int_equal(hd_runtime_counts(world.runtime, HD_RT_PYTHON).starting, 0);
    rt_fini(&world);
}

static void versions_differ(void **state)
{
    (void)state;
    check_refused("{\"hello\":{\"version\":\"7.1.0\"}}",
                  "the worker's package is 7.1.0 with protocol 1: pip install");
    check_refused("{\"hello\":{\"protocol\":2}}", "with protocol 2");
    check_refused("{\"hello\":{\"version\":null}}", "was refused");
    check_refused("{\"hello\":{\"langgraph\":\"0.6.11\"}}", "graphs need 1.0 or newer");
}

static void keys_differ(void **state)
{
    (void)state;
    check_start("{\"hello\":{\"key\":\"00\"}}", RT_PATIENCE_US, "python");
    assert_non_null(strstr(rt_log, "the key is not that of a worker"));
    check_start("{\"hello\":{\"runtime\":\"js\"}}", RT_PATIENCE_US, "started as a python worker");
    check_start("{\"hello\":{\"runtime\":\"perl\"}}", RT_PATIENCE_US, "python");
}

static void a_program_that_is_not_there(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome = {0};
    struct hd_rt_call_options options = rt_options("{\"op\":\"draw\"}", &outcome);

    (void)state;
    rt_init(&world, NULL);
    world.argv[0] = "/nonexistent/python";
    rt_start(&world);
    rt_until(&world, hd_runtime_counts(world.runtime, HD_RT_PYTHON).restarts > 0);
    options.patience_us = 0;
    assert_err(hd_runtime_call(world.runtime, &options, &outcome.call), 0);
    rt_until(&world, outcome.ends);
    rt_lost(&outcome, "cannot start /nonexistent/python: No such file or directory");
    rt_fini(&world);
}

/* Each delay is longer than the one before. */
static void starts_are_spaced(void **state)
{
    struct rt_world world;

    (void)state;
    rt_init(&world, NULL);
    world.argv[0] = "/nonexistent/python";
    rt_start(&world);
    rt_until(&world, strstr(rt_log, "retrying in 2000 ms"));
    assert_true(strstr(rt_log, "retrying in 500 ms") < strstr(rt_log, "retrying in 1000 ms"));
    assert_non_null(strstr(rt_log, "retrying in 500 ms"));
    assert_true(strstr(rt_log, "retrying in 1000 ms") < strstr(rt_log, "retrying in 2000 ms"));
    rt_fini(&world);
}

/* The state of a process: T is stopped, Z dead. */
static char state_of(int pid)
{
    char path[64], text[256] = "", state = 'Z';
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    file = fopen(path, "r");
    if (!file)
        return state;
    if (fgets(text, sizeof(text), file) && strrchr(text, ')'))
        (void)sscanf(strrchr(text, ')'), ") %c", &state);
    (void)fclose(file);
    return state;
}

/* Runs in a child process, which exits while its worker is stopped. */
static void serve_and_die(int out, const char *folder)
{
    struct rt_world world;
    struct rt_outcome outcome;
    int pid;

    /* Its files are in the folder that the test removes. */
    (void)setenv("XDG_RUNTIME_DIR", folder, 1);
    rt_init(&world, NULL);
    (void)rmdir(world.folder);
    rt_ready(&world);
    pid = pid_now(&world);
    rt_call(&world, true, "[{\"do\":\"stop\"}]", &outcome);
    rt_until(&world, !outcome.ends && hd_link_unsent(world.runtime->workers->link) == 0);
    if (write(out, &pid, sizeof(pid)) == sizeof(pid))
        (void)raise(SIGKILL);
    _exit(1);
}

static void workers_die_with_the_server(void **state)
{
    struct rt_world world;
    int pipe_ends[2], pid = 0;
    pid_t server;

    (void)state;
    rt_init(&world, NULL);
    assert_int_equal(pipe(pipe_ends), 0);
    server = fork();
    assert_true(server >= 0);
    if (server == 0)
        serve_and_die(pipe_ends[1], world.folder);
    assert_int_equal(close(pipe_ends[1]), 0);
    assert_int_equal(read(pipe_ends[0], &pid, sizeof(pid)), sizeof(pid));
    assert_int_equal(close(pipe_ends[0]), 0);
    assert_int_equal(waitpid(server, NULL, 0), server);
    rt_until(&world, state_of(pid) == 'Z' || state_of(pid) == 'X');
    rt_fini(&world);
}

static void the_environment_is_given(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome;
    char expected[128], folder[64];

    (void)state;
    rt_init(&world, NULL);
    assert_non_null(realpath(world.folder, folder));
    world.settings.programs[HD_RT_PYTHON].folder = world.folder;
    world.env[2] = NULL;
    (void)setenv("HD_RT_TEST", "of the server", 1);
    rt_ready(&world);
    rt_do(&world, "[{\"do\":\"identity\"}]", &outcome);
    (void)snprintf(expected, sizeof(expected), "\"cwd\":\"%s\"", folder);
    assert_non_null(strstr(outcome.head, expected));
    assert_non_null(strstr(outcome.head, "\"HD_RT_TEST\":\"of the server\""));
    assert_non_null(strstr(outcome.head, "\"PYTHONDONTWRITEBYTECODE\":\"1\""));
    rt_fini(&world);
}

static void output_is_logged(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome;

    (void)state;
    rt_init(&world, NULL);
    rt_ready(&world);
    rt_do(&world, "[{\"do\":\"print\",\"text\":\"one\\ntwo\"}]", &outcome);
    rt_until(&world, strstr(rt_log, "info python 1: two"));
    assert_non_null(strstr(rt_log, "info python 1: one\n"));
    rt_fini(&world);
}

/* Excessive output is dropped from the log. */
static void much_output_is_left_out(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome;
    size_t lines = 0;

    (void)state;
    rt_init(&world, NULL);
    rt_ready(&world);
    rt_do(&world, "[{\"do\":\"print\",\"text\":\"again\",\"times\":5000}]", &outcome);
    do { /* reported with the first line of the next second */
        rt_do(&world, "[{\"do\":\"print\",\"text\":\"more\"}]", &outcome);
    } while (!strstr(rt_log, "lines were left out"));
    for (const char *at = rt_log; (at = strstr(at, ": again")); at++)
        lines++;
    assert_true(lines >= 500 && lines < 5000);
    rt_fini(&world);
}

/* A worker that does not read: the data queued for it is bounded, and others take the other
 * calls. */
static void a_worker_takes_nothing(void **state)
{
    static char large[40 << 20];
    const struct hd_slice blob = {large, sizeof(large)};
    struct rt_world world;
    struct rt_outcome outcomes[3], stopped;
    struct hd_rt_worker *worker;

    (void)state;
    memset(large, 'z', sizeof(large));
    rt_init(&world, NULL);
    rt_ready(&world);
    worker = world.runtime->workers;
    rt_call(&world, true, "[{\"piece\":{\"number\":0}},{\"do\":\"stop\"}]", &stopped);
    rt_until(&world, state_of(hd_proc_pid(worker->proc)) == 'T');
    memset(outcomes, 0, sizeof(outcomes));
    for (size_t i = 0; i < HD_COUNT(outcomes); i++) {
        struct hd_rt_call_options options = rt_options(
            "{\"op\":\"run\",\"steps\":[{\"do\":\"sleep\",\"seconds\":0.1}]}", &outcomes[i]);

        options.blobs = &blob;
        options.blob_count = i < 2;
        assert_err(hd_runtime_call(world.runtime, &options, &outcomes[i].call), 0);
    }
    rt_until(&world, hd_link_unsent(worker->link) > 0);
    world.settings.hang_timeout_us = 3000000;
    rt_until(&world, stopped.ends);
    world.settings.hang_timeout_us = RT_PATIENCE_US;
    rt_lost(&stopped, "did not respond");
    rt_until(&world, outcomes[2].ends);
    assert_int_equal(outcomes[2].end, HD_RT_ANSWERED);
    rt_fini(&world);
}

static void a_large_worker_is_replaced(void **state)
{
    struct rt_world world;
    struct rt_outcome large;
    char steps[512];
    int before;

    (void)state;
    rt_init(&world, NULL);
    world.settings.memory = (size_t)160 << 20;
    rt_ready(&world);
    before = pid_now(&world);
    (void)snprintf(steps, sizeof(steps),
                   "[{\"do\":\"grow\",\"bytes\":%d},{\"piece\":{\"number\":0}},"
                   "{\"do\":\"wait_file\",\"path\":\"%s/go\"},{\"answer\":{\"status\":\"done\"}}]",
                   200 << 20, world.folder);
    rt_call(&world, true, steps, &large);
    rt_until(&world, world.ready_count == 2);
    assert_int_not_equal(pid_now(&world), before);
    assert_int_equal(large.ends, 0); /* the run continues in the old worker */
    (void)snprintf(steps, sizeof(steps), "[{\"do\":\"touch_file\",\"path\":\"%s/go\"}]",
                   world.folder);
    rt_call(&world, true, steps, &(struct rt_outcome){0});
    rt_until(&world, large.ends);
    assert_string_equal(large.head, "{\"status\":\"done\"}");
    rt_until(&world, !world.runtime->workers->next);
    assert_int_equal(hd_runtime_counts(world.runtime, HD_RT_PYTHON).restarts, 0);
    rt_fini(&world);
}

static void a_worker_far_too_large_is_killed(void **state)
{
    struct rt_world world;
    struct rt_outcome large;

    (void)state;
    rt_init(&world, NULL);
    world.settings.memory = (size_t)100 << 20;
    rt_ready(&world);
    rt_do(&world, "[{\"do\":\"grow\",\"bytes\":314572800},{\"do\":\"never\"}]", &large);
    rt_lost(&large, "it has grown to");
    rt_is_well(&world);
    rt_fini(&world);
}

/* Running calls end in the old workers; new calls go to the new ones. */
static void reloaded(void **state)
{
    struct rt_world world;
    struct rt_outcome old;
    char steps[256];
    int before;

    (void)state;
    rt_init(&world, NULL);
    rt_ready(&world);
    before = pid_now(&world);
    (void)snprintf(steps, sizeof(steps),
                   "[{\"do\":\"wait_file\",\"path\":\"%s/go\"},"
                   "{\"do\":\"identity\"}]",
                   world.folder);
    rt_call(&world, true, steps, &old);
    hd_runtime_reload(world.runtime, HD_RT_PYTHON);
    assert_int_equal(pid_now(&world), before); /* until another worker is ready */
    hd_runtime_reload(world.runtime, HD_RT_PYTHON);
    hd_runtime_reload(world.runtime, HD_RT_JS);
    rt_until(&world, world.ready_count == 2);
    assert_int_not_equal(pid_now(&world), before);
    (void)snprintf(steps, sizeof(steps), "[{\"do\":\"touch_file\",\"path\":\"%s/go\"}]",
                   world.folder);
    rt_call(&world, true, steps, &(struct rt_outcome){0});
    rt_until(&world, old.ends);
    assert_int_equal(old.end, HD_RT_ANSWERED);
    rt_until(&world, !world.runtime->workers->next);
    assert_int_equal(hd_runtime_counts(world.runtime, HD_RT_PYTHON).workers, 1);
    rt_fini(&world);
}

static void changed_files_reload(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome;
    int before;

    (void)state;
    rt_init(&world, NULL);
    rt_ready(&world);
    before = pid_now(&world);
    rt_do(&world, "[{\"call\":{\"op\":\"changed\",\"files\":[\"a.py\"]}},{\"answer\":\"$last\"}]",
          &outcome);
    assert_string_equal(outcome.head, "{}");
    rt_until(&world, world.ready_count == 2);
    assert_int_not_equal(pid_now(&world), before);
    rt_fini(&world);
}

static void on_drained(void *ctx)
{
    ((struct rt_world *)ctx)->is_drained = true;
}

static void drained(void **state)
{
    struct rt_world world;
    struct rt_outcome running, waiting, refused = {0};
    struct hd_rt_call_options options = rt_options("{\"op\":\"draw\"}", &refused);

    (void)state;
    rt_init(&world, NULL);
    world.settings.jobs = 1;
    world.settings.programs[HD_RT_PYTHON].workers = 1;
    rt_ready(&world);
    rt_call(&world, true, "[{\"do\":\"sleep\",\"seconds\":0.3},{\"answer\":{\"status\":\"done\"}}]",
            &running);
    rt_call(&world, true, "[]", &waiting);
    hd_runtime_drain(world.runtime, on_drained, &world);
    assert_err(hd_runtime_call(world.runtime, &options, &refused.call), HD_ECLOSED);
    rt_until(&world, world.is_drained);
    assert_int_equal(running.end, HD_RT_ANSWERED);
    assert_string_equal(running.head, "{\"status\":\"done\"}");
    rt_lost(&waiting, "shutting down");
    assert_null(world.runtime->workers);
    rt_fini(&world);
}

/* Also longer than a worker may be silent. */
static void a_suspended_worker_does_nothing(void **state)
{
    struct rt_world world;
    struct rt_outcome before, meanwhile;
    int64_t end;

    (void)state;
    rt_init(&world, NULL);
    rt_ready(&world);
    world.settings.hang_timeout_us = 200000;
    rt_call(&world, true, "[{\"do\":\"sleep\",\"seconds\":0.1},{\"answer\":{\"well\":true}}]",
            &before);
    (void)uv_run(&world.loop, UV_RUN_NOWAIT);
    hd_runtime_suspend(world.runtime, true);
    rt_call(&world, true, "[{\"answer\":{}}]", &meanwhile);
    end = hd_runtime_now(world.runtime) + 1000000;
    rt_until(&world, hd_runtime_now(world.runtime) > end);
    assert_int_equal(before.ends + meanwhile.ends, 0);
    assert_int_equal(hd_runtime_counts(world.runtime, HD_RT_PYTHON).workers, 1);
    world.settings.hang_timeout_us = RT_PATIENCE_US;
    hd_runtime_suspend(world.runtime, false);
    rt_until(&world, before.ends && meanwhile.ends);
    assert_int_equal(before.end, HD_RT_ANSWERED);
    assert_int_equal(meanwhile.end, HD_RT_ANSWERED);
    assert_int_equal(hd_runtime_counts(world.runtime, HD_RT_PYTHON).restarts, 0);
    rt_is_well(&world);
    rt_fini(&world);
}

static int number_after(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    int number = -1;

    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(name), "%d", &number), 1);
    return number;
}

static void a_worker_gets_signs_of_life_in_its_lease(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome;

    (void)state;
    rt_init(&world, NULL);
    world.settings.lease_us = 600000;
    rt_ready(&world);
    rt_do(&world, "[{\"do\":\"sleep\",\"seconds\":1.2},{\"answer\":\"$beats\"}]", &outcome);
    assert_int_equal(number_after(outcome.head, "\"lease_ms\":"), 600);
    assert_in_range(number_after(outcome.head, "\"beats\":"), 5, 40);
    rt_fini(&world);
}

static void a_worker_without_a_lease_gets_none(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome;

    (void)state;
    rt_init(&world, NULL);
    rt_ready(&world);
    rt_do(&world, "[{\"do\":\"sleep\",\"seconds\":0.5},{\"answer\":\"$beats\"}]", &outcome);
    assert_non_null(strstr(outcome.head, "null"));
    assert_int_equal(number_after(outcome.head, "\"beats\":"), 0);
    rt_fini(&world);
}

static void a_drain_does_not_wait_for_suspended_workers(void **state)
{
    struct rt_world world;
    struct rt_outcome running;

    (void)state;
    rt_init(&world, NULL);
    rt_ready(&world);
    rt_call(&world, true, "[{\"do\":\"never\"}]", &running);
    (void)uv_run(&world.loop, UV_RUN_NOWAIT);
    hd_runtime_suspend(world.runtime, true);
    hd_runtime_drain(world.runtime, on_drained, &world);
    rt_until(&world, world.is_drained);
    rt_lost(&running, "while it is suspended");
    rt_fini(&world);
}

static void drained_in_time(void **state)
{
    struct rt_world world;
    struct rt_outcome running;

    (void)state;
    rt_init(&world, NULL);
    world.settings.drain_us = 200000;
    rt_ready(&world);
    rt_call(&world, true, "[{\"do\":\"never\"}]", &running);
    hd_runtime_drain(world.runtime, on_drained, &world);
    rt_until(&world, world.is_drained);
    rt_lost(&running, "did not end in time");
    rt_fini(&world);
}

/* Also before a worker is ready, or with 0 workers. */
static void drained_early(void **state)
{
    struct rt_world world;

    (void)state;
    rt_init(&world, NULL);
    rt_start(&world);
    hd_runtime_drain(world.runtime, on_drained, &world);
    rt_until(&world, world.is_drained);
    rt_fini(&world);
    rt_init(&world, NULL);
    world.settings.programs[HD_RT_PYTHON].workers = 0;
    rt_start(&world);
    hd_runtime_drain(world.runtime, on_drained, &world);
    rt_until(&world, world.is_drained);
    rt_fini(&world);
}

static struct hd_proc *start_elsewhere(struct rt_world *world, const char *key)
{
    char address[64], secret[64];
    const char *more[] = {address, secret, "FAKE_WORKER={}", NULL};
    struct hd_proc_options options = {.argv = world->argv, .more = more, .name = "elsewhere"};
    struct hd_proc *proc;
    struct heddle_error fault = {0};

    (void)snprintf(address, sizeof(address), "HEDDLE_RUNTIME_ADDRESS=127.0.0.1:%d",
                   hd_runtime_port(world->runtime));
    (void)snprintf(secret, sizeof(secret), "HEDDLE_RUNTIME_KEY=%s", key);
    assert_err(hd_proc_start(&world->loop, &options, &proc, &fault), 0);
    return proc;
}

static void await_end(struct rt_world *world, struct hd_proc *proc)
{
    char how[64];

    rt_until(world, hd_proc_has_ended(proc, how, sizeof(how)));
    hd_proc_close(proc);
}

static void workers_come_over_tcp(void **state)
{
    struct rt_world world;
    struct hd_proc *stranger, *friend;
    struct rt_outcome outcome;

    (void)state;
    rt_init(&world, NULL);
    world.settings.programs[HD_RT_PYTHON].workers = 0;
    world.settings.listen = "127.0.0.1:0";
    world.settings.key = "open sesame";
    rt_start(&world);
    assert_true(hd_runtime_port(world.runtime) > 0);
    stranger = start_elsewhere(&world, "open barley");
    await_end(&world, stranger);
    assert_non_null(strstr(rt_log, "the key is wrong"));
    assert_null(strstr(rt_log, "barley"));
    assert_int_equal(world.ready_count, 0);
    friend = start_elsewhere(&world, "open sesame");
    rt_is_well(&world);
    rt_call(&world, true, "[{\"do\":\"exit\"}]", &outcome);
    rt_until(&world, outcome.ends);
    rt_lost(&outcome, "closed the connection");
    await_end(&world, friend);
    assert_null(world.runtime->workers);
    friend = start_elsewhere(&world, "open sesame");
    rt_is_well(&world);
    hd_runtime_drain(world.runtime, on_drained, &world);
    rt_until(&world, world.is_drained);
    await_end(&world, friend);
    rt_fini(&world);
}

static int connect_to(struct rt_world *world)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)hd_runtime_port(world->runtime)),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
        assert_int_equal(errno, EINPROGRESS);
    return fd;
}

/* True when the server closed the connection, with or without sending data before. */
static bool is_closed(int fd)
{
    char bytes[256];
    ssize_t len = recv(fd, bytes, sizeof(bytes), 0);

    return len == 0 || (len < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOTCONN);
}

static bool can_send(int fd, struct hd_slice bytes)
{
    return send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL) == (ssize_t)bytes.len;
}

static void strangers_are_seen_off(void **state)
{
    static const struct hd_slice words[] = {
        HD_S_INIT("GET / HTTP/1.1\r\nHost: here\r\n\r\n"),
        HD_S_INIT("\xff\xff\xff\x3f\x01\0\0\0\x01\0\0\0\x02\0\0\0"), /* a very long frame */
        HD_S_INIT("\x0e\0\0\0\x01\0\0\0\x01\0\0\0\x02\0\0\0{}"),     /* no hello */
        HD_S_INIT("\x0e\0\0\0\x02\0\0\0\x01\0\0\0\x02\0\0\0{}"),     /* an answer */
        HD_S_INIT("\x1a\0\0\0\x01\0\0\0\x01\0\0\0\x0e\0\0\0{\"op\":\"hello\"}"),
    };
    struct rt_world world;

    (void)state;
    rt_init(&world, NULL);
    world.settings.listen = "127.0.0.1:0";
    world.settings.key = "open sesame";
    rt_ready(&world);
    for (size_t i = 0; i < HD_COUNT(words); i++) {
        int fd = connect_to(&world);

        rt_until(&world, can_send(fd, words[i]));
        rt_until(&world, is_closed(fd));
        assert_int_equal(close(fd), 0);
    }
    rt_is_well(&world);
    assert_int_equal(hd_runtime_counts(world.runtime, HD_RT_PYTHON).workers, 1);
    rt_fini(&world);
}

static size_t count_closed(const int *fds, size_t count)
{
    size_t closed = 0;

    for (size_t i = 0; i < count; i++)
        closed += is_closed(fds[i]);
    return closed;
}

/* Silent connections do not keep the server's own workers from connecting. */
static void strangers_are_limited(void **state)
{
    static int fds[300];
    struct rt_world world;

    (void)state;
    rt_init(&world, NULL);
    world.settings.listen = "127.0.0.1:0";
    world.settings.key = "open sesame";
    rt_start(&world);
    for (size_t i = 0; i < HD_COUNT(fds); i++) {
        fds[i] = connect_to(&world);
        (void)uv_run(&world.loop, UV_RUN_NOWAIT);
    }
    rt_is_well(&world);
    rt_until(&world, count_closed(fds, HD_COUNT(fds)) >= HD_COUNT(fds) - 256);
    for (size_t i = 0; i < HD_COUNT(fds); i++)
        assert_int_equal(close(fds[i]), 0);
    rt_until(&world, !world.runtime->guests);
    rt_fini(&world);
}

static void listening_may_fail(void **state)
{
    static const char *const addresses[] = {
        "127.0.0.1:1:2",      "here",       "here:", ":1", "[::1]", "1:x",
        "no host.invalid:80", "192.0.2.1:0"};
    struct rt_world world;
    struct heddle_error fault = {0};

    (void)state;
    for (size_t i = 0; i <= HD_COUNT(addresses); i++) {
        rt_init(&world, NULL);
        fault = (struct heddle_error){0};
        world.settings.listen = i < HD_COUNT(addresses) ? addresses[i] : "127.0.0.1:0";
        world.settings.key = i < HD_COUNT(addresses) ? "key" : "";
        assert_err(hd_runtime_create(&world.loop, NULL, &world.settings, &world.runtime, &fault),
                   0);
        assert_true(hd_runtime_start(world.runtime, &fault) != 0);
        assert_non_null(strstr(fault.text, "listen"));
        rt_fini(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_ends),
        cmocka_unit_test(a_worker_is_killed),
        cmocka_unit_test(a_worker_sends_garbage),
        cmocka_unit_test(a_reply_without_a_request_ends_the_worker),
        cmocka_unit_test(a_worker_sends_wrong_frames),
        cmocka_unit_test(a_worker_closes_its_connection),
        cmocka_unit_test(a_worker_hangs),
        cmocka_unit_test(start_ends),
        cmocka_unit_test(start_hangs),
        cmocka_unit_test(start_is_silent),
        cmocka_unit_test(start_is_garbage),
        cmocka_unit_test(start_is_never_ready),
        cmocka_unit_test(versions_differ),
        cmocka_unit_test(keys_differ),
        cmocka_unit_test(a_program_that_is_not_there),
        cmocka_unit_test(starts_are_spaced),
        cmocka_unit_test(workers_die_with_the_server),
        cmocka_unit_test(the_environment_is_given),
        cmocka_unit_test(output_is_logged),
        cmocka_unit_test(much_output_is_left_out),
        cmocka_unit_test(a_worker_takes_nothing),
        cmocka_unit_test(a_large_worker_is_replaced),
        cmocka_unit_test(a_worker_far_too_large_is_killed),
        cmocka_unit_test(reloaded),
        cmocka_unit_test(changed_files_reload),
        cmocka_unit_test(drained),
        cmocka_unit_test(drained_in_time),
        cmocka_unit_test(a_suspended_worker_does_nothing),
        cmocka_unit_test(a_worker_gets_signs_of_life_in_its_lease),
        cmocka_unit_test(a_worker_without_a_lease_gets_none),
        cmocka_unit_test(a_drain_does_not_wait_for_suspended_workers),
        cmocka_unit_test(drained_early),
        cmocka_unit_test(workers_come_over_tcp),
        cmocka_unit_test(strangers_are_seen_off),
        cmocka_unit_test(strangers_are_limited),
        cmocka_unit_test(listening_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
