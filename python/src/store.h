/*
 * The Store object and the jobs it runs.
 *
 * A job is one call of the core: its borrowed input, its function without the GIL, and the
 * conversion of the result to a Python object. The same job runs on the caller's thread, or on a
 * thread of the store with a future for the result (hd_py_job_submit).
 */
#ifndef HD_PY_STORE_H
#define HD_PY_STORE_H

#include <pthread.h>

#include "codec.h"

struct hd_py_reader;

struct hd_py_store {
    PyObject_HEAD struct hd_py_ext *ext;
    struct heddle *handle;
    unsigned long forks; /* the number of forks of this process when it was opened */
    PyObject *weakrefs;
    bool has_lock;

    /* Guards what follows. */
    pthread_mutex_t lock;
    pthread_cond_t idle;          /* signalled when calls becomes 0 */
    size_t calls;                 /* running, on any thread */
    bool is_closing;              /* no new calls */
    struct hd_py_reader *readers; /* open lists; owned by the closer once is_closing */
};

/* Counts a call. 0, or HEDDLE_ECLOSED with nothing counted. GIL not needed. */
int hd_py_store_enter(struct hd_py_store *store, struct heddle_error *error);
void hd_py_store_leave(struct hd_py_store *store);

/* An open heddle_list. Owned by the store's list of readers, so that closing can end it. */
struct hd_py_reader {
    struct heddle_list *list;
    struct hd_py_reader *next;
    struct hd_py_reader *prev;
};

void hd_py_store_add_reader(struct hd_py_store *store, struct hd_py_reader *reader);
/* Closes and frees it, unless the closing store has done so. GIL not needed. */
void hd_py_store_end_reader(struct hd_py_store *store, struct hd_py_reader *reader);

/* ---- jobs ------------------------------------------------------------- */

struct hd_py_mailbox;

struct hd_py_job {
    /* Blocking, without the GIL: the core's code, and the reason in job->error. */
    int (*run)(struct hd_py_job *job);
    /* Optional: starts the core's own asynchronous form instead of run. */
    int (*start)(struct hd_py_job *job);
    /* With the GIL: the result as a new object. Called after success only. */
    PyObject *(*finish)(struct hd_py_job *job);
    /* With the GIL: frees the input and the result. */
    void (*drop)(struct hd_py_job *job);

    struct hd_py_store *store; /* owned */
    struct hd_py_codec *codec; /* owned; NULL where nothing is decoded */
    PyObject *keep;            /* the objects that the input borrows from; owned */
    int code;
    struct heddle_error error;

    /* Asynchronous jobs only. */
    struct hd_py_mailbox *mailbox;
    PyObject *future; /* owned */
    struct hd_py_job *next;
};

/*
 * A job of `size` bytes that embeds struct hd_py_job as its first member; the rest is zero. `codec`
 * may be NULL. NULL with an exception.
 */
void *hd_py_job_create(size_t size, struct hd_py_store *store, PyObject *codec);
void hd_py_job_destroy(struct hd_py_job *job);

/* Takes the job. is_async selects the result or a future of it. */
PyObject *hd_py_job_submit(struct hd_py_job *job, bool is_async);

/* The callback for heddle_put_async and similar functions; arg is the job. No GIL. */
void hd_py_job_done(void *arg, int code, const struct heddle_error *error);

/* Runs the job on a separate thread, for work that a store's thread cannot do: opening and
 * closing. */
PyObject *hd_py_job_submit_thread(struct hd_py_job *job);

/* A future of the running loop that is already done. */
PyObject *hd_py_future_none(struct hd_py_ext *ext);

/* Borrows a str argument for the job. */
int hd_py_job_borrow(struct hd_py_job *job, PyObject *str, const char *what,
                     struct heddle_bytes *out);
/* As above; None leaves it empty and *is_given false. is_given may be NULL. */
int hd_py_job_borrow_optional(struct hd_py_job *job, PyObject *str, const char *what,
                              struct heddle_bytes *out, bool *is_given);

/* An array of the strings of a sequence; *out is hd_malloc'ed, for drop to free. */
int hd_py_job_borrow_all(struct hd_py_job *job, PyObject *strings, const char *what,
                         struct heddle_bytes **out, size_t *count);

/* The finish function of operations without a result. */
PyObject *hd_py_job_none(struct hd_py_job *job);

/* ---- rows ------------------------------------------------------------- */

/*
 * (thread_id, ns, id, parent or None, checkpoint, metadata, writes, sends):
 * checkpoint with its channel_values, writes as (task_id, channel, value).
 */
PyObject *hd_py_row_new(struct hd_py_codec *codec, const struct heddle_tuple *tuple,
                        bool is_header);

/* A list of (task_id, channel, value) in the order of (task_path, task_id, idx). */
PyObject *hd_py_writes_new(struct hd_py_codec *codec, const struct heddle_write *writes,
                           size_t count);

/* A copy in one block of memory, to be freed with hd_free; NULL when out of memory. No GIL. */
struct heddle_tuple *hd_py_tuple_copy(const struct heddle_tuple *tuple, size_t *size);

/* cursor.c: the method Store.list. */
PyObject *hd_py_list(struct hd_py_store *store, PyObject *args);

/* Method tables; store.c joins them. */
extern PyMethodDef hd_py_write_methods[];
extern PyMethodDef hd_py_read_methods[];
extern PyMethodDef hd_py_admin_methods[];

#endif
