/*
 * Canonical JSON to Python objects.
 *
 * The parser has checked UTF-8 and nesting, so the walk is plain recursion. Member names repeat in
 * a list of messages: a small table of recent names creates each string once per document.
 */
#include "codec.h"

/* Shorter texts create too few objects for this to matter. */
enum { PAUSE_FROM = 4096 };

void hd_py_dec_leave(struct hd_py_dec *dec)
{
    if (dec->is_paused)
        PyGC_Enable();
}

void hd_py_dec_return(struct hd_py_dec *dec)
{
    if (dec->is_paused)
        dec->is_paused = PyGC_Disable();
}

static void pause_collector(struct hd_py_dec *dec, size_t len)
{
#if PY_VERSION_HEX < 0x030c0000
    if (len >= PAUSE_FROM)
        dec->is_paused = PyGC_Disable();
#else
    (void)dec;
    (void)len;
#endif
}

PyObject *hd_py_dec_refuse(const char *why)
{
    return PyErr_Format(PyExc_ValueError, "not hd1: %s", why);
}

/* ---- scalars ---------------------------------------------------------- */

static PyObject *dec_float_text(struct hd_slice text)
{
    char stack[64];
    char *copy = stack;
    double num;

    if (text.len >= sizeof(stack)) {
        copy = PyMem_Malloc(text.len + 1);
        if (!copy)
            return PyErr_NoMemory();
    }
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    num = PyOS_string_to_double(copy, NULL, NULL);
    if (copy != stack)
        PyMem_Free(copy);
    return num == -1.0 && PyErr_Occurred() ? NULL : PyFloat_FromDouble(num);
}

static PyObject *dec_big_int(struct hd_slice text)
{
    PyObject *str = PyUnicode_FromStringAndSize(text.ptr, (Py_ssize_t)text.len);
    PyObject *num = str ? PyLong_FromUnicodeObject(str, 10) : NULL;

    Py_XDECREF(str);
    return num;
}

static PyObject *dec_number(hd_json_val val)
{
    struct hd_slice text = hd_json_number_text(val);
    bool is_negative = text.len && text.ptr[0] == '-';
    long long num = 0;

    for (size_t i = is_negative; i < text.len; i++) {
        char c = text.ptr[i];

        if (c < '0' || c > '9')
            return dec_float_text(text);
        if (i < 18)
            num = num * 10 + (c - '0');
    }
    if (text.len > 18)
        return dec_big_int(text);
    return PyLong_FromLongLong(is_negative ? -num : num);
}

static PyObject *dec_string(hd_json_val val)
{
    struct hd_slice text = hd_json_string(val);

    return PyUnicode_DecodeUTF8(text.ptr, (Py_ssize_t)text.len, NULL);
}

/* ---- containers ------------------------------------------------------- */

static size_t key_slot(struct hd_slice key)
{
    size_t hash = key.len;

    if (key.len) {
        hash = hash * 31 + (unsigned char)key.ptr[0];
        hash = hash * 31 + (unsigned char)key.ptr[key.len - 1];
        hash = hash * 31 + (unsigned char)key.ptr[key.len / 2];
    }
    return hash % 64;
}

/* New reference. */
static PyObject *dec_key(struct hd_py_dec *dec, struct hd_slice key)
{
    PyObject **slot = &dec->keys[key_slot(key)];
    PyObject *str = *slot;

    if (str && (size_t)PyUnicode_GET_LENGTH(str) == key.len && PyUnicode_IS_ASCII(str) &&
        memcmp(PyUnicode_DATA(str), key.ptr, key.len) == 0) {
        Py_INCREF(str);
        return str;
    }
    str = PyUnicode_DecodeUTF8(key.ptr, (Py_ssize_t)key.len, NULL);
    if (!str || key.len > 64)
        return str;
    Py_XDECREF(*slot);
    *slot = str;
    Py_INCREF(str);
    return str;
}

static PyObject *dec_array(struct hd_py_dec *dec, hd_json_val val)
{
    size_t size = hd_json_size(val);
    struct hd_json_iter it = hd_json_iter(val);
    PyObject *seq = dec->is_key ? PyTuple_New((Py_ssize_t)size) : PyList_New((Py_ssize_t)size);

    for (Py_ssize_t i = 0; seq && hd_json_next(&it); i++) {
        PyObject *item = hd_py_dec_value(dec, it.val);

        if (!item)
            Py_CLEAR(seq);
        else if (dec->is_key)
            PyTuple_SET_ITEM(seq, i, item);
        else
            PyList_SET_ITEM(seq, i, item);
    }
    return seq;
}

static PyObject *dec_dict(struct hd_py_dec *dec, hd_json_val val)
{
    struct hd_json_iter it = hd_json_iter(val);
    PyObject *dict = PyDict_New();

    while (dict && hd_json_next(&it)) {
        PyObject *key;
        PyObject *item;

        if (dec->mode != HD_PY_PLAIN && hd_slice_eq(it.key, HD_S("$"))) {
            Py_CLEAR(dict);
            hd_py_dec_refuse("the member $ is not the first");
            break;
        }
        key = dec_key(dec, it.key);
        item = key ? hd_py_dec_value(dec, it.val) : NULL;

        if (!item || PyDict_SetItem(dict, key, item) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(item);
    }
    return dict;
}

static PyObject *dec_object(struct hd_py_dec *dec, hd_json_val val)
{
    struct hd_json_iter it;

    if (dec->mode == HD_PY_PLAIN)
        return dec_dict(dec, val);
    it = hd_json_iter(val);
    if (!hd_json_next(&it) || !hd_slice_eq(it.key, HD_S("$")))
        return dec_dict(dec, val);
    if (!hd_json_is_string(it.val))
        return hd_py_dec_refuse("the member $ is not a string");
    return hd_py_dec_record(dec, val, hd_json_string(it.val));
}

PyObject *hd_py_dec_value(struct hd_py_dec *dec, hd_json_val val)
{
    switch (hd_json_type(val)) {
    case HD_JSON_STRING:
        return dec_string(val);
    case HD_JSON_OBJECT:
        return dec_object(dec, val);
    case HD_JSON_ARRAY:
        return dec_array(dec, val);
    case HD_JSON_NUMBER:
        return dec_number(val);
    case HD_JSON_BOOL:
        return PyBool_FromLong(hd_json_is_true(val));
    case HD_JSON_NULL:
        Py_RETURN_NONE;
    case HD_JSON_NONE:
        break;
    }
    return hd_py_dec_refuse("no value");
}

PyObject *hd_py_decode(struct hd_py_codec *codec, enum hd_py_mode mode, struct hd_slice text)
{
    struct hd_py_dec dec = {.codec = codec, .mode = mode};
    struct hd_json json = {NULL};
    struct heddle_error fault = {0};
    PyObject *obj = NULL;
    int err = hd_json_parse(&json, text, &fault);

    if (err == HD_ENOMEM)
        return PyErr_NoMemory();
    if (err != 0)
        return hd_py_dec_refuse(fault.text);
    pause_collector(&dec, text.len);
    obj = hd_py_dec_value(&dec, hd_json_root(&json));
    hd_py_dec_leave(&dec);
    hd_json_fini(&json);
    for (size_t i = 0; i < HD_COUNT(dec.keys); i++)
        Py_XDECREF(dec.keys[i]);
    return obj;
}
