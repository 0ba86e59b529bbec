/*
 * put and put_writes. They serialize everything on the caller's thread, before the call returns,
 * into one buffer: the store does not see later changes to the objects.
 */
#include "store.h"

#include "base/alloc.h"

/* A range of the buffer, by offset while the buffer may still move. */
struct piece {
    size_t start;
    size_t len;
};

struct write_job {
    struct hd_py_job base;
    struct hd_buf buf;
    struct heddle_value *values;
    struct piece *pieces; /* of the values in the buffer */
    size_t count;
    union {
        struct heddle_checkpoint checkpoint;
        struct heddle_writes writes;
    } in;
};

static void drop(struct hd_py_job *base)
{
    struct write_job *job = (struct write_job *)base;

    hd_buf_fini(&job->buf);
    hd_free(job->values);
    hd_free(job->pieces);
}

static struct write_job *job_create(struct hd_py_store *store, PyObject *codec)
{
    struct write_job *job = hd_py_job_create(sizeof(*job), store, codec);

    if (!job)
        return NULL;
    hd_buf_init(&job->buf, PY_SSIZE_T_MAX);
    job->base.drop = drop;
    job->base.finish = hd_py_job_none;
    return job;
}

static int reserve_values(struct write_job *job, size_t count)
{
    job->values = hd_calloc(count ? count : 1, sizeof(*job->values));
    job->pieces = hd_calloc(count ? count : 1, sizeof(*job->pieces));
    if (job->values && job->pieces)
        return 0;
    PyErr_NoMemory();
    return -1;
}

/* Owns the output of the wrapped serializer. */
static int keep_dumped(struct write_job *job, struct hd_py_dumped *dumped,
                       struct heddle_value *value)
{
    int rc = hd_py_job_borrow(&job->base, dumped->type, "the serializer's type", &value->type);

    if (rc == 0)
        rc = PyList_Append(job->base.keep, dumped->bytes);
    value->data.data = PyBytes_AS_STRING(dumped->bytes);
    value->data.len = (size_t)PyBytes_GET_SIZE(dumped->bytes);
    Py_DECREF(dumped->type);
    Py_DECREF(dumped->bytes);
    return rc;
}

static int add_value(struct write_job *job, PyObject *channel, PyObject *obj)
{
    struct heddle_value *value = &job->values[job->count];
    struct hd_py_dumped dumped;

    if (hd_py_job_borrow(&job->base, channel, "a channel", &value->channel) != 0 ||
        hd_py_dump(job->base.codec, obj, &job->buf, &dumped) != 0)
        return -1;
    if (dumped.type) {
        if (keep_dumped(job, &dumped, value) != 0)
            return -1;
    } else {
        value->type = (struct heddle_bytes){HD_PY_TAG, sizeof(HD_PY_TAG) - 1};
        job->pieces[job->count] = (struct piece){dumped.start, job->buf.len - dumped.start};
    }
    job->count++;
    return 0;
}

static struct heddle_bytes bytes_of(const struct write_job *job, struct piece piece)
{
    return (struct heddle_bytes){job->buf.ptr + piece.start, piece.len};
}

/* Runs once the buffer has its final address. */
static void place_values(struct write_job *job)
{
    for (size_t i = 0; i < job->count; i++) {
        if (!job->values[i].data.data)
            job->values[i].data = bytes_of(job, job->pieces[i]);
    }
}

static struct piece piece_since(const struct write_job *job, size_t start)
{
    return (struct piece){start, job->buf.len - start};
}

/* ---- put -------------------------------------------------------------- */

static int run_put(struct hd_py_job *base)
{
    struct write_job *job = (struct write_job *)base;

    return heddle_put(base->store->handle, &job->in.checkpoint, &base->error);
}

static int start_put(struct hd_py_job *base)
{
    struct write_job *job = (struct write_job *)base;

    return heddle_put_async(base->store->handle, &job->in.checkpoint, hd_py_job_done, base);
}

/* The new channels that have a value. */
static int add_new_values(struct write_job *job, PyObject *checkpoint, PyObject *new_versions)
{
    PyObject *values =
        PyDict_GetItemWithError(checkpoint, job->base.store->ext->names.channel_values);
    PyObject *channel;
    Py_ssize_t pos = 0;

    if (!values || !PyDict_Check(values)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "the checkpoint has no channel_values");
        return -1;
    }
    if (reserve_values(job, (size_t)PyDict_GET_SIZE(new_versions)) != 0)
        return -1;
    while (PyDict_Next(new_versions, &pos, &channel, NULL)) {
        PyObject *value = PyDict_GetItemWithError(values, channel);
        int rc;

        if (!value && PyErr_Occurred())
            return -1;
        if (!value)
            continue;
        /* A serializer runs Python code: own its arguments, and never write past the array. */
        Py_INCREF(value);
        rc = job->count < (size_t)PyDict_GET_SIZE(new_versions) ? add_value(job, channel, value)
                                                                : -1;
        Py_DECREF(value);
        if (rc != 0)
            return -1;
    }
    return 0;
}

static int fill_put(struct write_job *job, PyObject *checkpoint, PyObject *metadata,
                    PyObject *new_versions)
{
    struct heddle_checkpoint *in = &job->in.checkpoint;
    struct piece body;
    struct piece extra;
    struct piece versions;
    size_t start = 0;

    if (hd_py_enc_checkpoint(job->base.codec, checkpoint, &job->buf) != 0)
        return -1;
    body = piece_since(job, start);
    start = job->buf.len;
    if (hd_py_enc_metadata(job->base.codec, metadata, &job->buf) != 0)
        return -1;
    extra = piece_since(job, start);
    start = job->buf.len;
    if (hd_py_enc_versions(&job->buf, new_versions, "new_versions") != 0)
        return -1;
    versions = piece_since(job, start);
    if (add_new_values(job, checkpoint, new_versions) != 0)
        return -1;
    place_values(job);
    in->checkpoint = bytes_of(job, body);
    in->metadata = bytes_of(job, extra);
    in->new_versions = bytes_of(job, versions);
    in->values = job->values;
    in->value_count = job->count;
    return 0;
}

static int borrow_id(struct write_job *job, PyObject *checkpoint, struct heddle_bytes *out)
{
    PyObject *id = PyDict_GetItemWithError(checkpoint, job->base.store->ext->names.id);

    if (!id) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_KeyError, "id");
        return -1;
    }
    return hd_py_job_borrow(&job->base, id, "the checkpoint's id", out);
}

static PyObject *put(struct hd_py_store *self, PyObject *args, bool is_async)
{
    PyObject *codec;
    PyObject *principal;
    PyObject *thread;
    PyObject *ns;
    PyObject *parent;
    PyObject *checkpoint;
    PyObject *metadata;
    PyObject *versions;
    struct write_job *job;
    struct heddle_checkpoint *in;

    if (!PyArg_ParseTuple(args, "OOOOOO!O!O!:put", &codec, &principal, &thread, &ns, &parent,
                          &PyDict_Type, &checkpoint, &PyDict_Type, &metadata, &PyDict_Type,
                          &versions))
        return NULL;
    job = job_create(self, codec);
    if (!job)
        return NULL;
    job->base.run = run_put;
    job->base.start = start_put;
    in = &job->in.checkpoint;
    if (hd_py_job_borrow(&job->base, principal, "principal", &in->thread.principal) == 0 &&
        hd_py_job_borrow(&job->base, thread, "thread_id", &in->thread.id) == 0 &&
        hd_py_job_borrow(&job->base, ns, "checkpoint_ns", &in->ns) == 0 &&
        hd_py_job_borrow_optional(&job->base, parent, "checkpoint_id", &in->parent, NULL) == 0 &&
        borrow_id(job, checkpoint, &in->id) == 0 &&
        fill_put(job, checkpoint, metadata, versions) == 0)
        return hd_py_job_submit(&job->base, is_async);
    hd_py_job_destroy(&job->base);
    return NULL;
}

static PyObject *put_sync(struct hd_py_store *self, PyObject *args)
{
    return put(self, args, false);
}

static PyObject *put_async(struct hd_py_store *self, PyObject *args)
{
    return put(self, args, true);
}

/* ---- put_writes ------------------------------------------------------- */

static int run_put_writes(struct hd_py_job *base)
{
    struct write_job *job = (struct write_job *)base;

    return heddle_put_writes(base->store->handle, &job->in.writes, &base->error);
}

static int start_put_writes(struct hd_py_job *base)
{
    struct write_job *job = (struct write_job *)base;

    return heddle_put_writes_async(base->store->handle, &job->in.writes, hd_py_job_done, base);
}

/* One element of the sequence: (channel, value). */
static int add_write(struct write_job *job, PyObject *write)
{
    PyObject *pair = PySequence_Tuple(write);
    int rc = -1;

    if (!pair)
        return -1;
    if (PyTuple_GET_SIZE(pair) != 2)
        PyErr_SetString(PyExc_ValueError, "a write is a pair of channel and value");
    else if (PyList_Append(job->base.keep, pair) == 0)
        rc = add_value(job, PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1));
    Py_DECREF(pair);
    return rc;
}

static int fill_writes(struct write_job *job, PyObject *writes)
{
    PyObject *list = PySequence_List(writes);
    int rc;

    if (!list)
        return -1;
    rc = reserve_values(job, (size_t)PyList_GET_SIZE(list));
    for (Py_ssize_t i = 0; rc == 0 && i < PyList_GET_SIZE(list); i++)
        rc = add_write(job, PyList_GET_ITEM(list, i));
    Py_DECREF(list);
    if (rc != 0)
        return -1;
    place_values(job);
    job->in.writes.values = job->values;
    job->in.writes.value_count = job->count;
    return 0;
}

static PyObject *put_writes(struct hd_py_store *self, PyObject *args, bool is_async)
{
    PyObject *codec;
    PyObject *principal;
    PyObject *thread;
    PyObject *ns;
    PyObject *id;
    PyObject *writes;
    PyObject *task_id;
    PyObject *task_path;
    struct write_job *job;
    struct heddle_writes *in;

    if (!PyArg_ParseTuple(args, "OOOOOOOO:put_writes", &codec, &principal, &thread, &ns, &id,
                          &writes, &task_id, &task_path))
        return NULL;
    job = job_create(self, codec);
    if (!job)
        return NULL;
    job->base.run = run_put_writes;
    job->base.start = start_put_writes;
    in = &job->in.writes;
    if (hd_py_job_borrow(&job->base, principal, "principal", &in->thread.principal) == 0 &&
        hd_py_job_borrow(&job->base, thread, "thread_id", &in->thread.id) == 0 &&
        hd_py_job_borrow(&job->base, ns, "checkpoint_ns", &in->ns) == 0 &&
        hd_py_job_borrow(&job->base, id, "checkpoint_id", &in->checkpoint_id) == 0 &&
        hd_py_job_borrow(&job->base, task_id, "task_id", &in->task_id) == 0 &&
        hd_py_job_borrow(&job->base, task_path, "task_path", &in->task_path) == 0 &&
        fill_writes(job, writes) == 0)
        return hd_py_job_submit(&job->base, is_async);
    hd_py_job_destroy(&job->base);
    return NULL;
}

static PyObject *put_writes_sync(struct hd_py_store *self, PyObject *args)
{
    return put_writes(self, args, false);
}

static PyObject *put_writes_async(struct hd_py_store *self, PyObject *args)
{
    return put_writes(self, args, true);
}

PyMethodDef hd_py_write_methods[] = {
    {"put", (PyCFunction)put_sync, METH_VARARGS,
     "put(codec, principal, thread_id, ns, parent, checkpoint, metadata, new_versions)"},
    {"put_async", (PyCFunction)put_async, METH_VARARGS, "As put; returns a future."},
    {"put_writes", (PyCFunction)put_writes_sync, METH_VARARGS,
     "put_writes(codec, principal, thread_id, ns, checkpoint_id, writes, task_id, task_path)"},
    {"put_writes_async", (PyCFunction)put_writes_async, METH_VARARGS,
     "As put_writes; returns a future."},
    {NULL, NULL, 0, NULL},
};
