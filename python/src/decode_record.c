/*
 * Reads records other than messages. A record without an installed class, and any of an unknown
 * kind, is kept unchanged.
 */
#include "codec.h"

static PyObject *refuse_record(const char *kind)
{
    return PyErr_Format(PyExc_ValueError, "not hd1: a %s record lacks a member it needs", kind);
}

/* New reference; the member or, with `required`, ValueError. NULL without exception: absent. */
static PyObject *dec_member(struct hd_py_dec *dec, hd_json_val val, struct hd_slice name,
                            const char *required)
{
    hd_json_val member = hd_json_get(val, name);

    if (!member)
        return required ? refuse_record(required) : NULL;
    return hd_py_dec_value(dec, member);
}

/* A string member, borrowed. False with ValueError. */
static bool text_member(hd_json_val val, struct hd_slice name, const char *kind,
                        struct hd_slice *out)
{
    hd_json_val member = hd_json_get(val, name);

    if (!hd_json_is_string(member)) {
        refuse_record(kind);
        return false;
    }
    *out = hd_json_string(member);
    return true;
}

static PyTypeObject *class_of(const struct hd_py_dec *dec, enum hd_py_kind kind)
{
    return dec->codec->classes->types[kind];
}

/* Calls type(**kwargs) and releases kwargs. */
static PyObject *construct(struct hd_py_dec *dec, PyTypeObject *type, PyObject *kwargs)
{
    PyObject *obj;

    hd_py_dec_leave(dec);
    obj = PyObject_VectorcallDict((PyObject *)type, NULL, 0, kwargs);
    hd_py_dec_return(dec);
    Py_DECREF(kwargs);
    return obj;
}

/* Adds the member to kwargs if present. */
static int take_member(struct hd_py_dec *dec, hd_json_val val, const char *name, PyObject *kwargs,
                       const char *required)
{
    PyObject *value = dec_member(dec, val, hd_slice_cstr(name), required);
    int rc;

    if (!value)
        return PyErr_Occurred() ? -1 : 0;
    rc = PyDict_SetItemString(kwargs, name, value);
    Py_DECREF(value);
    return rc;
}

static int take_timeout(struct hd_py_dec *dec, hd_json_val val, PyObject *kwargs)
{
    hd_json_val timeout = hd_json_get(val, HD_S("timeout"));
    PyObject *policy;
    PyObject *fields;
    int rc;

    if (!timeout || hd_json_is_null(timeout))
        return 0;
    fields = hd_py_dec_value(dec, timeout);
    if (!fields)
        return -1;
    if (!PyDict_CheckExact(fields)) {
        Py_DECREF(fields);
        refuse_record("send");
        return -1;
    }
    policy = construct(dec, class_of(dec, HD_PY_TIMEOUT), fields);
    if (!policy)
        return -1;
    rc = PyDict_SetItemString(kwargs, "timeout", policy);
    Py_DECREF(policy);
    return rc;
}

static PyObject *dec_send(struct hd_py_dec *dec, hd_json_val val)
{
    bool has_timeout = hd_json_get(val, HD_S("timeout")) != NULL;
    PyObject *kwargs;
    struct hd_slice node;

    if (!class_of(dec, HD_PY_SEND) || (has_timeout && !class_of(dec, HD_PY_TIMEOUT)))
        return hd_py_dec_opaque(dec, val);
    if (!text_member(val, HD_S("node"), "send", &node))
        return NULL;
    kwargs = PyDict_New();
    if (!kwargs)
        return NULL;
    if (take_member(dec, val, "node", kwargs, "send") != 0 ||
        take_member(dec, val, "arg", kwargs, "send") != 0 || take_timeout(dec, val, kwargs) != 0) {
        Py_DECREF(kwargs);
        return NULL;
    }
    return construct(dec, class_of(dec, HD_PY_SEND), kwargs);
}

static PyObject *dec_command(struct hd_py_dec *dec, hd_json_val val)
{
    static const char *const names[] = {"graph", "update", "resume", "goto"};
    PyObject *kwargs;

    if (!class_of(dec, HD_PY_COMMAND))
        return hd_py_dec_opaque(dec, val);
    kwargs = PyDict_New();
    for (size_t i = 0; kwargs && i < HD_COUNT(names); i++) {
        if (take_member(dec, val, names[i], kwargs, NULL) != 0)
            Py_CLEAR(kwargs);
    }
    return kwargs ? construct(dec, class_of(dec, HD_PY_COMMAND), kwargs) : NULL;
}

/* An interrupt with a schema stays opaque if the installed class has no field for it. */
static PyObject *dec_interrupt(struct hd_py_dec *dec, hd_json_val val)
{
    bool has_schema = hd_json_get(val, HD_S("response_schema")) != NULL;
    PyTypeObject *type = class_of(dec, HD_PY_INTERRUPT);
    PyObject *kwargs;
    struct hd_slice id;

    if (!type || (has_schema && !dec->codec->classes->has_response_schema))
        return hd_py_dec_opaque(dec, val);
    if (!text_member(val, HD_S("id"), "interrupt", &id))
        return NULL;
    kwargs = PyDict_New();
    if (!kwargs)
        return NULL;
    if (take_member(dec, val, "value", kwargs, "interrupt") != 0 ||
        take_member(dec, val, "id", kwargs, "interrupt") != 0 ||
        take_member(dec, val, "response_schema", kwargs, NULL) != 0) {
        Py_DECREF(kwargs);
        return NULL;
    }
    return construct(dec, type, kwargs);
}

static PyObject *dec_wrapped(struct hd_py_dec *dec, hd_json_val val, enum hd_py_kind kind)
{
    PyObject *value;
    PyObject *obj;

    if (!class_of(dec, kind))
        return hd_py_dec_opaque(dec, val);
    value = dec_member(dec, val, HD_S("value"), kind == HD_PY_DELTA ? "delta" : "overwrite");
    if (!value)
        return NULL;
    obj = PyObject_CallOneArg((PyObject *)class_of(dec, kind), value);
    Py_DECREF(value);
    return obj;
}

static PyObject *dec_overwrite(struct hd_py_dec *dec, hd_json_val val)
{
    return dec_wrapped(dec, val, HD_PY_OVERWRITE);
}

static PyObject *dec_delta(struct hd_py_dec *dec, hd_json_val val)
{
    return dec_wrapped(dec, val, HD_PY_DELTA);
}

/* Unhashable keys and elements leave a TypeError: the record is then kept unchanged. */
static PyObject *keep_unhashable(struct hd_py_dec *dec, hd_json_val val)
{
    if (!PyErr_ExceptionMatches(PyExc_TypeError))
        return NULL;
    PyErr_Clear();
    return hd_py_dec_opaque(dec, val);
}

static int add_pair(struct hd_py_dec *dec, hd_json_val pair, PyObject *dict)
{
    bool was_key = dec->is_key;
    PyObject *key;
    PyObject *value;
    int rc = -1;

    if (!hd_json_is_array(pair) || hd_json_size(pair) != 2) {
        hd_py_dec_refuse("the items of a map are pairs");
        return -1;
    }
    dec->is_key = true;
    key = hd_py_dec_value(dec, yyjson_arr_get(pair, 0));
    dec->is_key = was_key;
    value = key ? hd_py_dec_value(dec, yyjson_arr_get(pair, 1)) : NULL;
    if (value)
        rc = PyDict_SetItem(dict, key, value);
    Py_XDECREF(key);
    Py_XDECREF(value);
    return rc;
}

static PyObject *dec_map(struct hd_py_dec *dec, hd_json_val val)
{
    hd_json_val items = hd_json_get(val, HD_S("items"));
    struct hd_json_iter it = hd_json_iter(items);
    PyObject *dict;

    if (!hd_json_is_array(items))
        return refuse_record("map");
    dict = PyDict_New();
    while (dict && hd_json_next(&it)) {
        if (add_pair(dec, it.val, dict) != 0)
            Py_CLEAR(dict);
    }
    return dict ? dict : keep_unhashable(dec, val);
}

static PyObject *dec_set(struct hd_py_dec *dec, hd_json_val val)
{
    hd_json_val items = hd_json_get(val, HD_S("items"));
    bool was_key = dec->is_key;
    bool is_frozen = was_key || hd_json_is_true(hd_json_get(val, HD_S("frozen")));
    struct hd_json_iter it = hd_json_iter(items);
    PyObject *set;

    if (!hd_json_is_array(items))
        return refuse_record("set");
    set = is_frozen ? PyFrozenSet_New(NULL) : PySet_New(NULL);
    dec->is_key = true;
    while (set && hd_json_next(&it)) {
        PyObject *item = hd_py_dec_value(dec, it.val);

        /* A frozenset may be filled until another object references it. */
        if (!item || PySet_Add(set, item) != 0)
            Py_CLEAR(set);
        Py_XDECREF(item);
    }
    dec->is_key = was_key;
    return set ? set : keep_unhashable(dec, val);
}

static bool is_integer_text(struct hd_slice text)
{
    size_t start = text.len > 1 && text.ptr[0] == '-';

    for (size_t i = start; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
    }
    return text.len > start;
}

static PyObject *dec_int(struct hd_py_dec *dec, hd_json_val val)
{
    struct hd_slice text;

    (void)dec;
    if (!text_member(val, HD_S("v"), "int", &text))
        return NULL;
    if (!is_integer_text(text))
        return hd_py_dec_refuse("an int record holds no integer");
    return PyLong_FromString(text.ptr, NULL, 10);
}

static PyObject *dec_float(struct hd_py_dec *dec, hd_json_val val)
{
    struct hd_slice text;

    (void)dec;
    if (!text_member(val, HD_S("v"), "float", &text))
        return NULL;
    if (hd_slice_eq(text, HD_S("nan")))
        return PyFloat_FromDouble((double)NAN);
    if (hd_slice_eq(text, HD_S("inf")))
        return PyFloat_FromDouble(Py_HUGE_VAL);
    if (hd_slice_eq(text, HD_S("-inf")))
        return PyFloat_FromDouble(-Py_HUGE_VAL);
    if (hd_slice_eq(text, HD_S("-0")))
        return PyFloat_FromDouble(-0.0);
    return hd_py_dec_refuse("a float record holds nan, inf, -inf or -0");
}

static PyObject *dec_bytes(struct hd_py_dec *dec, hd_json_val val)
{
    struct hd_slice text;

    (void)dec;
    if (!text_member(val, HD_S("v"), "bytes", &text))
        return NULL;
    return hd_py_base64_decode(text, hd_json_is_true(hd_json_get(val, HD_S("mutable"))));
}

static PyObject *dec_utf16(struct hd_py_dec *dec, hd_json_val val)
{
    struct hd_slice text;
    PyObject *bytes;
    PyObject *str;

    (void)dec;
    if (!text_member(val, HD_S("v"), "utf16", &text))
        return NULL;
    bytes = hd_py_base64_decode(text, false);
    if (!bytes)
        return NULL;
    str = PyUnicode_Decode(PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes), "utf-16-le",
                           "surrogatepass");
    Py_DECREF(bytes);
    return str;
}

static PyObject *dec_datetime(struct hd_py_dec *dec, hd_json_val val)
{
    struct hd_slice text;
    PyObject *str;
    PyObject *moment;

    if (!text_member(val, HD_S("v"), "datetime", &text))
        return NULL;
    str = PyUnicode_DecodeUTF8(text.ptr, (Py_ssize_t)text.len, NULL);
    if (!str)
        return NULL;
    moment = PyObject_CallOneArg(dec->codec->classes->parse_datetime, str);
    Py_DECREF(str);
    /* None: a time that Python's datetime cannot represent. */
    if (moment == Py_None) {
        Py_DECREF(moment);
        return hd_py_dec_opaque(dec, val);
    }
    return moment;
}

static PyObject *dec_undefined(struct hd_py_dec *dec, hd_json_val val)
{
    (void)dec;
    (void)val;
    Py_RETURN_NONE;
}

static PyObject *dec_error(struct hd_py_dec *dec, hd_json_val val)
{
    PyObject *type = dec_member(dec, val, HD_S("type"), "error");
    PyObject *message = type ? dec_member(dec, val, HD_S("message"), "error") : NULL;
    PyObject *text = NULL;

    if (message && PyUnicode_Check(type) && PyUnicode_Check(message))
        text = PyUnicode_FromFormat("%U(%R)", type, message);
    else if (message)
        refuse_record("error");
    Py_XDECREF(type);
    Py_XDECREF(message);
    return text;
}

/* A tag unknown to the wrapped serializer belongs to another runtime. It may reject pickle. */
static bool is_unknown_tag(struct hd_slice type)
{
    return PyErr_ExceptionMatches(PyExc_NotImplementedError) && !hd_slice_eq(type, HD_S("pickle"));
}

/* Bytes tagged "json" come from JavaScript, and only JavaScript can read them. */
static PyObject *dec_foreign(struct hd_py_dec *dec, hd_json_val val)
{
    struct hd_slice type;
    struct hd_slice text;
    PyObject *bytes;
    PyObject *obj;

    if (!text_member(val, HD_S("type"), "foreign", &type) ||
        !text_member(val, HD_S("v"), "foreign", &text))
        return NULL;
    if (hd_slice_eq(type, HD_S("json")))
        return hd_py_dec_opaque(dec, val);
    bytes = hd_py_base64_decode(text, false);
    if (!bytes)
        return NULL;
    hd_py_dec_leave(dec);
    obj = hd_py_call_loads(dec->codec, type, bytes);
    hd_py_dec_return(dec);
    Py_DECREF(bytes);
    if (!obj && is_unknown_tag(type)) {
        PyErr_Clear();
        return hd_py_dec_opaque(dec, val);
    }
    return obj;
}

PyObject *hd_py_dec_opaque(struct hd_py_dec *dec, hd_json_val val)
{
    struct hd_buf text;
    PyObject *bytes = NULL;
    PyObject *obj = NULL;

    hd_buf_init(&text, PY_SSIZE_T_MAX);
    if (hd_json_write_val(&text, val) == 0)
        bytes = PyBytes_FromStringAndSize(text.ptr, (Py_ssize_t)text.len);
    else
        PyErr_NoMemory();
    hd_buf_fini(&text);
    if (bytes)
        obj = PyObject_CallOneArg((PyObject *)class_of(dec, HD_PY_FOREIGN), bytes);
    Py_XDECREF(bytes);
    return obj;
}

static const struct {
    struct hd_slice kind;
    PyObject *(*decode)(struct hd_py_dec *dec, hd_json_val val);
} readers[] = {
    {{"message", 7}, hd_py_dec_message},
    {{"send", 4}, dec_send},
    {{"command", 7}, dec_command},
    {{"interrupt", 9}, dec_interrupt},
    {{"overwrite", 9}, dec_overwrite},
    {{"delta", 5}, dec_delta},
    {{"map", 3}, dec_map},
    {{"set", 3}, dec_set},
    {{"int", 3}, dec_int},
    {{"float", 5}, dec_float},
    {{"bytes", 5}, dec_bytes},
    {{"utf16", 5}, dec_utf16},
    {{"datetime", 8}, dec_datetime},
    {{"undefined", 9}, dec_undefined},
    {{"error", 5}, dec_error},
    {{"foreign", 7}, dec_foreign},
};

PyObject *hd_py_dec_record(struct hd_py_dec *dec, hd_json_val val, struct hd_slice kind)
{
    for (size_t i = 0; i < HD_COUNT(readers); i++) {
        if (hd_slice_eq(readers[i].kind, kind))
            return readers[i].decode(dec, val);
    }
    return hd_py_dec_opaque(dec, val);
}
