/*
 * The Store object: opening, counting calls, closing.
 *
 * Closing waits until the last call has ended, on any thread; later calls are rejected. A store
 * that is dropped while open is closed by a separate thread, because the last reference may be
 * released on one of the store's threads, which closing waits for. At exit the package waits for
 * those threads (wait_closed).
 *
 * After a fork the threads of the store do not exist. Calls in the child are rejected, and the
 * child's copy is not closed.
 */
#include "store.h"

#include <structmember.h>

#include "base/alloc.h"

/* ---- forks ------------------------------------------------------------ */

static unsigned long forks;

/* Dropped stores that separate threads are closing. */
static pthread_mutex_t orphan_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t orphan_gone = PTHREAD_COND_INITIALIZER;
static size_t orphans;

/* In the child. Those threads do not exist: there is nothing to wait for. */
static void count_fork(void)
{
    forks++;
    pthread_mutex_init(&orphan_lock, NULL);
    pthread_cond_init(&orphan_gone, NULL);
    orphans = 0;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

/* ---- calls ------------------------------------------------------------ */

static int refuse(struct heddle_error *error, const char *why)
{
    error->code = HEDDLE_ECLOSED;
    snprintf(error->text, sizeof(error->text), "%s", why);
    return HEDDLE_ECLOSED;
}

int hd_py_store_enter(struct hd_py_store *store, struct heddle_error *error)
{
    bool is_open;

    if (store->forks != forks)
        return refuse(error, "the store was opened before a fork; open one in this process");
    pthread_mutex_lock(&store->lock);
    is_open = store->handle && !store->is_closing;
    if (is_open)
        store->calls++;
    pthread_mutex_unlock(&store->lock);
    return is_open ? 0 : refuse(error, "the store is closed");
}

void hd_py_store_leave(struct hd_py_store *store)
{
    pthread_mutex_lock(&store->lock);
    if (--store->calls <= 1)
        pthread_cond_broadcast(&store->idle);
    pthread_mutex_unlock(&store->lock);
}

void hd_py_store_add_reader(struct hd_py_store *store, struct hd_py_reader *reader)
{
    pthread_mutex_lock(&store->lock);
    reader->prev = NULL;
    reader->next = store->readers;
    if (reader->next)
        reader->next->prev = reader;
    store->readers = reader;
    pthread_mutex_unlock(&store->lock);
}

void hd_py_store_end_reader(struct hd_py_store *store, struct hd_py_reader *reader)
{
    struct heddle_error error;

    if (hd_py_store_enter(store, &error) != 0)
        return;
    pthread_mutex_lock(&store->lock);
    if (reader->prev)
        reader->prev->next = reader->next;
    else
        store->readers = reader->next;
    if (reader->next)
        reader->next->prev = reader->prev;
    pthread_mutex_unlock(&store->lock);
    heddle_list_close(reader->list);
    hd_free(reader);
    hd_py_store_leave(store);
}

/* ---- closing ---------------------------------------------------------- */

/*
 * Without the GIL, and not on a thread of the store. `own` is the number of calls that the closing
 * itself counts for. Only one of several closers closes; the others return when it is done.
 */
static void close_store(struct hd_py_store *store, size_t own)
{
    struct heddle *handle;
    struct hd_py_reader *reader;
    bool is_first;

    pthread_mutex_lock(&store->lock);
    is_first = !store->is_closing;
    store->is_closing = true;
    while (is_first ? store->calls > own : store->handle != NULL)
        pthread_cond_wait(&store->idle, &store->lock);
    handle = is_first ? store->handle : NULL;
    reader = is_first ? store->readers : NULL;
    if (is_first)
        store->readers = NULL;
    pthread_mutex_unlock(&store->lock);

    while (reader) {
        struct hd_py_reader *next = reader->next;

        heddle_list_close(reader->list);
        hd_free(reader);
        reader = next;
    }
    heddle_close(handle);
    if (!is_first)
        return;
    pthread_mutex_lock(&store->lock);
    store->handle = NULL;
    pthread_cond_broadcast(&store->idle);
    pthread_mutex_unlock(&store->lock);
}

static PyObject *store_close(struct hd_py_store *self, PyObject *unused)
{
    (void)unused;
    if (self->forks == forks) {
        Py_BEGIN_ALLOW_THREADS close_store(self, 0);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

static int run_close(struct hd_py_job *job)
{
    close_store(job->store, 1);
    return 0;
}

static PyObject *store_close_async(struct hd_py_store *self, PyObject *unused)
{
    struct hd_py_job *job;

    (void)unused;
    if (self->forks != forks)
        return hd_py_future_none(self->ext);
    job = hd_py_job_create(sizeof(*job), self, NULL);
    if (!job)
        return NULL;
    job->run = run_close;
    job->finish = hd_py_job_none;
    return hd_py_job_submit_thread(job);
}

static void *close_orphan(void *handle)
{
    heddle_close(handle);
    pthread_mutex_lock(&orphan_lock);
    orphans--;
    pthread_cond_broadcast(&orphan_gone);
    pthread_mutex_unlock(&orphan_lock);
    return NULL;
}

static void abandon(struct heddle *handle)
{
    pthread_t thread;

    pthread_mutex_lock(&orphan_lock);
    orphans++;
    pthread_mutex_unlock(&orphan_lock);
    if (pthread_create(&thread, NULL, close_orphan, handle) == 0)
        pthread_detach(thread);
    else
        close_orphan(handle);
}

PyObject *hd_py_wait_closed(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&orphan_lock);
    while (orphans > 0)
        pthread_cond_wait(&orphan_gone, &orphan_lock);
    pthread_mutex_unlock(&orphan_lock);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

/* No job is running: each owns a reference. No list is open: they own one, too. */
static void store_dealloc(struct hd_py_store *self)
{
    PyTypeObject *type = Py_TYPE(self);

    if (self->weakrefs)
        PyObject_ClearWeakRefs((PyObject *)self);
    if (self->handle && self->forks == forks)
        abandon(self->handle);
    if (self->has_lock) {
        pthread_mutex_destroy(&self->lock);
        pthread_cond_destroy(&self->idle);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- opening ---------------------------------------------------------- */

struct open_job {
    struct hd_py_job base;
    const char *url; /* borrowed from keep */
};

static struct hd_py_store *store_create(PyObject *module)
{
    struct hd_py_ext *ext = PyModule_GetState(module);
    struct hd_py_store *store;

    store = (struct hd_py_store *)ext->store_type->tp_alloc(ext->store_type, 0);
    if (!store)
        return NULL;
    store->ext = ext;
    store->forks = forks;
    pthread_mutex_init(&store->lock, NULL);
    pthread_cond_init(&store->idle, NULL);
    store->has_lock = true;
    return store;
}

static int run_open(struct hd_py_job *base)
{
    struct open_job *job = (struct open_job *)base;

    return heddle_open(&base->store->handle, job->url, &base->error);
}

static PyObject *finish_open(struct hd_py_job *job)
{
    return Py_NewRef((PyObject *)job->store);
}

/* NULL with ValueError for a URL that contains a NUL. */
static struct open_job *open_job_create(PyObject *module, PyObject *url)
{
    struct hd_py_store *store = store_create(module);
    struct open_job *job = store ? hd_py_job_create(sizeof(*job), store, NULL) : NULL;
    struct heddle_bytes bytes;

    Py_XDECREF(store);
    if (!job)
        return NULL;
    job->base.run = run_open;
    job->base.finish = finish_open;
    if (hd_py_job_borrow(&job->base, url, "the URL", &bytes) != 0)
        goto fail;
    /* Both str and bytes objects end with a NUL. */
    job->url = bytes.data;
    if (strlen(job->url) == bytes.len)
        return job;
    PyErr_SetString(PyExc_ValueError, "the URL contains a NUL character");
fail:
    hd_py_job_destroy(&job->base);
    return NULL;
}

PyObject *hd_py_open(PyObject *module, PyObject *url)
{
    struct open_job *job = open_job_create(module, url);
    PyObject *store = NULL;
    int err;

    if (!job)
        return NULL;
    Py_BEGIN_ALLOW_THREADS err = run_open(&job->base);
    Py_END_ALLOW_THREADS if (err == 0) store = finish_open(&job->base);
    else hd_py_error_raise(job->base.store->ext, &job->base.error);
    hd_py_job_destroy(&job->base);
    return store;
}

PyObject *hd_py_open_async(PyObject *module, PyObject *url)
{
    struct open_job *job = open_job_create(module, url);

    return job ? hd_py_job_submit_thread(&job->base) : NULL;
}

/* ---- type ------------------------------------------------------------- */

static PyObject *store_closed(struct hd_py_store *self, void *unused)
{
    bool is_closed;

    (void)unused;
    pthread_mutex_lock(&self->lock);
    is_closed = !self->handle || self->is_closing;
    pthread_mutex_unlock(&self->lock);
    return PyBool_FromLong(is_closed);
}

static PyMethodDef lifecycle_methods[] = {
    {"close", (PyCFunction)store_close, METH_NOARGS,
     "close()\n\nWaits for running calls; later ones are rejected."},
    {"close_async", (PyCFunction)store_close_async, METH_NOARGS, "close_async() -> Future"},
    {"list", (PyCFunction)hd_py_list, METH_VARARGS,
     "list(codec, principal, thread_id, ns, checkpoint_id, before, filter, limit, headers)\n\n"
     "A Cursor. None does not restrict the search; a negative limit means no limit."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"closed", (getter)store_closed, NULL, "True if it is closed or closing.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct hd_py_store, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static size_t append_methods(PyMethodDef *to, const PyMethodDef *from)
{
    size_t count = 0;

    while (from[count].ml_name) {
        to[count] = from[count];
        count++;
    }
    return count;
}

int hd_py_store_register(PyObject *module, struct hd_py_ext *ext)
{
    static PyMethodDef methods[64];
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, store_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, getters},
        {Py_tp_members, members},
        {Py_tp_doc, "An open store. Created by open() and open_async()."},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "heddle._core.Store",
        .basicsize = sizeof(struct hd_py_store),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    size_t count = append_methods(methods, lifecycle_methods);

    count += append_methods(methods + count, hd_py_write_methods);
    count += append_methods(methods + count, hd_py_read_methods);
    append_methods(methods + count, hd_py_admin_methods);
    pthread_once(&once, watch_forks);
    ext->store_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return ext->store_type ? PyModule_AddType(module, ext->store_type) : -1;
}
