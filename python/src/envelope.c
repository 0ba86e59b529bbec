/*
 * The JSON around the values: the checkpoint without its channel values, its metadata, and
 * versions.
 *
 * The core reads channel_versions, and other runtimes read all known members, so these are plain
 * JSON. An unknown member, or the pending_sends of old checkpoints, may hold any object: it goes
 * through the serializer (which may encrypt) into a foreign record.
 */
#include "codec.h"

static int put_version(struct hd_py_enc *enc, PyObject *version, const char *what)
{
    if (PyUnicode_Check(version))
        return hd_py_put_string(enc, version);
    if (PyLong_Check(version) && !PyBool_Check(version))
        return hd_py_put_long(enc, version);
    if (PyFloat_Check(version))
        return hd_py_put_double(enc, PyFloat_AS_DOUBLE(version));
    PyErr_Format(PyExc_TypeError, "a version in %s must be str, int or float, not %.100s", what,
                 Py_TYPE(version)->tp_name);
    return -1;
}

static int put_name(struct hd_buf *out, PyObject *name, const char *what)
{
    int rc;

    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "a name in %s must be str, not %.100s", what,
                     Py_TYPE(name)->tp_name);
        return -1;
    }
    rc = hd_py_put_key(out, name);
    if (rc == HD_PY_UNFIT) {
        PyErr_Format(PyExc_ValueError, "a name in %s has unpaired surrogates", what);
        return -1;
    }
    return rc == 0 ? HD_PY_PUT(out, ":") : rc;
}

int hd_py_enc_versions(struct hd_buf *out, PyObject *versions, const char *what)
{
    struct hd_py_enc enc = {.out = out, .mode = HD_PY_PLAIN, .depth = 2};
    PyObject *key;
    PyObject *value;
    Py_ssize_t pos = 0;
    const char *separator = "{";

    if (!PyDict_Check(versions)) {
        PyErr_Format(PyExc_TypeError, "%s must be a dict, not %.100s", what,
                     Py_TYPE(versions)->tp_name);
        return -1;
    }
    while (PyDict_Next(versions, &pos, &key, &value)) {
        if (hd_py_put_raw(out, separator, 1) != 0 || put_name(out, key, what) != 0 ||
            put_version(&enc, value, what) != 0)
            return -1;
        separator = ",";
    }
    return *separator == '{' ? HD_PY_PUT(out, "{}") : HD_PY_PUT(out, "}");
}

static int enc_versions_seen(struct hd_buf *out, PyObject *seen)
{
    PyObject *key;
    PyObject *value;
    Py_ssize_t pos = 0;
    const char *separator = "{";

    if (!PyDict_Check(seen)) {
        PyErr_SetString(PyExc_TypeError, "versions_seen must be a dict");
        return -1;
    }
    while (PyDict_Next(seen, &pos, &key, &value)) {
        if (hd_py_put_raw(out, separator, 1) != 0 || put_name(out, key, "versions_seen") != 0 ||
            hd_py_enc_versions(out, value, "versions_seen") != 0)
            return -1;
        separator = ",";
    }
    return *separator == '{' ? HD_PY_PUT(out, "{}") : HD_PY_PUT(out, "}");
}

/* Members that every checkpoint has, and other plain members. */
static bool is_plain_member(const struct hd_py_names *names, PyObject *key, PyObject *value)
{
    if (PyUnicode_Compare(key, names->v) == 0 || PyUnicode_Compare(key, names->id) == 0 ||
        PyUnicode_Compare(key, names->ts) == 0 ||
        PyUnicode_Compare(key, names->updated_channels) == 0)
        return true;
    return value == Py_None || PyUnicode_CheckExact(value) || PyLong_CheckExact(value) ||
           PyBool_Check(value) || (PyList_CheckExact(value) && PyList_GET_SIZE(value) == 0);
}

/* {"$":"foreign","type":T,"v":BASE64} for any value. */
static int enc_wrapped(struct hd_py_codec *codec, PyObject *value, struct hd_buf *out)
{
    struct hd_py_dumped dumped;
    struct hd_buf text;
    int rc;

    hd_buf_init(&text, PY_SSIZE_T_MAX);
    rc = hd_py_dump(codec, value, &text, &dumped);
    if (rc == 0)
        rc = HD_PY_PUT(out, "{\"$\":\"foreign\",\"type\":");
    if (rc == 0)
        rc = dumped.type ? hd_py_put_key(out, dumped.type) : HD_PY_PUT(out, "\"" HD_PY_TAG "\"");
    if (rc == 0)
        rc = HD_PY_PUT(out, ",\"v\":");
    if (rc == 0 && dumped.bytes)
        rc = hd_py_put_base64(out, PyBytes_AS_STRING(dumped.bytes),
                              (size_t)PyBytes_GET_SIZE(dumped.bytes));
    else if (rc == 0)
        rc = hd_py_put_base64(out, text.ptr, text.len);
    hd_buf_fini(&text);
    Py_XDECREF(dumped.type);
    Py_XDECREF(dumped.bytes);
    return rc == 0 ? HD_PY_PUT(out, "}") : -1;
}

static int enc_member(struct hd_py_codec *codec, PyObject *key, PyObject *value, struct hd_buf *out)
{
    const struct hd_py_names *names = &codec->ext->names;
    struct hd_py_enc enc = {.out = out, .mode = HD_PY_PLAIN, .depth = 1};

    if (PyUnicode_Compare(key, names->channel_versions) == 0)
        return hd_py_enc_versions(out, value, "channel_versions");
    if (PyUnicode_Compare(key, names->versions_seen) == 0)
        return enc_versions_seen(out, value);
    if (is_plain_member(names, key, value))
        return hd_py_enc_value(&enc, value);
    return enc_wrapped(codec, value, out);
}

int hd_py_enc_checkpoint(struct hd_py_codec *codec, PyObject *checkpoint, struct hd_buf *out)
{
    PyObject *key;
    PyObject *value;
    Py_ssize_t pos = 0;
    bool is_first = true;
    int rc = HD_PY_PUT(out, "{");

    while (rc == 0 && PyDict_Next(checkpoint, &pos, &key, &value)) {
        if (PyUnicode_Check(key) && PyUnicode_Compare(key, codec->ext->names.channel_values) == 0)
            continue;
        Py_INCREF(key);
        Py_INCREF(value);
        if (!is_first)
            rc = HD_PY_PUT(out, ",");
        is_first = false;
        if (rc == 0)
            rc = put_name(out, key, "the checkpoint");
        if (rc == 0)
            rc = enc_member(codec, key, value, out);
        Py_DECREF(key);
        Py_DECREF(value);
    }
    return rc == 0 ? HD_PY_PUT(out, "}") : -1;
}

int hd_py_enc_metadata(struct hd_py_codec *codec, PyObject *metadata, struct hd_buf *out)
{
    struct hd_py_enc enc = {.out = out, .codec = codec, .mode = HD_PY_METADATA};

    return hd_py_enc_value(&enc, metadata);
}

/* ---- reading ---------------------------------------------------------- */

/* Replaces a wrapped member by its object. */
static int unwrap(struct hd_py_codec *codec, PyObject *checkpoint, PyObject *key, PyObject *record)
{
    PyObject *type = PyDict_GetItemString(record, "type");
    PyObject *text = PyDict_GetItemString(record, "v");
    PyObject *bytes;
    PyObject *value;
    int rc = -1;

    if (!type || !text || !PyUnicode_Check(type) || !PyUnicode_Check(text) ||
        !PyUnicode_IS_ASCII(text) || !PyUnicode_IS_ASCII(type)) {
        hd_py_dec_refuse("a member of the checkpoint is not readable");
        return -1;
    }
    bytes = hd_py_base64_decode(hd_slice(PyUnicode_DATA(text), (size_t)PyUnicode_GET_LENGTH(text)),
                                false);
    if (!bytes)
        return -1;
    value = hd_py_load(
        codec, (struct heddle_bytes){PyUnicode_DATA(type), (size_t)PyUnicode_GET_LENGTH(type)},
        (struct heddle_bytes){PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes)});
    if (value)
        rc = PyDict_SetItem(checkpoint, key, value);
    Py_XDECREF(value);
    Py_DECREF(bytes);
    return rc;
}

static bool is_wrapped(const struct hd_py_names *names, PyObject *key, PyObject *value)
{
    PyObject *kind;

    if (!PyDict_CheckExact(value) || PyUnicode_Compare(key, names->channel_versions) == 0 ||
        PyUnicode_Compare(key, names->versions_seen) == 0)
        return false;
    kind = PyDict_GetItemString(value, "$");
    return kind && PyUnicode_Check(kind) && PyUnicode_CompareWithASCIIString(kind, "foreign") == 0;
}

PyObject *hd_py_dec_checkpoint(struct hd_py_codec *codec, struct heddle_bytes text)
{
    PyObject *checkpoint = hd_py_decode(NULL, HD_PY_PLAIN, hd_slice(text.data, text.len));
    PyObject *key;
    PyObject *value;
    Py_ssize_t pos = 0;

    if (!checkpoint || !PyDict_CheckExact(checkpoint)) {
        Py_XDECREF(checkpoint);
        return PyErr_Occurred() ? NULL : hd_py_dec_refuse("a checkpoint is an object");
    }
    /* Replaces values of existing keys: the iteration stays valid. */
    while (PyDict_Next(checkpoint, &pos, &key, &value)) {
        if (is_wrapped(&codec->ext->names, key, value) &&
            unwrap(codec, checkpoint, key, value) != 0) {
            Py_DECREF(checkpoint);
            return NULL;
        }
    }
    return checkpoint;
}

PyObject *hd_py_dec_metadata(struct hd_py_codec *codec, struct heddle_bytes text)
{
    return hd_py_decode(codec, HD_PY_METADATA, hd_slice(text.data, text.len));
}
