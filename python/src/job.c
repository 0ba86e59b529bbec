/*
 * Running jobs, and returning results to an event loop.
 *
 * A store's thread must not wait for the GIL for each finished job: a group commit ends hundreds at
 * once. It puts the job into the mailbox of the loop, and only the first one in an empty mailbox
 * takes the GIL and calls call_soon_threadsafe; the loop then settles all jobs in the mailbox.
 *
 * A mailbox lives from the first job of a loop until the last one is settled, by two counts:
 * running jobs and pending wake-ups. Both change with the GIL held. A wake-up is a capsule that the
 * loop's handle owns; when the loop closes before it ran, the capsule's destructor drops the jobs.
 */
#include "store.h"

#include "base/alloc.h"

struct hd_py_mailbox {
    struct hd_py_ext *ext;
    PyObject *loop;      /* owned */
    PyObject *call_soon; /* loop.call_soon_threadsafe */
    struct hd_py_mailbox *next;
    size_t jobs;
    size_t wakeups;

    pthread_mutex_t lock; /* guards what follows */
    struct hd_py_job *first;
    struct hd_py_job **tail;
    bool is_awake; /* a wake-up is pending */
};

static const char wakeup_name[] = "heddle.wakeup";

/* ---- jobs ------------------------------------------------------------- */

void *hd_py_job_create(size_t size, struct hd_py_store *store, PyObject *codec)
{
    struct hd_py_job *job;

    if (codec && !Py_IS_TYPE(codec, store->ext->codec_type))
        return PyErr_Format(PyExc_TypeError, "expected a Codec, not %.100s",
                            Py_TYPE(codec)->tp_name);
    job = hd_calloc(1, size);
    if (!job)
        return PyErr_NoMemory();
    job->keep = PyList_New(0);
    if (!job->keep) {
        hd_free(job);
        return NULL;
    }
    job->store = (struct hd_py_store *)Py_NewRef(store);
    job->codec = (struct hd_py_codec *)Py_XNewRef(codec);
    return job;
}

void hd_py_job_destroy(struct hd_py_job *job)
{
    if (job->drop)
        job->drop(job);
    Py_XDECREF(job->keep);
    Py_XDECREF(job->codec);
    Py_XDECREF(job->future);
    Py_XDECREF(job->store);
    hd_free(job);
}

int hd_py_job_borrow(struct hd_py_job *job, PyObject *str, const char *what,
                     struct heddle_bytes *out)
{
    return hd_py_bytes_of_str(str, what, job->keep, out);
}

int hd_py_job_borrow_optional(struct hd_py_job *job, PyObject *str, const char *what,
                              struct heddle_bytes *out, bool *is_given)
{
    if (is_given)
        *is_given = str != Py_None;
    return str == Py_None ? 0 : hd_py_job_borrow(job, str, what, out);
}

int hd_py_job_borrow_all(struct hd_py_job *job, PyObject *strings, const char *what,
                         struct heddle_bytes **out, size_t *count)
{
    PyObject *list = PySequence_List(strings);
    size_t size;
    int rc;

    if (!list)
        return -1;
    rc = PyList_Append(job->keep, list);
    Py_DECREF(list);
    if (rc != 0)
        return -1;
    size = (size_t)PyList_GET_SIZE(list);
    *out = hd_calloc(size ? size : 1, sizeof(**out));
    if (!*out) {
        PyErr_NoMemory();
        return -1;
    }
    *count = size;
    for (size_t i = 0; i < size; i++) {
        if (hd_py_job_borrow(job, PyList_GET_ITEM(list, (Py_ssize_t)i), what, &(*out)[i]) != 0)
            return -1;
    }
    return 0;
}

PyObject *hd_py_job_none(struct hd_py_job *job)
{
    (void)job;
    Py_RETURN_NONE;
}

static void set_error(struct hd_py_job *job, int code, const struct heddle_error *error)
{
    job->code = code;
    if (error && error != &job->error)
        job->error = *error;
    if (code != 0 && job->error.code == 0) {
        job->error.code = code;
        job->error.text[0] = '\0';
    }
}

/* On the caller's thread. Takes the job. */
static PyObject *call(struct hd_py_job *job)
{
    PyObject *result = NULL;
    int err;

    Py_BEGIN_ALLOW_THREADS err = hd_py_store_enter(job->store, &job->error);
    if (err == 0) {
        err = job->run(job);
        hd_py_store_leave(job->store);
    }
    Py_END_ALLOW_THREADS set_error(job, err, NULL);
    if (err == 0)
        result = job->finish(job);
    else
        hd_py_error_raise(job->store->ext, &job->error);
    hd_py_job_destroy(job);
    return result;
}

/* ---- mailboxes -------------------------------------------------------- */

static struct hd_py_mailbox *mailbox_create(struct hd_py_ext *ext, PyObject *loop)
{
    struct hd_py_mailbox *box = hd_calloc(1, sizeof(*box));

    if (!box) {
        PyErr_NoMemory();
        return NULL;
    }
    box->call_soon = PyObject_GetAttr(loop, ext->names.call_soon_threadsafe);
    if (!box->call_soon) {
        hd_free(box);
        return NULL;
    }
    pthread_mutex_init(&box->lock, NULL);
    box->tail = &box->first;
    box->ext = ext;
    box->loop = Py_NewRef(loop);
    box->next = ext->mailboxes;
    ext->mailboxes = box;
    return box;
}

static struct hd_py_mailbox *mailbox_for(struct hd_py_ext *ext, PyObject *loop)
{
    for (struct hd_py_mailbox *box = ext->mailboxes; box; box = box->next) {
        if (box->loop == loop)
            return box;
    }
    return mailbox_create(ext, loop);
}

static void mailbox_release(struct hd_py_mailbox *box)
{
    struct hd_py_mailbox **at = &box->ext->mailboxes;

    if (box->jobs > 0 || box->wakeups > 0)
        return;
    while (*at != box)
        at = &(*at)->next;
    *at = box->next;
    Py_DECREF(box->call_soon);
    Py_DECREF(box->loop);
    pthread_mutex_destroy(&box->lock);
    hd_free(box);
}

static struct hd_py_job *mailbox_take(struct hd_py_mailbox *box)
{
    struct hd_py_job *jobs;

    pthread_mutex_lock(&box->lock);
    jobs = box->first;
    box->first = NULL;
    box->tail = &box->first;
    box->is_awake = false;
    pthread_mutex_unlock(&box->lock);
    return jobs;
}

/* Sets the result of the future. Errors here go only to the loop's log. */
static void settle(struct hd_py_job *job)
{
    const struct hd_py_names *names = &job->store->ext->names;
    PyObject *done = PyObject_CallMethodNoArgs(job->future, names->done);
    PyObject *result = NULL;
    PyObject *answer = NULL;

    if (done && PyObject_Not(done)) {
        if (job->code == 0)
            result = job->finish(job);
        else
            hd_py_error_raise(job->store->ext, &job->error);
        if (result) {
            answer = PyObject_CallMethodOneArg(job->future, names->set_result, result);
        } else {
            PyObject *type;
            PyObject *value;
            PyObject *trace;

            PyErr_Fetch(&type, &value, &trace);
            PyErr_NormalizeException(&type, &value, &trace);
            if (trace)
                PyException_SetTraceback(value, trace);
            answer = PyObject_CallMethodOneArg(job->future, names->set_exception, value);
            Py_XDECREF(type);
            Py_XDECREF(value);
            Py_XDECREF(trace);
        }
    }
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(job->future);
    Py_XDECREF(done);
    Py_XDECREF(result);
    Py_XDECREF(answer);
}

/* Settles or drops all of them. The caller calls mailbox_release(). */
static void end_jobs(struct hd_py_mailbox *box, struct hd_py_job *jobs, bool is_settled)
{
    while (jobs) {
        struct hd_py_job *job = jobs;

        jobs = job->next;
        if (is_settled)
            settle(job);
        hd_py_job_destroy(job);
        box->jobs--;
    }
}

/* The loop's callback; `capsule` is the wake-up. */
static PyObject *deliver(PyObject *capsule, PyObject *unused)
{
    struct hd_py_mailbox *box = PyCapsule_GetPointer(capsule, wakeup_name);

    (void)unused;
    if (!box)
        return NULL;
    /* Marks it as done for its destructor. */
    if (PyCapsule_SetContext(capsule, box) != 0)
        return NULL;
    end_jobs(box, mailbox_take(box), true);
    Py_RETURN_NONE;
}

static PyMethodDef deliver_method = {"deliver", deliver, METH_NOARGS, NULL};

static void wakeup_end(PyObject *capsule)
{
    struct hd_py_mailbox *box = PyCapsule_GetPointer(capsule, wakeup_name);

    if (!PyCapsule_GetContext(capsule))
        end_jobs(box, mailbox_take(box), false);
    box->wakeups--;
    mailbox_release(box);
}

/* Schedules a read of the mailbox on the loop. When the loop is closed, no caller is waiting. */
static void wake(struct hd_py_mailbox *box)
{
    PyObject *capsule = PyCapsule_New(box, wakeup_name, wakeup_end);
    PyObject *callback;
    PyObject *handle = NULL;

    if (!capsule) {
        /* The next finished job retries. */
        PyErr_WriteUnraisable(NULL);
        pthread_mutex_lock(&box->lock);
        box->is_awake = false;
        pthread_mutex_unlock(&box->lock);
        return;
    }
    box->wakeups++;
    callback = PyCFunction_New(&deliver_method, capsule);
    if (callback)
        handle = PyObject_CallOneArg(box->call_soon, callback);
    if (!handle && PyErr_ExceptionMatches(PyExc_RuntimeError))
        PyErr_Clear();
    else if (!handle)
        PyErr_WriteUnraisable(box->loop);
    Py_XDECREF(handle);
    Py_XDECREF(callback);
    /* Without a handle this runs the capsule's destructor, which drops the jobs. */
    Py_DECREF(capsule);
}

void hd_py_job_done(void *arg, int code, const struct heddle_error *error)
{
    struct hd_py_job *job = arg;
    struct hd_py_mailbox *box = job->mailbox;
    bool was_awake;

    set_error(job, code, error);
    hd_py_store_leave(job->store);
    pthread_mutex_lock(&box->lock);
    job->next = NULL;
    *box->tail = job;
    box->tail = &job->next;
    was_awake = box->is_awake;
    box->is_awake = true;
    pthread_mutex_unlock(&box->lock);
    /* Until the pending wake-up, nothing settles this job: the mailbox stays alive. */
    if (!was_awake) {
        PyGILState_STATE gil = PyGILState_Ensure();

        wake(box);
        PyGILState_Release(gil);
    }
}

static void work(void *arg)
{
    struct hd_py_job *job = arg;
    int err = job->run(job);

    hd_py_job_done(job, err, &job->error);
}

/* ---- starting --------------------------------------------------------- */

/* Gives the job a future of the running loop. */
static int attach(struct hd_py_job *job)
{
    struct hd_py_ext *ext = job->store->ext;
    PyObject *loop = PyObject_CallNoArgs(ext->get_running_loop);

    if (!loop)
        return -1;
    job->future = PyObject_CallMethodNoArgs(loop, ext->names.create_future);
    job->mailbox = job->future ? mailbox_for(ext, loop) : NULL;
    Py_DECREF(loop);
    if (!job->mailbox)
        return -1;
    job->mailbox->jobs++;
    return 0;
}

static void detach(struct hd_py_job *job)
{
    job->mailbox->jobs--;
    mailbox_release(job->mailbox);
}

/* On a thread of the store. Takes the job. */
static PyObject *start(struct hd_py_job *job)
{
    PyObject *future;
    int err;

    if (attach(job) != 0) {
        hd_py_job_destroy(job);
        return NULL;
    }
    future = Py_NewRef(job->future);
    Py_BEGIN_ALLOW_THREADS err = hd_py_store_enter(job->store, &job->error);
    if (err == 0) {
        err = job->start ? job->start(job) : heddle_defer(job->store->handle, work, job);
        if (err != 0)
            hd_py_store_leave(job->store);
    }
    Py_END_ALLOW_THREADS if (err == 0) return future;
    set_error(job, err, NULL);
    hd_py_error_raise(job->store->ext, &job->error);
    detach(job);
    hd_py_job_destroy(job);
    Py_DECREF(future);
    return NULL;
}

PyObject *hd_py_job_submit(struct hd_py_job *job, bool is_async)
{
    return is_async ? start(job) : call(job);
}

static void *thread_main(void *arg)
{
    work(arg);
    return NULL;
}

PyObject *hd_py_job_submit_thread(struct hd_py_job *job)
{
    PyObject *future;
    pthread_t thread;
    int err;

    if (attach(job) != 0) {
        hd_py_job_destroy(job);
        return NULL;
    }
    future = Py_NewRef(job->future);
    /* The end of the job counts as the end of a call; see hd_py_job_done(). */
    pthread_mutex_lock(&job->store->lock);
    job->store->calls++;
    pthread_mutex_unlock(&job->store->lock);
    err = pthread_create(&thread, NULL, thread_main, job);
    if (err == 0) {
        pthread_detach(thread);
        return future;
    }
    hd_py_store_leave(job->store);
    set_error(job, HEDDLE_ENOMEM, NULL);
    hd_py_error_raise(job->store->ext, &job->error);
    detach(job);
    hd_py_job_destroy(job);
    Py_DECREF(future);
    return NULL;
}

PyObject *hd_py_future_none(struct hd_py_ext *ext)
{
    PyObject *loop = PyObject_CallNoArgs(ext->get_running_loop);
    PyObject *future = loop ? PyObject_CallMethodNoArgs(loop, ext->names.create_future) : NULL;
    PyObject *answer =
        future ? PyObject_CallMethodOneArg(future, ext->names.set_result, Py_None) : NULL;

    if (!answer)
        Py_CLEAR(future);
    Py_XDECREF(answer);
    Py_XDECREF(loop);
    return future;
}
