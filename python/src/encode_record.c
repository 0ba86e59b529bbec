/*
 * Writes the records of LangGraph's own classes, datetimes and exceptions. Messages are in
 * messages.c.
 */
#include "codec.h"

/* `prefix` and then the attribute's value. */
static int enc_attr(struct hd_py_enc *enc, const char *prefix, PyObject *obj, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(obj, name);
    int rc;

    if (!value)
        return -1;
    rc = hd_py_put_raw(enc->out, prefix, strlen(prefix));
    if (rc == 0)
        rc = hd_py_enc_value(enc, value);
    Py_DECREF(value);
    return rc;
}

/* Omitted when None. */
static int enc_attr_if(struct hd_py_enc *enc, const char *prefix, PyObject *obj, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(obj, name);
    int rc = 0;

    if (!value)
        return -1;
    if (value != Py_None) {
        rc = hd_py_put_raw(enc->out, prefix, strlen(prefix));
        if (rc == 0)
            rc = hd_py_enc_value(enc, value);
    }
    Py_DECREF(value);
    return rc;
}

/* 1 or 0; -1 on error. Older versions lack some attributes: absent counts as None. */
static int attr_is_none(PyObject *obj, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(obj, name);
    int is_none = value == Py_None;

    if (!value && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        return 1;
    }
    Py_XDECREF(value);
    return value ? is_none : -1;
}

/* A str attribute, else HD_PY_UNFIT. */
static int attr_is_str(PyObject *obj, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(obj, name);
    int rc = value && PyUnicode_CheckExact(value) ? 0 : HD_PY_UNFIT;

    Py_XDECREF(value);
    return value ? rc : -1;
}

/*
 * {"run_timeout":SECONDS,"idle_timeout":SECONDS,"refresh_on":"heartbeat"}, with the names of
 * langgraph's TimeoutPolicy; members at their default are omitted.
 */
static int enc_timeout(struct hd_py_enc *enc, PyObject *timeout)
{
    const struct hd_py_names *names = &enc->codec->ext->names;
    PyObject *refresh = PyObject_GetAttr(timeout, names->refresh_on);
    size_t start;
    int rc;

    if (!refresh)
        return -1;
    rc = HD_PY_PUT(enc->out, ",\"timeout\":{");
    start = enc->out->len;
    if (rc == 0)
        rc = enc_attr_if(enc, ",\"run_timeout\":", timeout, names->run_timeout);
    if (rc == 0)
        rc = enc_attr_if(enc, ",\"idle_timeout\":", timeout, names->idle_timeout);
    if (rc == 0 &&
        !(PyUnicode_Check(refresh) && PyUnicode_CompareWithASCIIString(refresh, "auto") == 0)) {
        rc = HD_PY_PUT(enc->out, ",\"refresh_on\":");
        if (rc == 0)
            rc = hd_py_enc_value(enc, refresh);
    }
    Py_DECREF(refresh);
    if (rc != 0)
        return rc;
    /* The first member is preceded by a comma. */
    if (enc->out->len > start) {
        memmove(enc->out->ptr + start, enc->out->ptr + start + 1, enc->out->len - start - 1);
        enc->out->len--;
    }
    return HD_PY_PUT(enc->out, "}");
}

static int enc_send(struct hd_py_enc *enc, PyObject *obj)
{
    const struct hd_py_names *names = &enc->codec->ext->names;
    int plain = attr_is_none(obj, names->timeout);
    PyObject *timeout = NULL;
    int rc = attr_is_str(obj, names->node);

    if (plain < 0 || rc != 0)
        return plain < 0 ? -1 : rc;
    if (!plain) {
        timeout = PyObject_GetAttr(obj, names->timeout);
        if (!timeout)
            return -1;
        if (Py_TYPE(timeout) != enc->codec->classes->types[HD_PY_TIMEOUT]) {
            Py_DECREF(timeout);
            return HD_PY_UNFIT;
        }
    }
    rc = enc_attr(enc, "{\"$\":\"send\",\"node\":", obj, names->node);
    if (rc == 0)
        rc = enc_attr(enc, ",\"arg\":", obj, names->arg);
    if (rc == 0 && timeout) {
        enc->depth++;
        rc = enc->depth > HD_JSON_MAX_DEPTH ? HD_PY_TOO_DEEP : enc_timeout(enc, timeout);
        enc->depth--;
    }
    Py_XDECREF(timeout);
    return rc == 0 ? HD_PY_PUT(enc->out, "}") : rc;
}

static bool is_target(const struct hd_py_enc *enc, PyObject *item)
{
    return PyUnicode_CheckExact(item) || Py_TYPE(item) == enc->codec->classes->types[HD_PY_SEND];
}

/* A single target is written as a list of one. */
static int enc_goto(struct hd_py_enc *enc, PyObject *go)
{
    bool is_single = is_target(enc, go);
    Py_ssize_t count;
    int rc;

    if (!is_single && !PyList_CheckExact(go) && !PyTuple_CheckExact(go))
        return HD_PY_UNFIT;
    count = is_single ? 1 : PySequence_Fast_GET_SIZE(go);
    for (Py_ssize_t i = 0; !is_single && i < count; i++) {
        if (!is_target(enc, PySequence_Fast_GET_ITEM(go, i)))
            return HD_PY_UNFIT;
    }
    if (count == 0)
        return 0;
    rc = HD_PY_PUT(enc->out, ",\"goto\":");
    if (!is_single || rc != 0)
        return rc == 0 ? hd_py_enc_value(enc, go) : rc;
    if (enc->depth >= HD_JSON_MAX_DEPTH)
        return HD_PY_TOO_DEEP;
    enc->depth++;
    rc = HD_PY_PUT(enc->out, "[");
    if (rc == 0)
        rc = hd_py_enc_value(enc, go);
    enc->depth--;
    return rc == 0 ? HD_PY_PUT(enc->out, "]") : rc;
}

static int enc_command(struct hd_py_enc *enc, PyObject *obj)
{
    const struct hd_py_names *names = &enc->codec->ext->names;
    PyObject *go;
    int rc = HD_PY_PUT(enc->out, "{\"$\":\"command\"");

    if (rc == 0)
        rc = enc_attr_if(enc, ",\"graph\":", obj, names->graph);
    if (rc == 0)
        rc = enc_attr_if(enc, ",\"update\":", obj, names->update);
    if (rc == 0)
        rc = enc_attr_if(enc, ",\"resume\":", obj, names->resume);
    if (rc != 0)
        return rc;
    go = PyObject_GetAttr(obj, names->goto_);
    if (!go)
        return -1;
    rc = enc_goto(enc, go);
    Py_DECREF(go);
    return rc == 0 ? HD_PY_PUT(enc->out, "}") : rc;
}

/* A schema for the reply is stored as a dict (JSON Schema); a class is foreign. */
static int enc_interrupt(struct hd_py_enc *enc, PyObject *obj)
{
    const struct hd_py_names *names = &enc->codec->ext->names;
    int is_plain = attr_is_none(obj, names->response_schema);
    PyObject *schema = NULL;
    int rc = attr_is_str(obj, names->id);

    if (is_plain < 0 || rc != 0)
        return is_plain < 0 ? -1 : rc;
    if (!is_plain) {
        schema = PyObject_GetAttr(obj, names->response_schema);
        if (!schema)
            return -1;
        if (!PyDict_CheckExact(schema))
            rc = HD_PY_UNFIT;
    }
    if (rc == 0)
        rc = enc_attr(enc, "{\"$\":\"interrupt\",\"value\":", obj, names->value);
    if (rc == 0)
        rc = enc_attr(enc, ",\"id\":", obj, names->id);
    if (rc == 0 && schema) {
        rc = HD_PY_PUT(enc->out, ",\"response_schema\":");
        if (rc == 0)
            rc = hd_py_enc_value(enc, schema);
    }
    Py_XDECREF(schema);
    return rc == 0 ? HD_PY_PUT(enc->out, "}") : rc;
}

/* Overwrite and _DeltaSnapshot. */
static int enc_wrapped(struct hd_py_enc *enc, PyObject *obj, const char *prefix)
{
    int rc = enc_attr(enc, prefix, obj, enc->codec->ext->names.value);

    return rc == 0 ? HD_PY_PUT(enc->out, "}") : rc;
}

static int enc_datetime(struct hd_py_enc *enc, PyObject *obj)
{
    PyObject *text = PyObject_CallMethodNoArgs(obj, enc->codec->ext->names.isoformat);
    int rc;

    if (!text)
        return -1;
    rc = HD_PY_PUT(enc->out, "{\"$\":\"datetime\",\"v\":");
    if (rc == 0)
        rc = hd_py_put_key(enc->out, text);
    Py_DECREF(text);
    return rc == 0 ? HD_PY_PUT(enc->out, "}") : rc;
}

/* The nesting depth of a JSON text written by this encoder. */
static int text_depth(const char *text, Py_ssize_t len)
{
    bool in_string = false;
    int depth = 0;
    int deepest = 0;

    for (Py_ssize_t i = 0; i < len; i++) {
        char c = text[i];

        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '{' || c == '['))
            deepest = ++depth > deepest ? depth : deepest;
        else if (!in_string && (c == '}' || c == ']'))
            depth--;
    }
    return deepest;
}

/* A record of another runtime, written back unchanged. */
static int enc_opaque(struct hd_py_enc *enc, PyObject *obj)
{
    PyObject *record = PyObject_GetAttr(obj, enc->codec->ext->names.record);
    int rc;

    if (!record)
        return -1;
    if (!PyBytes_CheckExact(record))
        rc = HD_PY_UNFIT;
    else if (enc->depth - 1 + text_depth(PyBytes_AS_STRING(record), PyBytes_GET_SIZE(record)) >
             HD_JSON_MAX_DEPTH)
        rc = HD_PY_TOO_DEEP;
    else
        rc = hd_py_put_raw(enc->out, PyBytes_AS_STRING(record), (size_t)PyBytes_GET_SIZE(record));
    Py_DECREF(record);
    return rc;
}

int hd_py_enc_record(struct hd_py_enc *enc, PyObject *obj, enum hd_py_kind kind,
                     const struct hd_py_message *message)
{
    int rc;

    enc->depth++;
    switch (kind) {
    case HD_PY_MESSAGE:
        rc = hd_py_enc_message(enc, obj, message);
        break;
    case HD_PY_SEND:
        rc = enc_send(enc, obj);
        break;
    case HD_PY_COMMAND:
        rc = enc_command(enc, obj);
        break;
    case HD_PY_INTERRUPT:
        rc = enc_interrupt(enc, obj);
        break;
    case HD_PY_OVERWRITE:
        rc = enc_wrapped(enc, obj, "{\"$\":\"overwrite\",\"value\":");
        break;
    case HD_PY_DELTA:
        rc = enc_wrapped(enc, obj, "{\"$\":\"delta\",\"value\":");
        break;
    case HD_PY_DATETIME:
        rc = enc_datetime(enc, obj);
        break;
    case HD_PY_FOREIGN:
        rc = enc_opaque(enc, obj);
        break;
    default:
        rc = HD_PY_UNFIT;
    }
    enc->depth--;
    return rc;
}

/*
 * {"$":"error","type":T,"message":M}. The wrapped serializer stores exceptions as their repr, and
 * so does reading this record: only an exception whose repr is T(M) is written as one, the others
 * as that text.
 */
int hd_py_enc_exception(struct hd_py_enc *enc, PyObject *obj)
{
    PyObject *name = PyUnicode_FromString(strrchr(Py_TYPE(obj)->tp_name, '.')
                                              ? strrchr(Py_TYPE(obj)->tp_name, '.') + 1
                                              : Py_TYPE(obj)->tp_name);
    PyObject *args = PyObject_GetAttr(obj, enc->codec->ext->names.args);
    PyObject *repr = PyObject_Repr(obj);
    PyObject *expected = NULL;
    PyObject *message = NULL;
    int rc = -1;

    if (!name || !args || !repr)
        goto done;
    if (PyTuple_CheckExact(args) && PyTuple_GET_SIZE(args) == 1)
        message = PyTuple_GET_ITEM(args, 0);
    if (message && PyUnicode_CheckExact(message)) {
        expected = PyUnicode_FromFormat("%U(%R)", name, message);
        if (!expected)
            goto done;
    }
    enc->depth++;
    if (expected && PyUnicode_Compare(expected, repr) == 0) {
        rc = HD_PY_PUT(enc->out, "{\"$\":\"error\",\"type\":");
        if (rc == 0)
            rc = hd_py_put_string(enc, name);
        if (rc == 0)
            rc = HD_PY_PUT(enc->out, ",\"message\":");
        if (rc == 0)
            rc = hd_py_put_string(enc, message);
        if (rc == 0)
            rc = HD_PY_PUT(enc->out, "}");
    } else {
        rc = hd_py_put_string(enc, repr);
    }
    enc->depth--;
done:
    Py_XDECREF(name);
    Py_XDECREF(args);
    Py_XDECREF(repr);
    Py_XDECREF(expected);
    return rc;
}
