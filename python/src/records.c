/*
 * The records of LangGraph's own classes, datetimes and exceptions, both ways.
 * Messages have a file of their own.
 */
#include "codec.h"

/* ---- writing ---------------------------------------------------------- */

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

/* Left out when it is None. */
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
 * {"run_timeout":SECONDS,"idle_timeout":SECONDS,"refresh_on":"heartbeat"}, as
 * langgraph's TimeoutPolicy names them; members at their default are left out.
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
    if (rc == 0 && !(PyUnicode_Check(refresh) && PyUnicode_CompareWithASCIIString(refresh, "auto") == 0)) {
        rc = HD_PY_PUT(enc->out, ",\"refresh_on\":");
        if (rc == 0)
            rc = hd_py_enc_value(enc, refresh);
    }
    Py_DECREF(refresh);
    if (rc != 0)
        return rc;
    /* The first member brought a comma along. */
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

/* A schema for the answer is a dict (JSON Schema) once it is stored; the class itself is foreign. */
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

/* How deep a JSON text that we wrote ourselves is nested. */
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

/* A record of somebody else's, written back as it came. */
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
 * {"$":"error","type":T,"message":M}. The wrapped serializer keeps exceptions
 * as their repr, and so does reading this record: only an exception whose repr
 * is T(M) is written as one, the others as that text.
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

/* ---- reading ---------------------------------------------------------- */

static PyObject *refuse_record(const char *kind)
{
    return PyErr_Format(PyExc_ValueError, "not hd1: a %s record lacks a member it needs", kind);
}

/* New reference; the member or, with `required`, ValueError. NULL without exception: not there. */
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

/* Adds the member to kwargs when it is there. */
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

/* An interrupt with a schema stays opaque where the installed class has no place for it. */
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

/* Keys and elements that Python cannot hash leave a TypeError: the record is kept as it is then. */
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

        /* A frozenset may be filled as long as nobody else has seen it. */
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
    /* None: a moment that Python's datetime cannot hold. */
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

/* A tag that the wrapped serializer does not know is another runtime's. "pickle" it knows and may refuse. */
static bool is_unknown_tag(struct hd_slice type)
{
    return PyErr_ExceptionMatches(PyExc_NotImplementedError) && !hd_slice_eq(type, HD_S("pickle"));
}

/* Bytes tagged "json" are JavaScript's, which only JavaScript can read. */
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
    {{"message", 7}, hd_py_dec_message}, {{"send", 4}, dec_send},
    {{"command", 7}, dec_command},       {{"interrupt", 9}, dec_interrupt},
    {{"overwrite", 9}, dec_overwrite},   {{"delta", 5}, dec_delta},
    {{"map", 3}, dec_map},               {{"set", 3}, dec_set},
    {{"int", 3}, dec_int},               {{"float", 5}, dec_float},
    {{"bytes", 5}, dec_bytes},           {{"utf16", 5}, dec_utf16},
    {{"datetime", 8}, dec_datetime},     {{"undefined", 9}, dec_undefined},
    {{"error", 5}, dec_error},           {{"foreign", 7}, dec_foreign},
};

PyObject *hd_py_dec_record(struct hd_py_dec *dec, hd_json_val val, struct hd_slice kind)
{
    for (size_t i = 0; i < HD_COUNT(readers); i++) {
        if (hd_slice_eq(readers[i].kind, kind))
            return readers[i].decode(dec, val);
    }
    return hd_py_dec_opaque(dec, val);
}
