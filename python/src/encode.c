/*
 * Python objects to canonical JSON, in one walk and one buffer.
 *
 * Only exact types are supported: a subclass may hold more data than its base, so it goes to the
 * wrapped serializer, which can preserve it. While native types are written no Python code runs and
 * the GIL is not released; a call of the wrapped serializer or isoformat() may change containers,
 * so elements are owned while they are written and sizes are read again.
 *
 * Nesting: each '{' or '[' opens a level. An object that exceeds the limit returns HD_PY_TOO_DEEP,
 * and the container around it is then written as one foreign record at its own level.
 */
#include "codec.h"

/* ---- containers ------------------------------------------------------- */

static int put_comma(struct hd_py_enc *enc, bool *is_first)
{
    if (*is_first) {
        *is_first = false;
        return 0;
    }
    return HD_PY_PUT(enc->out, ",");
}

/* Lists and tuples. */
static int enc_sequence(struct hd_py_enc *enc, PyObject *obj)
{
    bool is_list = PyList_Check(obj);
    bool is_first = true;
    int rc = HD_PY_PUT(enc->out, "[");

    enc->depth++;
    for (Py_ssize_t i = 0; rc == 0; i++) {
        PyObject *item;

        if (i >= (is_list ? PyList_GET_SIZE(obj) : PyTuple_GET_SIZE(obj)))
            break;
        item = is_list ? PyList_GET_ITEM(obj, i) : PyTuple_GET_ITEM(obj, i);
        Py_INCREF(item);
        rc = put_comma(enc, &is_first);
        if (rc == 0)
            rc = hd_py_enc_value(enc, item);
        Py_DECREF(item);
    }
    enc->depth--;
    return rc == 0 ? HD_PY_PUT(enc->out, "]") : rc;
}

static int check_unchanged(PyObject *dict, Py_ssize_t size)
{
    if (PyDict_GET_SIZE(dict) == size)
        return 0;
    PyErr_SetString(PyExc_RuntimeError, "dictionary changed size while it was encoded");
    return -1;
}

static bool is_plain_key(PyObject *key)
{
    if (!PyUnicode_CheckExact(key) || PyUnicode_READY(key) < 0)
        return false;
    if (PyUnicode_GET_LENGTH(key) == 1 && PyUnicode_READ_CHAR(key, 0) == '$')
        return false;
    return PyUnicode_IS_ASCII(key) || !hd_py_has_surrogates(key);
}

/* Reports whether a JSON object can represent this dict. */
static bool has_plain_keys(PyObject *dict)
{
    PyObject *key;
    Py_ssize_t pos = 0;

    while (PyDict_Next(dict, &pos, &key, NULL)) {
        if (!is_plain_key(key))
            return false;
    }
    return true;
}

static int enc_object(struct hd_py_enc *enc, PyObject *dict)
{
    PyObject *key;
    PyObject *value;
    Py_ssize_t pos = 0;
    Py_ssize_t size = PyDict_GET_SIZE(dict);
    bool is_first = true;
    int rc = HD_PY_PUT(enc->out, "{");

    enc->depth++;
    while (rc == 0 && PyDict_Next(dict, &pos, &key, &value)) {
        Py_INCREF(key);
        Py_INCREF(value);
        rc = put_comma(enc, &is_first);
        if (rc == 0)
            rc = hd_py_put_key(enc->out, key);
        if (rc == 0)
            rc = HD_PY_PUT(enc->out, ":");
        if (rc == 0)
            rc = hd_py_enc_value(enc, value);
        Py_DECREF(key);
        Py_DECREF(value);
        if (rc == 0)
            rc = check_unchanged(dict, size);
    }
    enc->depth--;
    return rc == 0 ? HD_PY_PUT(enc->out, "}") : rc;
}

static int enc_pair(struct hd_py_enc *enc, PyObject *key, PyObject *value, bool *is_first)
{
    int rc = put_comma(enc, is_first);

    if (rc == 0)
        rc = HD_PY_PUT(enc->out, "[");
    if (rc == 0)
        rc = hd_py_enc_value(enc, key);
    if (rc == 0)
        rc = HD_PY_PUT(enc->out, ",");
    if (rc == 0)
        rc = hd_py_enc_value(enc, value);
    return rc == 0 ? HD_PY_PUT(enc->out, "]") : rc;
}

/* {"$":"map","items":[[K,V],…]}: three levels. */
static int enc_map(struct hd_py_enc *enc, PyObject *dict)
{
    PyObject *key;
    PyObject *value;
    Py_ssize_t pos = 0;
    Py_ssize_t size = PyDict_GET_SIZE(dict);
    bool is_first = true;
    int rc;

    if (enc->depth + 3 > HD_JSON_MAX_DEPTH)
        return HD_PY_TOO_DEEP;
    rc = HD_PY_PUT(enc->out, "{\"$\":\"map\",\"items\":[");
    enc->depth += 3;
    while (rc == 0 && PyDict_Next(dict, &pos, &key, &value)) {
        Py_INCREF(key);
        Py_INCREF(value);
        rc = enc_pair(enc, key, value, &is_first);
        Py_DECREF(key);
        Py_DECREF(value);
        if (rc == 0)
            rc = check_unchanged(dict, size);
    }
    enc->depth -= 3;
    return rc == 0 ? HD_PY_PUT(enc->out, "]}") : rc;
}

static int enc_dict(struct hd_py_enc *enc, PyObject *dict)
{
    return has_plain_keys(dict) ? enc_object(enc, dict) : enc_map(enc, dict);
}

/* {"$":"set","items":[…]}: two levels. */
static int enc_set(struct hd_py_enc *enc, PyObject *set)
{
    PyObject *iter;
    PyObject *item;
    bool is_first = true;
    int rc;

    if (enc->depth + 2 > HD_JSON_MAX_DEPTH)
        return HD_PY_TOO_DEEP;
    iter = PyObject_GetIter(set);
    if (!iter)
        return -1;
    rc = HD_PY_PUT(enc->out, "{\"$\":\"set\",\"items\":[");
    enc->depth += 2;
    while (rc == 0 && (item = PyIter_Next(iter)) != NULL) {
        rc = put_comma(enc, &is_first);
        if (rc == 0)
            rc = hd_py_enc_value(enc, item);
        Py_DECREF(item);
    }
    enc->depth -= 2;
    Py_DECREF(iter);
    if (rc == 0 && PyErr_Occurred())
        rc = -1;
    if (rc != 0)
        return rc;
    return PyFrozenSet_CheckExact(set) ? HD_PY_PUT(enc->out, "],\"frozen\":true}")
                                       : HD_PY_PUT(enc->out, "]}");
}

static int enc_bytes(struct hd_py_enc *enc, PyObject *obj)
{
    bool is_mutable = PyByteArray_CheckExact(obj);
    const char *bytes = is_mutable ? PyByteArray_AS_STRING(obj) : PyBytes_AS_STRING(obj);
    Py_ssize_t len = is_mutable ? PyByteArray_GET_SIZE(obj) : PyBytes_GET_SIZE(obj);

    if (HD_PY_PUT(enc->out, "{\"$\":\"bytes\",\"v\":") != 0 ||
        hd_py_put_base64(enc->out, bytes, (size_t)len) != 0)
        return -1;
    return is_mutable ? HD_PY_PUT(enc->out, ",\"mutable\":true}") : HD_PY_PUT(enc->out, "}");
}

/* ---- metadata: the output of json.dumps -------------------------------- */

/* A key as json.dumps writes it: a new reference, or NULL with TypeError. */
static PyObject *key_text(PyObject *key)
{
    if (PyUnicode_Check(key)) {
        Py_INCREF(key);
        return key;
    }
    if (key == Py_None)
        return PyUnicode_FromString("null");
    if (PyBool_Check(key))
        return PyUnicode_FromString(key == Py_True ? "true" : "false");
    if (PyLong_Check(key))
        return PyLong_Type.tp_repr(key);
    if (PyFloat_Check(key))
        return PyFloat_Type.tp_repr(key);
    return PyErr_Format(PyExc_TypeError, "keys must be str, int, float, bool or None, not %.100s",
                        Py_TYPE(key)->tp_name);
}

static int put_key_text(struct hd_py_enc *enc, PyObject *key)
{
    PyObject *text = key_text(key);
    int rc;

    if (!text)
        return -1;
    rc = hd_py_put_key(enc->out, text);
    if (rc == HD_PY_UNFIT) {
        PyErr_SetString(PyExc_ValueError, "a key with unpaired surrogates cannot be stored here");
        rc = -1;
    }
    Py_DECREF(text);
    return rc;
}

static int enc_json_dict(struct hd_py_enc *enc, PyObject *dict)
{
    PyObject *key;
    PyObject *value;
    Py_ssize_t pos = 0;
    Py_ssize_t size = PyDict_GET_SIZE(dict);
    bool is_first = true;
    int rc = HD_PY_PUT(enc->out, "{");

    enc->depth++;
    while (rc == 0 && PyDict_Next(dict, &pos, &key, &value)) {
        Py_INCREF(key);
        Py_INCREF(value);
        rc = put_comma(enc, &is_first);
        if (rc == 0)
            rc = put_key_text(enc, key);
        if (rc == 0)
            rc = HD_PY_PUT(enc->out, ":");
        if (rc == 0)
            rc = hd_py_enc_value(enc, value);
        Py_DECREF(key);
        Py_DECREF(value);
        if (rc == 0)
            rc = check_unchanged(dict, size);
    }
    enc->depth--;
    return rc == 0 ? HD_PY_PUT(enc->out, "}") : rc;
}

/* A "$" key would read back as a record; only metadata may write a map instead. */
static int enc_loose_dict(struct hd_py_enc *enc, PyObject *dict)
{
    PyObject *dollar = PyDict_GetItemString(dict, "$");

    if (dollar && enc->mode == HD_PY_METADATA)
        return enc_map(enc, dict);
    return enc_json_dict(enc, dict);
}

/* Subclasses of the JSON types, which json.dumps writes as their base; HD_PY_UNFIT for others. */
static int enc_loose(struct hd_py_enc *enc, PyObject *obj)
{
    if (PyUnicode_Check(obj))
        return hd_py_put_string(enc, obj);
    if (PyLong_Check(obj))
        return hd_py_put_long(enc, obj);
    if (PyFloat_Check(obj))
        return hd_py_put_double(enc, PyFloat_AS_DOUBLE(obj));
    if (PyDict_Check(obj))
        return enc_loose_dict(enc, obj);
    if (PyList_Check(obj) || PyTuple_Check(obj))
        return enc_sequence(enc, obj);
    return HD_PY_UNFIT;
}

/* ---- dispatch --------------------------------------------------------- */

static int refuse_plain(PyObject *obj)
{
    PyErr_Format(PyExc_TypeError, "an object of type %.100s cannot be stored here",
                 Py_TYPE(obj)->tp_name);
    return -1;
}

/* Objects that open at least one level. HD_PY_UNFIT when the encoding has no form for them. */
static int enc_levelled(struct hd_py_enc *enc, PyObject *obj)
{
    PyTypeObject *type = Py_TYPE(obj);
    const struct hd_py_message *message;
    enum hd_py_kind kind;

    if (type == &PyList_Type || type == &PyTuple_Type)
        return enc_sequence(enc, obj);
    if (type == &PyDict_Type)
        return enc->mode == HD_PY_CANONICAL ? enc_dict(enc, obj) : enc_loose_dict(enc, obj);
    if (enc->mode == HD_PY_PLAIN)
        return HD_PY_UNFIT;
    kind = hd_py_classes_find(enc->codec->classes, type, &message);
    if (kind != HD_PY_OTHER)
        return hd_py_enc_record(enc, obj, kind, message);
    if (type == &PySet_Type || type == &PyFrozenSet_Type)
        return enc_set(enc, obj);
    if (type == &PyBytes_Type || type == &PyByteArray_Type)
        return enc_bytes(enc, obj);
    if (PyExceptionInstance_Check(obj))
        return hd_py_enc_exception(enc, obj);
    return HD_PY_UNFIT;
}

static int enc_any(struct hd_py_enc *enc, PyObject *obj)
{
    size_t start = enc->out->len;
    int rc;

    if (enc->depth >= HD_JSON_MAX_DEPTH)
        return HD_PY_TOO_DEEP;
    if (Py_EnterRecursiveCall(" while encoding a value"))
        return -1;
    rc = enc_levelled(enc, obj);
    if (rc == HD_PY_UNFIT && enc->mode != HD_PY_CANONICAL) {
        enc->out->len = start;
        rc = enc_loose(enc, obj);
    }
    if (rc == HD_PY_UNFIT || rc == HD_PY_TOO_DEEP) {
        enc->out->len = start;
        rc = enc->mode == HD_PY_PLAIN ? refuse_plain(obj) : hd_py_enc_foreign(enc, obj);
    }
    Py_LeaveRecursiveCall();
    return rc;
}

int hd_py_enc_value(struct hd_py_enc *enc, PyObject *obj)
{
    PyTypeObject *type = Py_TYPE(obj);

    if (type == &PyUnicode_Type)
        return hd_py_put_string(enc, obj);
    if (obj == Py_None)
        return HD_PY_PUT(enc->out, "null");
    if (type == &PyBool_Type)
        return obj == Py_True ? HD_PY_PUT(enc->out, "true") : HD_PY_PUT(enc->out, "false");
    if (type == &PyLong_Type)
        return hd_py_put_long(enc, obj);
    if (type == &PyFloat_Type)
        return hd_py_put_double(enc, PyFloat_AS_DOUBLE(obj));
    return enc_any(enc, obj);
}

int hd_py_enc_foreign(struct hd_py_enc *enc, PyObject *obj)
{
    PyObject *type;
    PyObject *bytes;
    int rc;

    if (hd_py_call_dumps(enc->codec, obj, &type, &bytes) != 0)
        return -1;
    rc = HD_PY_PUT(enc->out, "{\"$\":\"foreign\",\"type\":");
    if (rc == 0)
        rc = hd_py_put_key(enc->out, type);
    if (rc == 0)
        rc = HD_PY_PUT(enc->out, ",\"v\":");
    if (rc == 0)
        rc = hd_py_put_base64(enc->out, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    if (rc == 0)
        rc = HD_PY_PUT(enc->out, "}");
    Py_DECREF(type);
    Py_DECREF(bytes);
    if (rc == HD_PY_UNFIT) {
        PyErr_SetString(PyExc_ValueError, "the serializer's type tag has unpaired surrogates");
        return -1;
    }
    return rc;
}
