/* delete_thread, delete_runs, copy_thread, prune, compact and check: calls without a result. */
#include "store.h"

#include "base/alloc.h"

struct admin_job {
    struct hd_py_job base;
    struct heddle_bytes principal;
    struct heddle_bytes *ids; /* threads or runs */
    size_t count;
    struct heddle_thread *threads;
    enum heddle_prune strategy;
};

static void drop(struct hd_py_job *base)
{
    struct admin_job *job = (struct admin_job *)base;

    hd_free(job->ids);
    hd_free(job->threads);
}

static int run_delete_thread(struct hd_py_job *base)
{
    struct admin_job *job = (struct admin_job *)base;

    return heddle_delete_thread(base->store->handle, &job->threads[0], &base->error);
}

static int run_delete_runs(struct hd_py_job *base)
{
    struct admin_job *job = (struct admin_job *)base;

    return heddle_delete_runs(base->store->handle, job->principal, job->ids, job->count,
                              &base->error);
}

static int run_copy_thread(struct hd_py_job *base)
{
    struct admin_job *job = (struct admin_job *)base;

    return heddle_copy_thread(base->store->handle, &job->threads[0], &job->threads[1],
                              &base->error);
}

static int run_prune(struct hd_py_job *base)
{
    struct admin_job *job = (struct admin_job *)base;

    return heddle_prune(base->store->handle, job->threads, job->count, job->strategy, &base->error);
}

static int run_compact(struct hd_py_job *base)
{
    return heddle_compact(base->store->handle, &base->error);
}

static int run_check(struct hd_py_job *base)
{
    return heddle_check(base->store->handle, &base->error);
}

/* `ids` is a sequence of str, each a thread or a run of the principal. Takes nothing. */
static PyObject *submit(struct hd_py_store *self, int (*run)(struct hd_py_job *),
                        PyObject *principal, PyObject *ids, enum heddle_prune strategy,
                        bool is_async)
{
    struct admin_job *job = hd_py_job_create(sizeof(*job), self, NULL);

    if (!job)
        return NULL;
    job->base.run = run;
    job->base.finish = hd_py_job_none;
    job->base.drop = drop;
    job->strategy = strategy;
    if (principal && hd_py_job_borrow(&job->base, principal, "principal", &job->principal) != 0)
        goto fail;
    if (ids && hd_py_job_borrow_all(&job->base, ids, "an id", &job->ids, &job->count) != 0)
        goto fail;
    job->threads = hd_calloc(job->count ? job->count : 1, sizeof(*job->threads));
    if (!job->threads) {
        PyErr_NoMemory();
        goto fail;
    }
    for (size_t i = 0; i < job->count; i++)
        job->threads[i] = (struct heddle_thread){job->principal, job->ids[i]};
    return hd_py_job_submit(&job->base, is_async);
fail:
    hd_py_job_destroy(&job->base);
    return NULL;
}

static PyObject *delete_thread(struct hd_py_store *self, PyObject *args, bool is_async)
{
    PyObject *principal;
    PyObject *thread;
    PyObject *ids;
    PyObject *result;

    if (!PyArg_ParseTuple(args, "OO:delete_thread", &principal, &thread))
        return NULL;
    ids = PyTuple_Pack(1, thread);
    if (!ids)
        return NULL;
    result = submit(self, run_delete_thread, principal, ids, HEDDLE_DELETE_ALL, is_async);
    Py_DECREF(ids);
    return result;
}

static PyObject *delete_runs(struct hd_py_store *self, PyObject *args, bool is_async)
{
    PyObject *principal;
    PyObject *runs;

    if (!PyArg_ParseTuple(args, "OO:delete_runs", &principal, &runs))
        return NULL;
    return submit(self, run_delete_runs, principal, runs, HEDDLE_DELETE_ALL, is_async);
}

static PyObject *copy_thread(struct hd_py_store *self, PyObject *args, bool is_async)
{
    PyObject *principal;
    PyObject *source;
    PyObject *target;
    PyObject *ids;
    PyObject *result;

    if (!PyArg_ParseTuple(args, "OOO:copy_thread", &principal, &source, &target))
        return NULL;
    ids = PyTuple_Pack(2, source, target);
    if (!ids)
        return NULL;
    result = submit(self, run_copy_thread, principal, ids, HEDDLE_DELETE_ALL, is_async);
    Py_DECREF(ids);
    return result;
}

static PyObject *prune(struct hd_py_store *self, PyObject *args, bool is_async)
{
    PyObject *principal;
    PyObject *threads;
    int keep_latest;

    if (!PyArg_ParseTuple(args, "OOp:prune", &principal, &threads, &keep_latest))
        return NULL;
    return submit(self, run_prune, principal, threads,
                  keep_latest ? HEDDLE_KEEP_LATEST : HEDDLE_DELETE_ALL, is_async);
}

static PyObject *compact(struct hd_py_store *self, PyObject *args, bool is_async)
{
    if (!PyArg_ParseTuple(args, ":compact"))
        return NULL;
    return submit(self, run_compact, NULL, NULL, HEDDLE_DELETE_ALL, is_async);
}

static PyObject *check(struct hd_py_store *self, PyObject *args, bool is_async)
{
    if (!PyArg_ParseTuple(args, ":check"))
        return NULL;
    return submit(self, run_check, NULL, NULL, HEDDLE_DELETE_ALL, is_async);
}

/* Each operation as a method, and as a method that returns a future. */
#define BOTH(name)                                                          \
    static PyObject *name##_sync(struct hd_py_store *self, PyObject *args)  \
    {                                                                       \
        return name(self, args, false);                                     \
    }                                                                       \
    static PyObject *name##_async(struct hd_py_store *self, PyObject *args) \
    {                                                                       \
        return name(self, args, true);                                      \
    }

BOTH(delete_thread)
BOTH(delete_runs)
BOTH(copy_thread)
BOTH(prune)
BOTH(compact)
BOTH(check)

#define ENTRIES(name, doc)                                                                         \
    {#name, (PyCFunction)name##_sync, METH_VARARGS, doc},                                          \
    {                                                                                              \
#name "_async", (PyCFunction)name##_async, METH_VARARGS, "As " #name "; returns a future." \
    }

PyMethodDef hd_py_admin_methods[] = {
    ENTRIES(delete_thread, "delete_thread(principal, thread_id)"),
    ENTRIES(delete_runs, "delete_runs(principal, run_ids)"),
    ENTRIES(copy_thread, "copy_thread(principal, source, target)"),
    ENTRIES(prune, "prune(principal, thread_ids, keep_latest)"),
    ENTRIES(compact, "compact()"),
    ENTRIES(check, "check()"),
    {NULL, NULL, 0, NULL},
};
