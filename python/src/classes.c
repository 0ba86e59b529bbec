/*
 * The table of known classes, filled from Python.
 *
 *   Classes(types: dict[str, type | None], parse_datetime, has_response_schema)
 *   add_message(cls, tag, fields, has_extra, is_ai, is_chunk)
 *   set_bypass(cls, allowed)
 *
 * `fields` lists (name, rule, default, slot) in the order of the encoding.
 */
#include "classes.h"

static const char *const kind_names[HD_PY_KINDS] = {
    [HD_PY_SEND] = "send",           [HD_PY_COMMAND] = "command", [HD_PY_INTERRUPT] = "interrupt",
    [HD_PY_OVERWRITE] = "overwrite", [HD_PY_DELTA] = "delta",     [HD_PY_DATETIME] = "datetime",
    [HD_PY_TIMEOUT] = "timeout",     [HD_PY_FOREIGN] = "foreign",
};

static const char *const rule_names[] = {
    [HD_PY_CONTENT] = "content", [HD_PY_TEXT] = "text",         [HD_PY_OPT_TEXT] = "opt_text",
    [HD_PY_STATUS] = "status",   [HD_PY_OPT_DICT] = "opt_dict", [HD_PY_OPT_LIST] = "opt_list",
    [HD_PY_OPT_ANY] = "opt_any", [HD_PY_TYPE] = "type",         [HD_PY_DEFAULT] = "default",
};

enum hd_py_kind hd_py_classes_find(const struct hd_py_classes *classes, PyTypeObject *type,
                                   const struct hd_py_message **message)
{
    for (size_t i = 0; i < classes->message_count; i++) {
        if (classes->messages[i].type == type) {
            *message = &classes->messages[i];
            return HD_PY_MESSAGE;
        }
    }
    *message = NULL;
    for (int kind = HD_PY_SEND; kind < HD_PY_KINDS; kind++) {
        if (classes->types[kind] == type && kind != HD_PY_TIMEOUT)
            return (enum hd_py_kind)kind;
    }
    return HD_PY_OTHER;
}

const struct hd_py_message *hd_py_classes_message(const struct hd_py_classes *classes,
                                                  struct hd_slice tag)
{
    for (size_t i = 0; i < classes->message_count; i++) {
        if (hd_slice_eq(classes->messages[i].tag_text, tag))
            return &classes->messages[i];
    }
    return NULL;
}

/* ---- filling ---------------------------------------------------------- */

static int set_types(struct hd_py_classes *self, PyObject *types)
{
    for (int kind = HD_PY_SEND; kind < HD_PY_KINDS; kind++) {
        PyObject *type = PyDict_GetItemString(types, kind_names[kind]);

        if (!type || type == Py_None)
            continue;
        if (!PyType_Check(type)) {
            PyErr_Format(PyExc_TypeError, "%s is not a class", kind_names[kind]);
            return -1;
        }
        self->types[kind] = (PyTypeObject *)Py_NewRef(type);
    }
    return 0;
}

static PyObject *classes_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"types", "parse_datetime", "has_response_schema", NULL};
    struct hd_py_classes *self;
    PyObject *types;
    PyObject *parse;
    int has_schema;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!Op:Classes", names, &PyDict_Type, &types,
                                     &parse, &has_schema))
        return NULL;
    self = (struct hd_py_classes *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->ext = hd_py_ext_of(type);
    self->parse_datetime = Py_NewRef(parse);
    self->has_response_schema = has_schema;
    if (set_types(self, types) != 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int find_rule(const char *name)
{
    for (size_t i = 0; i < sizeof(rule_names) / sizeof(rule_names[0]); i++) {
        if (strcmp(rule_names[i], name) == 0)
            return (int)i;
    }
    PyErr_Format(PyExc_ValueError, "no such rule: %s", name);
    return -1;
}

static int set_member(struct hd_py_message *message, size_t i, PyObject *field)
{
    struct hd_py_member *member = &message->members[i];
    PyObject *name;
    PyObject *initial;
    const char *rule_name;
    unsigned char slot;
    int rule;

    if (!PyArg_ParseTuple(field, "UsOb:field", &name, &rule_name, &initial, &slot))
        return -1;
    rule = find_rule(rule_name);
    if (rule < 0)
        return -1;
    if (slot >= message->count || !PyUnicode_IS_ASCII(name)) {
        PyErr_SetString(PyExc_ValueError, "a field is missing in the instance");
        return -1;
    }
    Py_INCREF(name);
    PyUnicode_InternInPlace(&name);
    member->name = name;
    member->text = hd_slice(PyUnicode_DATA(name), (size_t)PyUnicode_GET_LENGTH(name));
    member->rule = (enum hd_py_member_rule)rule;
    member->initial = initial == Py_Ellipsis ? NULL : Py_NewRef(initial);
    member->slot = slot;
    message->by_slot[slot] = (unsigned char)i;
    return 0;
}

static void clear_message(struct hd_py_message *message)
{
    for (size_t i = 0; i < HD_PY_MAX_MEMBERS; i++) {
        Py_CLEAR(message->members[i].name);
        Py_CLEAR(message->members[i].initial);
    }
    Py_CLEAR(message->type);
    Py_CLEAR(message->tag);
}

static PyObject *add_message(struct hd_py_classes *self, PyObject *args)
{
    struct hd_py_message *message;
    PyObject *type;
    PyObject *tag;
    PyObject *fields;
    int has_extra;
    int is_ai;
    int is_chunk;

    if (!PyArg_ParseTuple(args, "O!UO!ppp:add_message", &PyType_Type, &type, &tag, &PyTuple_Type,
                          &fields, &has_extra, &is_ai, &is_chunk))
        return NULL;
    if (self->message_count == HD_PY_MAX_MESSAGES || PyTuple_GET_SIZE(fields) > HD_PY_MAX_MEMBERS ||
        !PyUnicode_IS_ASCII(tag))
        return PyErr_Format(PyExc_ValueError, "too many message classes or fields");
    message = &self->messages[self->message_count];
    message->count = (size_t)PyTuple_GET_SIZE(fields);
    message->type = (PyTypeObject *)Py_NewRef(type);
    message->tag = Py_NewRef(tag);
    message->tag_text = hd_slice(PyUnicode_DATA(tag), (size_t)PyUnicode_GET_LENGTH(tag));
    message->has_extra = has_extra;
    message->is_ai = is_ai;
    message->is_chunk = is_chunk;
    message->may_bypass = false;
    for (size_t i = 0; i < message->count; i++) {
        if (set_member(message, i, PyTuple_GET_ITEM(fields, (Py_ssize_t)i)) != 0) {
            clear_message(message);
            return NULL;
        }
    }
    self->message_count++;
    Py_RETURN_NONE;
}

/* Chunks derive fields from each other after validation: they always run their constructor. */
static PyObject *set_bypass(struct hd_py_classes *self, PyObject *args)
{
    PyObject *type;
    int allowed;

    if (!PyArg_ParseTuple(args, "O!p:set_bypass", &PyType_Type, &type, &allowed))
        return NULL;
    for (size_t i = 0; i < self->message_count; i++) {
        struct hd_py_message *message = &self->messages[i];

        if (message->type == (PyTypeObject *)type)
            message->may_bypass = allowed && !message->is_chunk;
    }
    Py_RETURN_NONE;
}

static void classes_dealloc(struct hd_py_classes *self)
{
    PyTypeObject *type = Py_TYPE(self);

    for (size_t i = 0; i < self->message_count; i++)
        clear_message(&self->messages[i]);
    for (int kind = 0; kind < HD_PY_KINDS; kind++)
        Py_XDECREF(self->types[kind]);
    Py_XDECREF(self->parse_datetime);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- type ------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"add_message", (PyCFunction)add_message, METH_VARARGS,
     "add_message(cls, tag, fields, has_extra, is_ai, is_chunk)"},
    {"set_bypass", (PyCFunction)set_bypass, METH_VARARGS, "set_bypass(cls, allowed)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, classes_new},
    {Py_tp_dealloc, classes_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "The classes that the canonical encoding supports."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "heddle._core.Classes",
    .basicsize = sizeof(struct hd_py_classes),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int hd_py_classes_register(PyObject *module, struct hd_py_ext *ext)
{
    ext->classes_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return ext->classes_type ? PyModule_AddType(module, ext->classes_type) : -1;
}
