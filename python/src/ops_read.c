/*
 * get, delta_history, threads and usage. list is in cursor.c.
 */
#include "store.h"

#include "base/alloc.h"

/* ---- get -------------------------------------------------------------- */

struct get_job {
    struct hd_py_job base;
    struct heddle_key key;
    struct heddle_tuple *tuple; /* NULL: not found */
};

static void drop_get(struct hd_py_job *base)
{
    heddle_tuple_free(((struct get_job *)base)->tuple);
}

static int run_get(struct hd_py_job *base)
{
    struct get_job *job = (struct get_job *)base;
    int err = heddle_get(base->store->handle, &job->key, &job->tuple, &base->error);

    if (err != HEDDLE_ENOTFOUND)
        return err;
    base->error.code = 0;
    return 0;
}

static PyObject *finish_get(struct hd_py_job *base)
{
    struct get_job *job = (struct get_job *)base;

    if (!job->tuple)
        Py_RETURN_NONE;
    return hd_py_row_new(base->codec, job->tuple, false);
}

static int borrow_key(struct hd_py_job *job, struct heddle_key *key, PyObject *principal,
                      PyObject *thread, PyObject *ns, PyObject *id)
{
    if (hd_py_job_borrow(job, principal, "principal", &key->thread.principal) == 0 &&
        hd_py_job_borrow(job, thread, "thread_id", &key->thread.id) == 0 &&
        hd_py_job_borrow(job, ns, "checkpoint_ns", &key->ns) == 0)
        return hd_py_job_borrow_optional(job, id, "checkpoint_id", &key->id, NULL);
    return -1;
}

static PyObject *get(struct hd_py_store *self, PyObject *args, bool is_async)
{
    PyObject *codec;
    PyObject *principal;
    PyObject *thread;
    PyObject *ns;
    PyObject *id;
    struct get_job *job;

    if (!PyArg_ParseTuple(args, "OOOOO:get", &codec, &principal, &thread, &ns, &id))
        return NULL;
    job = hd_py_job_create(sizeof(*job), self, codec);
    if (!job)
        return NULL;
    job->base.run = run_get;
    job->base.finish = finish_get;
    job->base.drop = drop_get;
    if (borrow_key(&job->base, &job->key, principal, thread, ns, id) == 0)
        return hd_py_job_submit(&job->base, is_async);
    hd_py_job_destroy(&job->base);
    return NULL;
}

static PyObject *get_sync(struct hd_py_store *self, PyObject *args)
{
    return get(self, args, false);
}

static PyObject *get_async(struct hd_py_store *self, PyObject *args)
{
    return get(self, args, true);
}

/* ---- delta history ---------------------------------------------------- */

struct history_job {
    struct hd_py_job base;
    struct heddle_key key;
    struct heddle_bytes *channels;
    size_t count;
    struct heddle_histories *histories;
};

static void drop_history(struct hd_py_job *base)
{
    struct history_job *job = (struct history_job *)base;

    heddle_histories_free(job->histories);
    hd_free(job->channels);
}

static int run_history(struct hd_py_job *base)
{
    struct history_job *job = (struct history_job *)base;

    return heddle_delta_history(base->store->handle, &job->key, job->channels, job->count,
                                &job->histories, &base->error);
}

/* In the order of the core, which is that of LangGraph's replay. */
static PyObject *history_writes(struct hd_py_codec *codec, const struct heddle_history *history)
{
    PyObject *list = PyList_New((Py_ssize_t)history->write_count);

    for (size_t i = 0; list && i < history->write_count; i++) {
        const struct heddle_write *write = &history->writes[i];
        PyObject *one = hd_py_writes_new(codec, write, 1);

        if (!one) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, Py_NewRef(PyList_GET_ITEM(one, 0)));
        Py_DECREF(one);
    }
    return list;
}

/* {"writes": [...]}, with "seed" if there is one. */
static PyObject *history_new(struct hd_py_codec *codec, const struct heddle_history *history)
{
    const struct hd_py_names *names = &codec->ext->names;
    PyObject *entry = PyDict_New();
    PyObject *writes = entry ? history_writes(codec, history) : NULL;
    PyObject *seed = NULL;

    if (!writes || PyDict_SetItem(entry, names->writes, writes) != 0)
        goto fail;
    if (history->seed) {
        seed = hd_py_load(codec, history->seed->type, history->seed->data);
        if (!seed || PyDict_SetItem(entry, names->seed, seed) != 0)
            goto fail;
    }
    Py_DECREF(writes);
    Py_XDECREF(seed);
    return entry;
fail:
    Py_XDECREF(entry);
    Py_XDECREF(writes);
    Py_XDECREF(seed);
    return NULL;
}

static PyObject *finish_history(struct hd_py_job *base)
{
    struct history_job *job = (struct history_job *)base;
    PyObject *dict = PyDict_New();

    for (size_t i = 0; dict && i < job->histories->channel_count; i++) {
        const struct heddle_history *history = &job->histories->channels[i];
        PyObject *channel = hd_py_str_of_bytes(history->channel);
        PyObject *entry = channel ? history_new(base->codec, history) : NULL;

        if (!entry || PyDict_SetItem(dict, channel, entry) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(channel);
        Py_XDECREF(entry);
    }
    return dict;
}

static PyObject *history(struct hd_py_store *self, PyObject *args, bool is_async)
{
    PyObject *codec;
    PyObject *principal;
    PyObject *thread;
    PyObject *ns;
    PyObject *id;
    PyObject *channels;
    struct history_job *job;

    if (!PyArg_ParseTuple(args, "OOOOOO:delta_history", &codec, &principal, &thread, &ns, &id,
                          &channels))
        return NULL;
    job = hd_py_job_create(sizeof(*job), self, codec);
    if (!job)
        return NULL;
    job->base.run = run_history;
    job->base.finish = finish_history;
    job->base.drop = drop_history;
    if (borrow_key(&job->base, &job->key, principal, thread, ns, id) == 0 &&
        hd_py_job_borrow_all(&job->base, channels, "a channel", &job->channels, &job->count) == 0)
        return hd_py_job_submit(&job->base, is_async);
    hd_py_job_destroy(&job->base);
    return NULL;
}

static PyObject *history_sync(struct hd_py_store *self, PyObject *args)
{
    return history(self, args, false);
}

static PyObject *history_async(struct hd_py_store *self, PyObject *args)
{
    return history(self, args, true);
}

/* ---- threads ---------------------------------------------------------- */

struct threads_job {
    struct hd_py_job base;
    struct heddle_bytes principal;
    struct heddle_bytes after;
    size_t limit;
    struct heddle_threads *threads;
};

static void drop_threads(struct hd_py_job *base)
{
    heddle_threads_free(((struct threads_job *)base)->threads);
}

static int run_threads(struct hd_py_job *base)
{
    struct threads_job *job = (struct threads_job *)base;

    return heddle_list_threads(base->store->handle, job->principal, job->after, job->limit,
                               &job->threads, &base->error);
}

/* [(thread_id, created_at_us, updated_at_us)] */
static PyObject *finish_threads(struct hd_py_job *base)
{
    const struct heddle_threads *threads = ((struct threads_job *)base)->threads;
    PyObject *list = PyList_New((Py_ssize_t)threads->count);

    for (size_t i = 0; list && i < threads->count; i++) {
        const struct heddle_thread_info *info = &threads->threads[i];
        PyObject *id = hd_py_str_of_bytes(info->thread.id);
        PyObject *row = id ? Py_BuildValue("(OLL)", id, (long long)info->created_at_us,
                                           (long long)info->updated_at_us)
                           : NULL;

        Py_XDECREF(id);
        if (row)
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *threads(struct hd_py_store *self, PyObject *args, bool is_async)
{
    PyObject *principal;
    PyObject *after;
    Py_ssize_t limit;
    struct threads_job *job;

    if (!PyArg_ParseTuple(args, "OOn:threads", &principal, &after, &limit))
        return NULL;
    if (limit < 0)
        return PyErr_Format(PyExc_ValueError, "the limit must not be negative");
    job = hd_py_job_create(sizeof(*job), self, NULL);
    if (!job)
        return NULL;
    job->base.run = run_threads;
    job->base.finish = finish_threads;
    job->base.drop = drop_threads;
    job->limit = (size_t)limit;
    if (hd_py_job_borrow(&job->base, principal, "principal", &job->principal) == 0 &&
        hd_py_job_borrow(&job->base, after, "after", &job->after) == 0)
        return hd_py_job_submit(&job->base, is_async);
    hd_py_job_destroy(&job->base);
    return NULL;
}

static PyObject *threads_sync(struct hd_py_store *self, PyObject *args)
{
    return threads(self, args, false);
}

static PyObject *threads_async(struct hd_py_store *self, PyObject *args)
{
    return threads(self, args, true);
}

/* ---- usage ------------------------------------------------------------ */

struct usage_job {
    struct hd_py_job base;
    struct heddle_thread thread;
    struct heddle_usage usage;
};

static int run_usage(struct hd_py_job *base)
{
    struct usage_job *job = (struct usage_job *)base;

    return heddle_thread_usage(base->store->handle, &job->thread, &job->usage, &base->error);
}

static PyObject *finish_usage(struct hd_py_job *base)
{
    const struct heddle_usage *usage = &((struct usage_job *)base)->usage;

    return Py_BuildValue("(LLLL)", (long long)usage->checkpoints, (long long)usage->writes,
                         (long long)usage->chunks, (long long)usage->bytes);
}

static PyObject *usage(struct hd_py_store *self, PyObject *args, bool is_async)
{
    PyObject *principal;
    PyObject *thread;
    struct usage_job *job;

    if (!PyArg_ParseTuple(args, "OO:usage", &principal, &thread))
        return NULL;
    job = hd_py_job_create(sizeof(*job), self, NULL);
    if (!job)
        return NULL;
    job->base.run = run_usage;
    job->base.finish = finish_usage;
    if (hd_py_job_borrow(&job->base, principal, "principal", &job->thread.principal) == 0 &&
        hd_py_job_borrow(&job->base, thread, "thread_id", &job->thread.id) == 0)
        return hd_py_job_submit(&job->base, is_async);
    hd_py_job_destroy(&job->base);
    return NULL;
}

static PyObject *usage_sync(struct hd_py_store *self, PyObject *args)
{
    return usage(self, args, false);
}

static PyObject *usage_async(struct hd_py_store *self, PyObject *args)
{
    return usage(self, args, true);
}

PyMethodDef hd_py_read_methods[] = {
    {"get", (PyCFunction)get_sync, METH_VARARGS,
     "get(codec, principal, thread_id, ns, checkpoint_id or None) -> row or None"},
    {"get_async", (PyCFunction)get_async, METH_VARARGS, "As get; returns a future."},
    {"delta_history", (PyCFunction)history_sync, METH_VARARGS,
     "delta_history(codec, principal, thread_id, ns, checkpoint_id or None, channels) -> dict"},
    {"delta_history_async", (PyCFunction)history_async, METH_VARARGS,
     "As delta_history; returns a future."},
    {"threads", (PyCFunction)threads_sync, METH_VARARGS,
     "threads(principal, after, limit) -> [(thread_id, created_at_us, updated_at_us)]"},
    {"threads_async", (PyCFunction)threads_async, METH_VARARGS, "As threads; returns a future."},
    {"usage", (PyCFunction)usage_sync, METH_VARARGS,
     "usage(principal, thread_id) -> (checkpoints, writes, chunks, bytes)"},
    {"usage_async", (PyCFunction)usage_async, METH_VARARGS, "As usage; returns a future."},
    {NULL, NULL, 0, NULL},
};
