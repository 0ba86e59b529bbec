#include "runtime/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"

#define MAX_LINE ((size_t)8 * 1024)
#define LINES_A_SECOND 500
#define MAX_ENV 4096
#define CANNOT_START 127
#define LAST_WORDS_MS 1000
#define CLOEXEC_RANGE 4U /* CLOSE_RANGE_CLOEXEC, missing in older headers */

extern char **environ;

enum { OUTPUT, ERRORS, STREAMS };

struct output {
    uv_pipe_t pipe;
    struct hd_buf line;
    bool is_open;
};

struct hd_proc {
    pid_t pid;
    bool has_ended;
    int status;
    char name[32];
    struct output outputs[STREAMS];
    uv_timer_t timer; /* limits reading after exit */
    unsigned open_handles;
    bool is_closing;
    int64_t second; /* the second that `lines` counts */
    unsigned lines;
    char buffer[16 * 1024]; /* data is used up before the next read */
    void (*on_closed)(void *arg);
    void *arg;
};

/* ---- output ----------------------------------------------------------- */

static void release_handle(uv_handle_t *handle)
{
    struct hd_proc *proc = handle->data;
    void (*fn)(void *arg) = proc->on_closed;
    void *arg = proc->arg;

    if (--proc->open_handles > 0)
        return;
    for (int i = 0; i < STREAMS; i++)
        hd_buf_fini(&proc->outputs[i].line);
    hd_free(proc);
    if (fn)
        fn(arg);
}

/* Limits the lines per second that a process may log; reports how many were dropped. */
static bool may_log(struct hd_proc *proc)
{
    int64_t second = hd_clock_monotonic_us() / 1000000;

    if (second != proc->second) {
        if (proc->lines > LINES_A_SECOND)
            hd_log(HD_LOG_WARN, proc->name, "%u lines were left out", proc->lines - LINES_A_SECOND);
        proc->second = second;
        proc->lines = 0;
    }
    return ++proc->lines <= LINES_A_SECOND;
}

static void log_line(struct hd_proc *proc, struct hd_slice line)
{
    while (line.len > 0 && (line.ptr[line.len - 1] == '\r' || line.ptr[line.len - 1] == ' '))
        line.len--;
    if (line.len > 0 && may_log(proc))
        hd_log(HD_LOG_INFO, proc->name, "%.*s", (int)line.len, line.ptr);
}

static void log_rest(struct hd_proc *proc, struct output *output)
{
    log_line(proc, hd_buf_slice(&output->line));
    hd_buf_reset(&output->line);
}

static void take_text(struct hd_proc *proc, struct output *output, struct hd_slice text)
{
    while (text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        size_t room = MAX_LINE - output->line.len;

        /* Drops the rest of an overlong line. */
        if (hd_buf_append(&output->line, text.ptr, len < room ? len : room) || end)
            log_rest(proc, output);
        len += end ? 1 : 0;
        text = hd_slice(text.ptr + len, text.len - len);
    }
}

static void close_output(struct hd_proc *proc, struct output *output)
{
    if (!output->is_open)
        return;
    log_rest(proc, output);
    output->is_open = false;
    uv_close((uv_handle_t *)&output->pipe, release_handle);
}

static void close_when_silent(struct hd_proc *proc)
{
    if (proc->is_closing && !proc->outputs[OUTPUT].is_open && !proc->outputs[ERRORS].is_open &&
        !uv_is_closing((uv_handle_t *)&proc->timer))
        uv_close((uv_handle_t *)&proc->timer, release_handle);
}

static struct output *output_of(struct hd_proc *proc, const void *pipe)
{
    return &proc->outputs[pipe == &proc->outputs[ERRORS].pipe ? ERRORS : OUTPUT];
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct hd_proc *proc = handle->data;

    (void)suggested;
    *buf = uv_buf_init(proc->buffer, sizeof(proc->buffer));
}

static void on_output_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
    struct hd_proc *proc = stream->data;
    struct output *output = output_of(proc, stream);

    if (len > 0) {
        take_text(proc, output, hd_slice(buf->base, (size_t)len));
    } else if (len < 0) {
        close_output(proc, output);
        close_when_silent(proc);
    }
}

/* ---- start ------------------------------------------------------------ */

static bool has_name(const char *entry, const char *const *env)
{
    size_t len = strcspn(entry, "=") + 1;

    for (; env && *env; env++)
        if (strncmp(*env, entry, len) == 0)
            return true;
    return false;
}

static int add_all(const char **out, size_t *count, const char *const *env)
{
    for (; env && *env; env++) {
        if (*count == MAX_ENV)
            return HD_ELIMIT;
        out[(*count)++] = *env;
    }
    return 0;
}

/* `more` overrides `env`, which overrides the server's environment. */
static int make_env(const struct hd_proc_options *options, const char ***out)
{
    const char **env = hd_calloc(MAX_ENV + 1, sizeof(*env));
    size_t count = 0;
    int err = env ? add_all(env, &count, options->more) : HD_ENOMEM;

    for (const char *const *at = options->env; !err && at && *at; at++)
        if (!has_name(*at, options->more))
            err = add_all(env, &count, (const char *const[]){*at, NULL});
    for (char **at = environ; !err && *at; at++)
        if (!has_name(*at, options->more) && !has_name(*at, options->env))
            err = add_all(env, &count, (const char *const[]){*at, NULL});
    if (err)
        hd_free(env);
    else
        *out = env;
    return err;
}

struct pipes {
    int null;
    int out[STREAMS][2];
    int failure[2]; /* the child writes errno if exec() fails */
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static void close_pipes(struct pipes *pipes)
{
    close_fd(&pipes->null);
    close_fd(&pipes->failure[0]);
    close_fd(&pipes->failure[1]);
    for (int i = 0; i < STREAMS; i++) {
        close_fd(&pipes->out[i][0]);
        close_fd(&pipes->out[i][1]);
    }
}

static int open_pipes(struct pipes *pipes)
{
    *pipes = (struct pipes){-1, {{-1, -1}, {-1, -1}}, {-1, -1}};
    pipes->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (pipes->null < 0 || pipe2(pipes->failure, O_CLOEXEC) ||
        pipe2(pipes->out[OUTPUT], O_CLOEXEC) || pipe2(pipes->out[ERRORS], O_CLOEXEC)) {
        close_pipes(pipes);
        return HD_EIO;
    }
    return 0;
}

/* Between fork() and exec(): async-signal-safe functions only. */
static void become(const struct hd_proc_options *options, const char **env, struct pipes *pipes,
                   pid_t parent)
{
    sigset_t none;
    int number;

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#ifdef SYS_close_range
    /* files without CLOEXEC, opened by libraries */
    (void)syscall(SYS_close_range, 3U, ~0U, CLOEXEC_RANGE);
#endif
    if (getppid() != parent)
        _exit(CANNOT_START);
    for (int i = 1; i < NSIG; i++)
        (void)signal(i, SIG_DFL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(pipes->null, STDIN_FILENO) >= 0 && dup2(pipes->out[OUTPUT][1], STDOUT_FILENO) >= 0 &&
        dup2(pipes->out[ERRORS][1], STDERR_FILENO) >= 0 &&
        (!options->folder || chdir(options->folder) == 0)) {
        environ = (char **)env;
        (void)execvp(options->argv[0], (char *const *)options->argv);
    }
    number = errno;
    while (write(pipes->failure[1], &number, sizeof(number)) < 0 && errno == EINTR)
        ;
    _exit(CANNOT_START);
}

/* The errno of the child's failure; 0: it runs. */
static int await_start(struct pipes *pipes)
{
    int number = 0;
    ssize_t len;

    close_fd(&pipes->failure[1]);
    do
        len = read(pipes->failure[0], &number, sizeof(number));
    while (len < 0 && errno == EINTR);
    return len == sizeof(number) ? number : 0;
}

static int spawn(const struct hd_proc_options *options, struct pipes *pipes, pid_t *out,
                 struct heddle_error *fault)
{
    const char **env;
    pid_t pid, parent = getpid();
    sigset_t all, before;
    int number, err = make_env(options, &env);

    if (err)
        return hd_error_set(fault, err, "the environment of %s is too large", options->name);
    /* No signal may run a handler of the server in the child before it has its own. */
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = fork();
    if (pid == 0)
        become(options, env, pipes, parent);
    number = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    hd_free(env);
    if (pid < 0)
        return hd_error_set(fault, HD_EIO, "cannot start a process: %s", strerror(number));
    number = await_start(pipes);
    if (number) {
        (void)waitpid(pid, NULL, 0);
        return hd_error_set(fault, HD_EIO, "cannot start %s%s%s: %s", options->argv[0],
                            options->folder ? " in " : "", options->folder ? options->folder : "",
                            strerror(number));
    }
    (void)setpgid(pid, pid);
    *out = pid;
    return 0;
}

static void listen_to(uv_loop_t *loop, struct hd_proc *proc, int i, int *fd)
{
    struct output *output = &proc->outputs[i];

    hd_buf_init(&output->line, MAX_LINE);
    (void)uv_pipe_init(loop, &output->pipe, 0);
    output->pipe.data = proc;
    output->is_open = true;
    proc->open_handles++;
    if (uv_pipe_open(&output->pipe, *fd) == 0)
        *fd = -1; /* owned by the handle now */
    if (*fd >= 0 || uv_read_start((uv_stream_t *)&output->pipe, on_alloc, on_output_read))
        close_output(proc, output);
}

int hd_proc_start(uv_loop_t *loop, const struct hd_proc_options *options, struct hd_proc **out,
                  struct heddle_error *fault)
{
    struct hd_proc *proc = hd_calloc(1, sizeof(*proc));
    struct pipes pipes;
    int err;

    if (!proc)
        return hd_error_set(fault, HD_ENOMEM, "out of memory");
    err = open_pipes(&pipes);
    if (err) {
        hd_free(proc);
        return hd_error_set(fault, err, "cannot create pipes: %s", strerror(errno));
    }
    err = spawn(options, &pipes, &proc->pid, fault);
    if (err) {
        close_pipes(&pipes);
        hd_free(proc);
        return err;
    }
    (void)snprintf(proc->name, sizeof(proc->name), "%s", options->name);
    proc->on_closed = options->on_closed;
    proc->arg = options->arg;
    (void)uv_timer_init(loop, &proc->timer);
    proc->timer.data = proc;
    proc->open_handles++;
    listen_to(loop, proc, OUTPUT, &pipes.out[OUTPUT][0]);
    listen_to(loop, proc, ERRORS, &pipes.out[ERRORS][0]);
    close_pipes(&pipes);
    *out = proc;
    return 0;
}

/* ---- end -------------------------------------------------------------- */

bool hd_proc_has_ended(struct hd_proc *proc, char *how, size_t size)
{
    pid_t pid = proc->has_ended ? 0 : waitpid(proc->pid, &proc->status, WNOHANG);

    if (pid == proc->pid || (pid < 0 && errno == ECHILD))
        proc->has_ended = true;
    if (!proc->has_ended)
        return false;
    if (WIFSIGNALED(proc->status))
        (void)snprintf(how, size, "was killed by signal %d", WTERMSIG(proc->status));
    else
        (void)snprintf(how, size, "ended with code %d", WEXITSTATUS(proc->status));
    return true;
}

void hd_proc_kill(struct hd_proc *proc, int number)
{
    if (!proc->has_ended && kill(-proc->pid, number))
        (void)kill(proc->pid, number);
}

pid_t hd_proc_pid(const struct hd_proc *proc)
{
    return proc->pid;
}

size_t hd_proc_memory(const struct hd_proc *proc)
{
    char path[64], text[128];
    unsigned long pages = 0;
    ssize_t len;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%ld/statm", (long)proc->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    len = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    text[len > 0 ? len : 0] = '\0';
    if (sscanf(text, "%*u %lu", &pages) != 1)
        return 0;
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void on_late(uv_timer_t *timer)
{
    struct hd_proc *proc = timer->data;

    close_output(proc, &proc->outputs[OUTPUT]);
    close_output(proc, &proc->outputs[ERRORS]);
    close_when_silent(proc);
}

void hd_proc_close(struct hd_proc *proc)
{
    proc->is_closing = true;
    /* A process that it started may hold its pipes open. */
    (void)uv_timer_start(&proc->timer, on_late, LAST_WORDS_MS, 0);
    close_when_silent(proc);
}
