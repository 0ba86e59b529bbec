/*
 * The process that will be killed: a few threads that carry out their workers' operations and
 * report each returned call through a pipe. Opens and closes the store again and again.
 */
#ifndef HD_TESTS_FAULT_WRITER_H
#define HD_TESTS_FAULT_WRITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "model.h"

enum phase { PHASE_START, PHASE_OPENING, PHASE_WORKING, PHASE_CLOSING, PHASES };

/* A message of a writer. Shorter than PIPE_BUF, so never cut or mixed. */
struct report {
    enum report_kind {
        REPORT_DONE,
        REPORT_UNKNOWN, /* the database went away; the operation may have happened or not */
        REPORT_FAILED   /* must not happen */
    } kind;
    unsigned worker;
    uint32_t number;
    char text[300]; /* of a failure */
};

struct writer {
    const char *url;
    struct worker *workers; /* this process's */
    unsigned worker_count;
    int pipe;
    _Atomic int *phase; /* shared with the parent */
    uint64_t random;
    bool may_lose_server; /* HEDDLE_EUNAVAILABLE is an answer */
    bool ends_itself;     /* closes and returns after a while */
};

/* In the parent: SIGUSR1 stops a writer, from its first moment on. */
void writer_prepare(void);

/* In the child. Returns when SIGUSR1 came or, if it ends itself, its work is done; 0: all well. */
int writer_run(struct writer *writer);

#endif
