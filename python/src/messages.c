/*
 * Encodes and decodes LangChain messages.
 *
 * Writing reads the pydantic instance's __dict__: it must have exactly the fields of its class,
 * each of the expected type, or the message is foreign.
 *
 * Reading builds the instance without its constructor where the result is the same:
 * heddle/_classes.py compares both ways for each class at import (may_bypass), and here each value
 * must have the form that the constructor's validation would leave unchanged. Other values go to
 * the constructor.
 */
#include "codec.h"

/* ---- writing ---------------------------------------------------------- */

/* The values of the fields, by slot, borrowed. False: not exactly the fields of the class. */
static bool read_fields(const struct hd_py_message *message, PyObject *dict, PyObject **values)
{
    PyObject *key;
    PyObject *value;
    Py_ssize_t pos = 0;
    size_t slot = 0;

    if ((size_t)PyDict_GET_SIZE(dict) != message->count)
        return false;
    while (PyDict_Next(dict, &pos, &key, &value)) {
        const struct hd_py_member *member = &message->members[message->by_slot[slot]];

        if (key != member->name &&
            !(PyUnicode_Check(key) && PyUnicode_Compare(key, member->name) == 0))
            return false;
        values[message->by_slot[slot++]] = value;
    }
    return true;
}

/* As read_fields, for an instance whose fields were assigned in another order. */
static bool find_fields(const struct hd_py_message *message, PyObject *dict, PyObject **values)
{
    if ((size_t)PyDict_GET_SIZE(dict) != message->count)
        return false;
    for (size_t i = 0; i < message->count; i++) {
        values[i] = PyDict_GetItemWithError(dict, message->members[i].name);
        if (!values[i])
            return false;
    }
    return true;
}

/* Reports whether the member can be written, and whether it is omitted. */
static bool fits(const struct hd_py_message *message, const struct hd_py_member *member,
                 PyObject *value, bool *is_omitted)
{
    *is_omitted = false;
    switch (member->rule) {
    case HD_PY_CONTENT:
        return PyUnicode_CheckExact(value) || PyList_CheckExact(value);
    case HD_PY_TEXT:
        return PyUnicode_CheckExact(value);
    case HD_PY_OPT_TEXT:
        *is_omitted = value == Py_None;
        return *is_omitted || PyUnicode_CheckExact(value);
    case HD_PY_STATUS:
        *is_omitted =
            PyUnicode_CheckExact(value) && PyUnicode_CompareWithASCIIString(value, "success") == 0;
        return PyUnicode_CheckExact(value);
    case HD_PY_OPT_DICT:
        *is_omitted = PyDict_CheckExact(value) && PyDict_GET_SIZE(value) == 0;
        return PyDict_CheckExact(value);
    case HD_PY_OPT_LIST:
        *is_omitted = PyList_CheckExact(value) && PyList_GET_SIZE(value) == 0;
        return PyList_CheckExact(value);
    case HD_PY_OPT_ANY:
        *is_omitted = value == Py_None;
        return true;
    case HD_PY_TYPE:
        *is_omitted = true;
        return PyUnicode_CheckExact(value) && PyUnicode_Compare(value, message->tag) == 0;
    case HD_PY_DEFAULT:
        *is_omitted = true;
        return value == member->initial;
    }
    return false;
}

/* No extra fields and no private attributes. */
static bool is_bare(PyObject *obj, const struct hd_py_names *names)
{
    PyObject *extra = PyObject_GenericGetAttr(obj, names->__pydantic_extra__);
    PyObject *private = PyObject_GenericGetAttr(obj, names->__pydantic_private__);
    bool is_bare = extra && private && private == Py_None &&
                   (extra == Py_None || (PyDict_Check(extra) && PyDict_GET_SIZE(extra) == 0));

    PyErr_Clear();
    Py_XDECREF(extra);
    Py_XDECREF(private);
    return is_bare;
}

static int put_member(struct hd_py_enc *enc, const struct hd_py_member *member, PyObject *value)
{
    if (HD_PY_PUT(enc->out, ",\"") != 0 ||
        hd_py_put_raw(enc->out, member->text.ptr, member->text.len) != 0 ||
        HD_PY_PUT(enc->out, "\":") != 0)
        return -1;
    return hd_py_enc_value(enc, value);
}

static int put_members(struct hd_py_enc *enc, const struct hd_py_message *message,
                       PyObject **values, const bool *is_omitted)
{
    int rc = HD_PY_PUT(enc->out, "{\"$\":\"message\",\"type\":\"");

    if (rc == 0)
        rc = hd_py_put_raw(enc->out, message->tag_text.ptr, message->tag_text.len);
    if (rc == 0)
        rc = HD_PY_PUT(enc->out, "\"");
    for (size_t i = 0; rc == 0 && i < message->count; i++) {
        if (!is_omitted[i])
            rc = put_member(enc, &message->members[i], values[i]);
    }
    return rc == 0 ? HD_PY_PUT(enc->out, "}") : rc;
}

int hd_py_enc_message(struct hd_py_enc *enc, PyObject *obj, const struct hd_py_message *message)
{
    PyObject *values[HD_PY_MAX_MEMBERS];
    bool is_omitted[HD_PY_MAX_MEMBERS];
    PyObject *dict;
    int rc = 0;

    if (!is_bare(obj, &enc->codec->ext->names))
        return HD_PY_UNFIT;
    dict = PyObject_GenericGetDict(obj, NULL);
    if (!dict)
        return -1;
    if (!read_fields(message, dict, values) && !find_fields(message, dict, values))
        rc = HD_PY_UNFIT;
    for (size_t i = 0; rc == 0 && i < message->count; i++) {
        if (!fits(message, &message->members[i], values[i], &is_omitted[i]))
            rc = HD_PY_UNFIT;
    }
    /* Own the values: a nested foreign object runs Python code that might assign fields. */
    for (size_t i = 0; rc == 0 && i < message->count; i++)
        Py_INCREF(values[i]);
    if (rc == 0) {
        rc = put_members(enc, message, values, is_omitted);
        for (size_t i = 0; i < message->count; i++)
            Py_DECREF(values[i]);
    }
    Py_DECREF(dict);
    return rc;
}

/* ---- reading: values that the constructor leaves unchanged -------------- */

static bool is_str_or_none(PyObject *value)
{
    return value == Py_None || PyUnicode_CheckExact(value);
}

static bool is_content(PyObject *value)
{
    if (PyUnicode_CheckExact(value))
        return true;
    if (!PyList_CheckExact(value))
        return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); i++) {
        PyObject *block = PyList_GET_ITEM(value, i);

        if (!PyUnicode_CheckExact(block) && !PyDict_CheckExact(block))
            return false;
    }
    return true;
}

static bool is_tool_call(PyObject *call)
{
    PyObject *name;
    PyObject *args;
    PyObject *id;
    PyObject *type;

    if (!PyDict_CheckExact(call) || PyDict_GET_SIZE(call) != 4)
        return false;
    name = PyDict_GetItemString(call, "name");
    args = PyDict_GetItemString(call, "args");
    id = PyDict_GetItemString(call, "id");
    type = PyDict_GetItemString(call, "type");
    return name && args && id && type && PyUnicode_CheckExact(name) && PyDict_CheckExact(args) &&
           is_str_or_none(id) && PyUnicode_CheckExact(type) &&
           PyUnicode_CompareWithASCIIString(type, "tool_call") == 0;
}

static bool are_tool_calls(PyObject *calls)
{
    if (!PyList_CheckExact(calls))
        return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(calls); i++) {
        if (!is_tool_call(PyList_GET_ITEM(calls, i)))
            return false;
    }
    return true;
}

static bool is_count(PyObject *usage, const char *name)
{
    PyObject *value = PyDict_GetItemString(usage, name);

    return value && PyLong_CheckExact(value);
}

/* Token counts without details, the common case; others go to the constructor. */
static bool is_usage(PyObject *usage)
{
    return usage == Py_None ||
           (PyDict_CheckExact(usage) && PyDict_GET_SIZE(usage) == 3 &&
            is_count(usage, "input_tokens") && is_count(usage, "output_tokens") &&
            is_count(usage, "total_tokens"));
}

static bool is_settled(const struct hd_py_message *message, const struct hd_py_member *member,
                       PyObject *value)
{
    switch (member->rule) {
    case HD_PY_CONTENT:
        return is_content(value);
    case HD_PY_TEXT:
        return PyUnicode_CheckExact(value);
    case HD_PY_OPT_TEXT:
        return is_str_or_none(value);
    case HD_PY_STATUS:
        return PyUnicode_CheckExact(value) &&
               (PyUnicode_CompareWithASCIIString(value, "success") == 0 ||
                PyUnicode_CompareWithASCIIString(value, "error") == 0);
    case HD_PY_OPT_DICT:
        /* The constructor of an AI message parses raw tool calls in there. */
        return PyDict_CheckExact(value) &&
               !(message->is_ai && PyDict_GetItemString(value, "tool_calls"));
    case HD_PY_OPT_LIST:
        return hd_slice_eq(member->text, HD_S("tool_calls")) && are_tool_calls(value);
    case HD_PY_OPT_ANY:
        return hd_slice_eq(member->text, HD_S("artifact")) ||
               (hd_slice_eq(member->text, HD_S("usage_metadata")) && is_usage(value));
    default:
        return false;
    }
}

/* ---- reading: building ------------------------------------------------ */

/* The default of an absent field: a new reference. */
static PyObject *initial_value(const struct hd_py_member *member)
{
    if (member->rule == HD_PY_OPT_DICT)
        return PyDict_New();
    if (member->rule == HD_PY_OPT_LIST)
        return PyList_New(0);
    Py_INCREF(member->initial);
    return member->initial;
}

static PyObject *build_dict(const struct hd_py_message *message, PyObject **values)
{
    PyObject *dict = PyDict_New();

    for (size_t slot = 0; dict && slot < message->count; slot++) {
        size_t i = message->by_slot[slot];
        PyObject *value = values[i] ? Py_NewRef(values[i]) : initial_value(&message->members[i]);

        if (!value || PyDict_SetItem(dict, message->members[i].name, value) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *build_fields_set(const struct hd_py_message *message, PyObject **values)
{
    PyObject *set = PySet_New(NULL);

    for (size_t i = 0; set && i < message->count; i++) {
        if (values[i] && PySet_Add(set, message->members[i].name) != 0)
            Py_CLEAR(set);
    }
    return set;
}

/* The constructor's work after validation. */
static PyObject *bypass(const struct hd_py_ext *ext, const struct hd_py_message *message,
                        PyObject **values)
{
    const struct hd_py_names *names = &ext->names;
    PyObject *dict = build_dict(message, values);
    PyObject *set = dict ? build_fields_set(message, values) : NULL;
    PyObject *extra = !set ? NULL : message->has_extra ? PyDict_New() : Py_NewRef(Py_None);
    PyObject *obj = extra ? message->type->tp_new(message->type, ext->empty_tuple, NULL) : NULL;

    if (obj && (PyObject_GenericSetAttr(obj, names->__dict__, dict) != 0 ||
                PyObject_GenericSetAttr(obj, names->__pydantic_fields_set__, set) != 0 ||
                PyObject_GenericSetAttr(obj, names->__pydantic_extra__, extra) != 0 ||
                PyObject_GenericSetAttr(obj, names->__pydantic_private__, Py_None) != 0))
        Py_CLEAR(obj);
    Py_XDECREF(dict);
    Py_XDECREF(set);
    Py_XDECREF(extra);
    return obj;
}

static bool may_bypass(const struct hd_py_message *message, PyObject **values)
{
    if (!message->may_bypass)
        return false;
    for (size_t i = 0; i < message->count; i++) {
        const struct hd_py_member *member = &message->members[i];

        if (values[i] ? !is_settled(message, member, values[i])
                      : !member->initial && member->rule != HD_PY_OPT_DICT &&
                            member->rule != HD_PY_OPT_LIST)
            return false;
    }
    return true;
}

/* As the wrapped serializer does: a value that the constructor rejects is kept unvalidated. */
static PyObject *construct(const struct hd_py_ext *ext, const struct hd_py_message *message,
                           PyObject *kwargs)
{
    PyObject *obj = PyObject_VectorcallDict((PyObject *)message->type, NULL, 0, kwargs);
    PyObject *method;

    if (obj || !PyErr_ExceptionMatches(PyExc_Exception))
        return obj;
    PyErr_Clear();
    method = PyObject_GetAttr((PyObject *)message->type, ext->names.model_construct);
    if (!method)
        return NULL;
    obj = PyObject_VectorcallDict(method, NULL, 0, kwargs);
    Py_DECREF(method);
    return obj;
}

static PyObject *construct_from(const struct hd_py_ext *ext, const struct hd_py_message *message,
                                PyObject **values, PyObject *extras)
{
    PyObject *kwargs = extras ? PyDict_Copy(extras) : PyDict_New();
    PyObject *obj = NULL;

    for (size_t i = 0; kwargs && i < message->count; i++) {
        if (values[i] && PyDict_SetItem(kwargs, message->members[i].name, values[i]) != 0)
            Py_CLEAR(kwargs);
    }
    if (kwargs)
        obj = construct(ext, message, kwargs);
    Py_XDECREF(kwargs);
    return obj;
}

/* ---- reading: the record ---------------------------------------------- */

/* Writers keep the order of the table, so the search starts after the last hit. */
static size_t find_member(const struct hd_py_message *message, struct hd_slice name, size_t from)
{
    for (size_t n = 0; n < message->count; n++) {
        size_t i = (from + n) % message->count;

        if (message->members[i].rule != HD_PY_DEFAULT &&
            hd_slice_eq(message->members[i].text, name))
            return i;
    }
    return message->count;
}

static int keep_extra(PyObject **extras, struct hd_slice name, PyObject *value)
{
    PyObject *key = PyUnicode_DecodeUTF8(name.ptr, (Py_ssize_t)name.len, NULL);
    int rc = -1;

    if (key && !*extras)
        *extras = PyDict_New();
    if (key && *extras)
        rc = PyDict_SetItem(*extras, key, value);
    Py_XDECREF(key);
    return rc;
}

/* Fills values (owned) and extras, the members that the class does not have. */
static int read_members(struct hd_py_dec *dec, hd_json_val val, const struct hd_py_message *message,
                        PyObject **values, PyObject **extras)
{
    struct hd_json_iter it = hd_json_iter(val);
    size_t next = 0;

    while (hd_json_next(&it)) {
        PyObject *value;
        size_t i;
        int rc = 0;

        if (hd_slice_eq(it.key, HD_S("$")) || hd_slice_eq(it.key, HD_S("type")))
            continue;
        value = hd_py_dec_value(dec, it.val);
        if (!value)
            return -1;
        i = find_member(message, it.key, next);
        if (i < message->count) {
            Py_XSETREF(values[i], value);
            next = i + 1;
            continue;
        }
        rc = keep_extra(extras, it.key, value);
        Py_DECREF(value);
        if (rc != 0)
            return -1;
    }
    return 0;
}

static PyObject *refuse(const struct hd_py_member *member)
{
    return PyErr_Format(PyExc_ValueError, "not hd1: a message record lacks its %U", member->name);
}

/* A record without a required member is rejected, independent of the constructor. */
static bool is_complete(const struct hd_py_message *message, PyObject **values)
{
    for (size_t i = 0; i < message->count; i++) {
        const struct hd_py_member *member = &message->members[i];

        if (!values[i] && (member->rule == HD_PY_CONTENT || member->rule == HD_PY_TEXT)) {
            refuse(member);
            return false;
        }
        if (member->rule == HD_PY_CONTENT && !PyUnicode_CheckExact(values[i]) &&
            !PyList_CheckExact(values[i])) {
            hd_py_dec_refuse("the content of a message is neither string nor list");
            return false;
        }
    }
    return true;
}

PyObject *hd_py_dec_message(struct hd_py_dec *dec, hd_json_val val)
{
    hd_json_val tag = hd_json_get(val, HD_S("type"));
    const struct hd_py_message *message;
    PyObject *values[HD_PY_MAX_MEMBERS] = {NULL};
    PyObject *extras = NULL;
    PyObject *obj = NULL;
    bool was_key = dec->is_key;

    if (!hd_json_is_string(tag))
        return hd_py_dec_refuse("a message record lacks its type");
    message = hd_py_classes_message(dec->codec->classes, hd_json_string(tag));
    if (!message)
        return hd_py_dec_refuse("a message of unknown type");
    dec->is_key = false;
    if (read_members(dec, val, message, values, &extras) == 0 && is_complete(message, values)) {
        if (!extras && may_bypass(message, values)) {
            obj = bypass(dec->codec->ext, message, values);
        } else {
            hd_py_dec_leave(dec);
            obj = construct_from(dec->codec->ext, message, values, extras);
            hd_py_dec_return(dec);
        }
    }
    dec->is_key = was_key;
    for (size_t i = 0; i < message->count; i++)
        Py_XDECREF(values[i]);
    Py_XDECREF(extras);
    return obj;
}
