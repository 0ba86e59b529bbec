/* Results of the core as Python objects. */
#include "store.h"

#include "base/alloc.h"

static struct hd_slice slice_of(struct heddle_bytes bytes)
{
    return hd_slice(bytes.data, bytes.len);
}

/* LangGraph replays writes in the order in which a superstep applies its tasks. */
static int compare_writes(const void *a, const void *b)
{
    const struct heddle_write *left = *(const struct heddle_write *const *)a;
    const struct heddle_write *right = *(const struct heddle_write *const *)b;
    int order = hd_slice_cmp(slice_of(left->task_path), slice_of(right->task_path));

    if (order == 0)
        order = hd_slice_cmp(slice_of(left->task_id), slice_of(right->task_id));
    if (order == 0)
        order = (left->idx > right->idx) - (left->idx < right->idx);
    return order;
}

static const struct heddle_write **sort_writes(const struct heddle_write *writes, size_t count)
{
    const struct heddle_write **sorted = hd_malloc((count ? count : 1) * sizeof(const void *));

    if (!sorted) {
        PyErr_NoMemory();
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        sorted[i] = &writes[i];
    qsort(sorted, count, sizeof(const void *), compare_writes);
    return sorted;
}

static PyObject *write_new(struct hd_py_codec *codec, const struct heddle_write *write)
{
    PyObject *task = hd_py_str_of_bytes(write->task_id);
    PyObject *channel = task ? hd_py_str_of_bytes(write->value.channel) : NULL;
    PyObject *value = channel ? hd_py_load(codec, write->value.type, write->value.data) : NULL;
    PyObject *tuple = value ? PyTuple_Pack(3, task, channel, value) : NULL;

    Py_XDECREF(task);
    Py_XDECREF(channel);
    Py_XDECREF(value);
    return tuple;
}

PyObject *hd_py_writes_new(struct hd_py_codec *codec, const struct heddle_write *writes,
                           size_t count)
{
    const struct heddle_write **sorted = sort_writes(writes, count);
    PyObject *list = sorted ? PyList_New((Py_ssize_t)count) : NULL;

    for (size_t i = 0; list && i < count; i++) {
        PyObject *write = write_new(codec, sorted[i]);

        if (write)
            PyList_SET_ITEM(list, (Py_ssize_t)i, write);
        else
            Py_CLEAR(list);
    }
    hd_free(sorted);
    return list;
}

/* Only the values, in the same order. */
static PyObject *sends_new(struct hd_py_codec *codec, const struct heddle_write *sends,
                           size_t count)
{
    const struct heddle_write **sorted = sort_writes(sends, count);
    PyObject *list = sorted ? PyList_New((Py_ssize_t)count) : NULL;

    for (size_t i = 0; list && i < count; i++) {
        PyObject *send = hd_py_load(codec, sorted[i]->value.type, sorted[i]->value.data);

        if (send)
            PyList_SET_ITEM(list, (Py_ssize_t)i, send);
        else
            Py_CLEAR(list);
    }
    hd_free(sorted);
    return list;
}

static PyObject *values_new(struct hd_py_codec *codec, const struct heddle_value *values,
                            size_t count)
{
    PyObject *dict = PyDict_New();

    for (size_t i = 0; dict && i < count; i++) {
        PyObject *channel = hd_py_str_of_bytes(values[i].channel);
        PyObject *value = channel ? hd_py_load(codec, values[i].type, values[i].data) : NULL;

        if (!value || PyDict_SetItem(dict, channel, value) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(channel);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *checkpoint_new(struct hd_py_codec *codec, const struct heddle_tuple *tuple,
                                bool is_header)
{
    PyObject *checkpoint = hd_py_dec_checkpoint(codec, tuple->checkpoint);
    PyObject *values;
    int rc;

    if (!checkpoint || is_header)
        return checkpoint;
    values = values_new(codec, tuple->values, tuple->value_count);
    rc = values ? PyDict_SetItem(checkpoint, codec->ext->names.channel_values, values) : -1;
    Py_XDECREF(values);
    if (rc == 0)
        return checkpoint;
    Py_DECREF(checkpoint);
    return NULL;
}

PyObject *hd_py_row_new(struct hd_py_codec *codec, const struct heddle_tuple *tuple, bool is_header)
{
    PyObject *thread = hd_py_str_of_bytes(tuple->thread.id);
    PyObject *ns = thread ? hd_py_str_of_bytes(tuple->ns) : NULL;
    PyObject *id = ns ? hd_py_str_of_bytes(tuple->id) : NULL;
    PyObject *parent = !id                 ? NULL
                       : tuple->parent.len ? hd_py_str_of_bytes(tuple->parent)
                                           : Py_NewRef(Py_None);
    PyObject *checkpoint = parent ? checkpoint_new(codec, tuple, is_header) : NULL;
    PyObject *metadata = checkpoint ? hd_py_dec_metadata(codec, tuple->metadata) : NULL;
    PyObject *writes = metadata ? hd_py_writes_new(codec, tuple->writes, tuple->write_count) : NULL;
    PyObject *sends = writes ? sends_new(codec, tuple->sends, tuple->send_count) : NULL;
    PyObject *row = NULL;

    if (sends)
        row = PyTuple_Pack(8, thread, ns, id, parent, checkpoint, metadata, writes, sends);
    Py_XDECREF(thread);
    Py_XDECREF(ns);
    Py_XDECREF(id);
    Py_XDECREF(parent);
    Py_XDECREF(checkpoint);
    Py_XDECREF(metadata);
    Py_XDECREF(writes);
    Py_XDECREF(sends);
    return row;
}

/* ---- copies ----------------------------------------------------------- */

/* Measures when `to` is NULL, else copies: the same walk for both. */
struct copier {
    char *to;
    size_t used;
};

static void copy_bytes(struct copier *c, struct heddle_bytes *bytes)
{
    if (c->to && bytes->len) {
        memcpy(c->to + c->used, bytes->data, bytes->len);
        bytes->data = c->to + c->used;
    }
    c->used += bytes->len;
}

static void copy_value(struct copier *c, struct heddle_value *value)
{
    copy_bytes(c, &value->channel);
    copy_bytes(c, &value->type);
    copy_bytes(c, &value->data);
}

static void copy_write(struct copier *c, struct heddle_write *write)
{
    copy_bytes(c, &write->task_id);
    copy_bytes(c, &write->task_path);
    copy_value(c, &write->value);
}

/* The array itself, at the front where it is aligned. */
static void *copy_array(struct copier *c, const void *array, size_t count, size_t size)
{
    void *at = c->to ? c->to + c->used : NULL;

    if (at && count)
        memcpy(at, array, count * size);
    c->used += count * size;
    return at;
}

static void copy_contents(struct copier *c, struct heddle_tuple *tuple,
                          const struct heddle_tuple *from)
{
    struct heddle_value *values = copy_array(c, from->values, from->value_count, sizeof(*values));
    struct heddle_write *writes = copy_array(c, from->writes, from->write_count, sizeof(*writes));
    struct heddle_write *sends = copy_array(c, from->sends, from->send_count, sizeof(*sends));
    struct heddle_bytes *const fields[] = {
        &tuple->thread.principal, &tuple->thread.id,  &tuple->ns,      &tuple->id,
        &tuple->parent,           &tuple->checkpoint, &tuple->metadata};

    for (size_t i = 0; i < HD_COUNT(fields); i++)
        copy_bytes(c, fields[i]);
    for (size_t i = 0; i < from->value_count; i++) {
        struct heddle_value value = from->values[i];

        copy_value(c, values ? &values[i] : &value);
    }
    for (size_t i = 0; i < from->write_count; i++) {
        struct heddle_write write = from->writes[i];

        copy_write(c, writes ? &writes[i] : &write);
    }
    for (size_t i = 0; i < from->send_count; i++) {
        struct heddle_write send = from->sends[i];

        copy_write(c, sends ? &sends[i] : &send);
    }
    tuple->values = values;
    tuple->writes = writes;
    tuple->sends = sends;
}

struct heddle_tuple *hd_py_tuple_copy(const struct heddle_tuple *tuple, size_t *size)
{
    struct heddle_tuple scratch = *tuple;
    struct copier c = {NULL, 0};
    struct heddle_tuple *copy;

    copy_contents(&c, &scratch, tuple);
    *size = sizeof(*copy) + c.used;
    copy = hd_malloc(*size);
    if (!copy)
        return NULL;
    *copy = *tuple;
    c = (struct copier){(char *)(copy + 1), 0};
    copy_contents(&c, copy, tuple);
    return copy;
}
