/*
 * A backend in front of another one that reports every call: to run another operation at a chosen
 * moment, to count calls, or to stop responding like a killed process.
 */
#ifndef HD_TESTS_CONTRACT_STORE_WATCH_H
#define HD_TESTS_CONTRACT_STORE_WATCH_H

#include <stdatomic.h>

#include "store/store.h"

struct watch {
    struct hd_backend base; /* must be first */
    struct hd_backend *inner;
    bool owns_inner;

    atomic_int calls;   /* reads and applies so far */
    atomic_int applies; /* of those */
    int dies_at;        /* from this call on nothing gets through; 0: never */
    int death;          /* the error then; 0: HD_EIO */
    int death_takes_ms; /* as a timeout would */
    int pauses_at;      /* before this call `pause` is called, once; 0: never */
    void (*pause)(void *arg);
    void *pause_arg;
    void (*on_apply)(void *arg, const struct hd_batch *batch); /* before each; may be NULL */
    void *on_apply_arg;
};

/* Puts `watch` before the store's backend, which it then owns. */
void watch_store(struct watch *watch, struct heddle *store);

/*
 * Makes `store` use the backend behind `watch`: a second handle on the same data, with a separate
 * cache, also if the database is in memory. It must be closed first.
 */
void share_backend(struct watch *second, const struct watch *watch, struct heddle *store);

/* Starts to count again; forgets pauses and death. */
void watch_reset(struct watch *watch);

#endif
