/*
 * A worker's process. Its standard output and standard error become lines of the server's log. It
 * leads its own process group, so that signals from the server's terminal do not reach it, and the
 * kernel kills it when the server dies.
 */
#ifndef HD_RUNTIME_PROC_H
#define HD_RUNTIME_PROC_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "base/compiler.h"
#include "base/error.h"

struct hd_proc;

struct hd_proc_options {
    const char *const *argv;
    const char *const *env;  /* added to the server's; NULL-terminated; may be NULL */
    const char *const *more; /* likewise */
    const char *folder;      /* NULL: the current one */
    const char *name;        /* for the log: "python 1"; copied */
    void (*on_closed)(void *arg);
    void *arg;
};

HD_MUST_CHECK int hd_proc_start(uv_loop_t *loop, const struct hd_proc_options *options,
                                struct hd_proc **out, struct heddle_error *fault);
/* Whether it has ended; `how` becomes a phrase such as "was killed by signal 9". Does not wait. */
bool hd_proc_has_ended(struct hd_proc *proc, char *how, size_t size);
/* Signals the whole group. */
void hd_proc_kill(struct hd_proc *proc, int signal);
pid_t hd_proc_pid(const struct hd_proc *proc);
/* Bytes resident; 0: unknown. */
size_t hd_proc_memory(const struct hd_proc *proc);
/*
 * After it has ended. Its last output is still logged; on_closed is called when the memory is
 * freed.
 */
void hd_proc_close(struct hd_proc *proc);

#endif
