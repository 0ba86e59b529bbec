/*
 * Listing: a Cursor reads checkpoints in pages, so that a caller who stops early has read little,
 * and one who reads all needs few thread switches.
 *
 * A page is copied out of the core (its tuples are valid only until the next read) and converted to
 * Python objects on the caller's thread, where the serializer must run.
 */
#include "store.h"

#include "base/alloc.h"

enum { FIRST_PAGE = 8, LARGEST_PAGE = 64, PAGE_BYTES = 4 << 20 };

struct hd_py_cursor {
    PyObject_HEAD struct hd_py_store *store; /* owned */
    struct hd_py_codec *codec;               /* owned */
    PyObject *keep;                          /* owns the data that the query borrows */
    struct heddle_bytes thread;              /* these four: referenced by query if given */
    struct heddle_bytes ns;
    struct heddle_bytes id;
    struct heddle_bytes before;
    struct hd_buf filter;
    struct heddle_query query;
    struct hd_py_reader *reader; /* NULL: not opened yet */
    size_t page_size;
    bool is_busy; /* a page is being read */
    bool is_at_end;
};

struct page_job {
    struct hd_py_job base;
    struct hd_py_cursor *cursor; /* owned */
    struct heddle_tuple *rows[LARGEST_PAGE];
    size_t count;
    bool is_at_end;
};

/* ---- reading a page --------------------------------------------------- */

static int open_reader(struct hd_py_job *base, struct hd_py_cursor *cursor)
{
    struct hd_py_reader *reader = hd_calloc(1, sizeof(*reader));
    int err;

    if (!reader)
        return HEDDLE_ENOMEM;
    err = heddle_list_open(base->store->handle, &cursor->query, &reader->list, &base->error);
    if (err != 0) {
        hd_free(reader);
        return err;
    }
    hd_py_store_add_reader(base->store, reader);
    cursor->reader = reader;
    return 0;
}

static int run_page(struct hd_py_job *base)
{
    struct page_job *job = (struct page_job *)base;
    struct hd_py_cursor *cursor = job->cursor;
    const struct heddle_tuple *tuple;
    size_t bytes = 0;
    int err = cursor->reader ? 0 : open_reader(base, cursor);

    while (err == 0 && job->count < cursor->page_size && bytes < PAGE_BYTES) {
        size_t size = 0;

        err = heddle_list_next(cursor->reader->list, &tuple, &base->error);
        if (err != 0)
            break;
        job->rows[job->count] = hd_py_tuple_copy(tuple, &size);
        if (!job->rows[job->count])
            err = HEDDLE_ENOMEM;
        else
            job->count++;
        bytes += size;
    }
    if (err != HEDDLE_ENOTFOUND)
        return err;
    base->error.code = 0;
    job->is_at_end = true;
    return 0;
}

static void end_reader(struct hd_py_cursor *cursor)
{
    struct hd_py_reader *reader = cursor->reader;

    cursor->reader = NULL;
    if (!reader)
        return;
    Py_BEGIN_ALLOW_THREADS hd_py_store_end_reader(cursor->store, reader);
    Py_END_ALLOW_THREADS
}

/* A list of rows; empty at the end. */
static PyObject *finish_page(struct hd_py_job *base)
{
    struct page_job *job = (struct page_job *)base;
    struct hd_py_cursor *cursor = job->cursor;
    bool is_header = cursor->query.flags & HEDDLE_LIST_HEADERS;
    PyObject *list;

    if (cursor->page_size < LARGEST_PAGE)
        cursor->page_size *= 2;
    if (job->is_at_end) {
        cursor->is_at_end = true;
        end_reader(cursor);
    }
    list = PyList_New((Py_ssize_t)job->count);
    for (size_t i = 0; list && i < job->count; i++) {
        PyObject *row = hd_py_row_new(base->codec, job->rows[i], is_header);

        if (row)
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        else
            Py_CLEAR(list);
    }
    return list;
}

static void drop_page(struct hd_py_job *base)
{
    struct page_job *job = (struct page_job *)base;

    for (size_t i = 0; i < job->count; i++)
        hd_free(job->rows[i]);
    job->cursor->is_busy = false;
    Py_DECREF(job->cursor);
}

static PyObject *page(struct hd_py_cursor *self, bool is_async)
{
    struct page_job *job;

    if (self->is_busy)
        return PyErr_Format(PyExc_RuntimeError, "a page of this list is already being read");
    job = hd_py_job_create(sizeof(*job), self->store, (PyObject *)self->codec);
    if (!job)
        return NULL;
    job->base.run = run_page;
    job->base.finish = finish_page;
    job->base.drop = drop_page;
    job->cursor = (struct hd_py_cursor *)Py_NewRef(self);
    self->is_busy = true;
    return hd_py_job_submit(&job->base, is_async);
}

static PyObject *page_sync(struct hd_py_cursor *self, PyObject *unused)
{
    (void)unused;
    return self->is_at_end ? PyList_New(0) : page(self, false);
}

/* At the end no read is needed: None instead of a future. */
static PyObject *page_async(struct hd_py_cursor *self, PyObject *unused)
{
    (void)unused;
    if (self->is_at_end)
        Py_RETURN_NONE;
    return page(self, true);
}

/* ---- the cursor ------------------------------------------------------- */

static int borrow(struct hd_py_cursor *self, PyObject *str, const char *what,
                  struct heddle_bytes *bytes, const struct heddle_bytes **given)
{
    if (str == Py_None)
        return 0;
    *given = bytes;
    return hd_py_bytes_of_str(str, what, self->keep, bytes);
}

static int set_filter(struct hd_py_cursor *self, PyObject *filter)
{
    if (filter == Py_None || PyObject_Size(filter) == 0)
        return 0;
    if (hd_py_enc_metadata(self->codec, filter, &self->filter) != 0)
        return -1;
    self->query.filter = (struct heddle_bytes){self->filter.ptr, self->filter.len};
    return 0;
}

static struct hd_py_cursor *cursor_create(struct hd_py_store *store, PyObject *codec)
{
    PyTypeObject *type = store->ext->cursor_type;
    struct hd_py_cursor *self;

    if (!Py_IS_TYPE(codec, store->ext->codec_type))
        return PyErr_Format(PyExc_TypeError, "expected a Codec"), NULL;
    self = (struct hd_py_cursor *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    hd_buf_init(&self->filter, PY_SSIZE_T_MAX);
    self->store = (struct hd_py_store *)Py_NewRef(store);
    self->codec = (struct hd_py_codec *)Py_NewRef(codec);
    self->page_size = FIRST_PAGE;
    self->keep = PyList_New(0);
    if (self->keep)
        return self;
    Py_DECREF(self);
    return NULL;
}

PyObject *hd_py_list(struct hd_py_store *store, PyObject *args)
{
    PyObject *codec;
    PyObject *principal;
    PyObject *thread;
    PyObject *ns;
    PyObject *id;
    PyObject *before;
    PyObject *filter;
    long long limit;
    int headers;
    struct hd_py_cursor *self;
    struct heddle_query *query;

    if (!PyArg_ParseTuple(args, "OOOOOOOLp:list", &codec, &principal, &thread, &ns, &id, &before,
                          &filter, &limit, &headers))
        return NULL;
    self = cursor_create(store, codec);
    if (!self)
        return NULL;
    query = &self->query;
    query->limit = limit;
    query->flags = headers ? HEDDLE_LIST_HEADERS : 0;
    if (hd_py_bytes_of_str(principal, "principal", self->keep, &query->principal) == 0 &&
        borrow(self, thread, "thread_id", &self->thread, &query->thread) == 0 &&
        borrow(self, ns, "checkpoint_ns", &self->ns, &query->ns) == 0 &&
        borrow(self, id, "checkpoint_id", &self->id, &query->id) == 0 &&
        borrow(self, before, "before", &self->before, &query->before) == 0 &&
        set_filter(self, filter) == 0)
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static PyObject *cursor_close(struct hd_py_cursor *self, PyObject *unused)
{
    (void)unused;
    if (self->is_busy)
        Py_RETURN_NONE; /* the running page frees it with the last reference */
    self->is_at_end = true;
    end_reader(self);
    Py_RETURN_NONE;
}

static void cursor_dealloc(struct hd_py_cursor *self)
{
    PyTypeObject *type = Py_TYPE(self);

    end_reader(self);
    hd_buf_fini(&self->filter);
    Py_XDECREF(self->keep);
    Py_XDECREF(self->codec);
    Py_XDECREF(self->store);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"page", (PyCFunction)page_sync, METH_NOARGS, "page() -> rows; empty at the end"},
    {"page_async", (PyCFunction)page_async, METH_NOARGS,
     "page_async() -> future of rows; None at the end"},
    {"close", (PyCFunction)cursor_close, METH_NOARGS, "close()"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, cursor_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "A list of checkpoints, read in pages. Created by Store.list()."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "heddle._core.Cursor",
    .basicsize = sizeof(struct hd_py_cursor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int hd_py_cursor_register(PyObject *module, struct hd_py_ext *ext)
{
    ext->cursor_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return ext->cursor_type ? PyModule_AddType(module, ext->cursor_type) : -1;
}
