/*
 * heddle._core: the C core and the canonical encoding for Python.
 */
#include "ext.h"

struct hd_py_ext *hd_py_ext_of(PyTypeObject *type)
{
    return PyType_GetModuleState(type);
}

PyObject *hd_py_error_new(struct hd_py_ext *ext, int code, const char *text)
{
    return PyObject_CallFunction(ext->make_error, "is", code,
                                 text && *text ? text : heddle_error_text(code));
}

PyObject *hd_py_error_raise(struct hd_py_ext *ext, const struct heddle_error *error)
{
    PyObject *exception;

    if (error->code == HEDDLE_ENOMEM)
        return PyErr_NoMemory();
    exception = hd_py_error_new(ext, error->code, error->text);
    if (exception) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
        Py_DECREF(exception);
    }
    return NULL;
}

int hd_py_bytes_of_str(PyObject *str, const char *what, PyObject *keep, struct heddle_bytes *out)
{
    PyObject *owner;
    int rc;

    if (!PyUnicode_Check(str)) {
        PyErr_Format(PyExc_TypeError, "%s must be str, not %.100s", what, Py_TYPE(str)->tp_name);
        return -1;
    }
    if (PyUnicode_READY(str) < 0)
        return -1;
    owner = PyUnicode_IS_ASCII(str) ? Py_NewRef(str)
                                    : PyUnicode_AsEncodedString(str, "utf-8", "surrogateescape");
    if (!owner)
        return -1;
    rc = PyList_Append(keep, owner);
    Py_DECREF(owner);
    if (rc != 0)
        return -1;
    if (owner == str)
        *out = (struct heddle_bytes){PyUnicode_DATA(str), (size_t)PyUnicode_GET_LENGTH(str)};
    else
        *out = (struct heddle_bytes){PyBytes_AS_STRING(owner), (size_t)PyBytes_GET_SIZE(owner)};
    return 0;
}

PyObject *hd_py_str_of_bytes(struct heddle_bytes bytes)
{
    return PyUnicode_DecodeUTF8(bytes.data, (Py_ssize_t)bytes.len, "surrogateescape");
}

/* ---- the module ------------------------------------------------------- */

static int intern_names(struct hd_py_names *names)
{
#define X(name, text)                               \
    names->name = PyUnicode_InternFromString(text); \
    if (!names->name)                               \
        return -1;
    HD_PY_NAMES(X)
#undef X
    return 0;
}

static PyObject *import_name(const char *module_name, const char *name)
{
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *found = module ? PyObject_GetAttrString(module, name) : NULL;

    Py_XDECREF(module);
    return found;
}

static int module_exec(PyObject *module)
{
    struct hd_py_ext *ext = PyModule_GetState(module);

    if (intern_names(&ext->names) != 0)
        return -1;
    ext->make_error = import_name("heddle._errors", "make_error");
    ext->get_running_loop = import_name("asyncio", "get_running_loop");
    ext->empty_tuple = PyTuple_New(0);
    if (!ext->make_error || !ext->get_running_loop || !ext->empty_tuple)
        return -1;
    if (hd_py_classes_register(module, ext) != 0 || hd_py_codec_register(module, ext) != 0 ||
        hd_py_store_register(module, ext) != 0 || hd_py_cursor_register(module, ext) != 0)
        return -1;
    return PyModule_AddStringConstant(module, "__version__", HEDDLE_VERSION);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct hd_py_ext *ext = PyModule_GetState(module);

    Py_VISIT(ext->make_error);
    Py_VISIT(ext->get_running_loop);
    Py_VISIT(ext->classes_type);
    Py_VISIT(ext->codec_type);
    Py_VISIT(ext->store_type);
    Py_VISIT(ext->cursor_type);
    return 0;
}

static int module_clear(PyObject *module)
{
    struct hd_py_ext *ext = PyModule_GetState(module);

#define X(name, text) Py_CLEAR(ext->names.name);
    HD_PY_NAMES(X)
#undef X
    Py_CLEAR(ext->make_error);
    Py_CLEAR(ext->get_running_loop);
    Py_CLEAR(ext->empty_tuple);
    Py_CLEAR(ext->classes_type);
    Py_CLEAR(ext->codec_type);
    Py_CLEAR(ext->store_type);
    Py_CLEAR(ext->cursor_type);
    return 0;
}

static void module_free(void *module)
{
    module_clear(module);
}

static PyMethodDef methods[] = {
    {"open", hd_py_open, METH_O, "open(url) -> Store"},
    {"open_async", hd_py_open_async, METH_O, "open_async(url) -> future of Store"},
    {"wait_closed", hd_py_wait_closed, METH_NOARGS,
     "wait_closed()\n\nWaits for stores that were forgotten while open to be closed."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "heddle._core",
    .m_doc = "The C core and the canonical encoding.",
    .m_size = sizeof(struct hd_py_ext),
    .m_methods = methods,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

/* The first prototype uses Python's own macro, which sets the visibility. */
PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
