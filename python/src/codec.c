/*
 * The Codec type: dumps_typed() and loads_typed() over the canonical encoding, and calls of the
 * wrapped serializer.
 */
#include "codec.h"

#include "base/alloc.h"

/* ---- the wrapped serializer -------------------------------------------- */

int hd_py_call_dumps(struct hd_py_codec *codec, PyObject *obj, PyObject **type, PyObject **bytes)
{
    PyObject *pair = PyObject_CallOneArg(codec->dumps, obj);
    int rc = -1;

    if (!pair)
        return -1;
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2 ||
        !PyUnicode_Check(PyTuple_GET_ITEM(pair, 0))) {
        PyErr_SetString(PyExc_TypeError, "dumps_typed must return (type, bytes)");
        goto done;
    }
    *bytes = PyBytes_FromObject(PyTuple_GET_ITEM(pair, 1));
    if (!*bytes)
        goto done;
    *type = Py_NewRef(PyTuple_GET_ITEM(pair, 0));
    rc = 0;
done:
    Py_DECREF(pair);
    return rc;
}

PyObject *hd_py_call_loads(struct hd_py_codec *codec, struct hd_slice type, PyObject *bytes)
{
    PyObject *pair = Py_BuildValue("(s#O)", type.ptr, (Py_ssize_t)type.len, bytes);
    PyObject *obj = pair ? PyObject_CallOneArg(codec->loads, pair) : NULL;

    Py_XDECREF(pair);
    return obj;
}

/* ---- whole values ----------------------------------------------------- */

/*
 * Reports whether the encoding has a form for the object itself. It has one for bytes, but as a
 * whole value they are stored unchanged, under the tag that all runtimes share.
 */
static bool is_expressible(const struct hd_py_codec *codec, PyObject *obj)
{
    PyTypeObject *type = Py_TYPE(obj);
    const struct hd_py_message *message;

    return type == &PyUnicode_Type || type == &PyList_Type || type == &PyDict_Type ||
           obj == Py_None || type == &PyLong_Type || type == &PyBool_Type ||
           type == &PyFloat_Type || type == &PyTuple_Type || type == &PySet_Type ||
           type == &PyFrozenSet_Type || type == &PyByteArray_Type ||
           hd_py_classes_find(codec->classes, type, &message) != HD_PY_OTHER ||
           PyExceptionInstance_Check(obj);
}

/* HD_PY_UNFIT: the value itself is foreign; `out` is unchanged. */
static int encode_whole(struct hd_py_codec *codec, PyObject *obj, struct hd_buf *out)
{
    static const char foreign[] = "{\"$\":\"foreign\",";
    struct hd_py_enc enc = {.out = out, .codec = codec, .mode = HD_PY_CANONICAL};
    const struct hd_py_message *message;
    size_t start = out->len;
    int rc = hd_py_enc_value(&enc, obj);

    if (rc != 0) {
        out->len = start;
        return rc;
    }
    /* An opaque record is foreign too, and stays one. */
    if (out->len - start >= sizeof(foreign) - 1 &&
        memcmp(out->ptr + start, foreign, sizeof(foreign) - 1) == 0 &&
        hd_py_classes_find(codec->classes, Py_TYPE(obj), &message) != HD_PY_FOREIGN) {
        out->len = start;
        return HD_PY_UNFIT;
    }
    return 0;
}

int hd_py_dump(struct hd_py_codec *codec, PyObject *obj, struct hd_buf *out,
               struct hd_py_dumped *dumped)
{
    int rc = HD_PY_UNFIT;

    dumped->type = NULL;
    dumped->bytes = NULL;
    dumped->start = out->len;
    if (codec->is_canonical && is_expressible(codec, obj))
        rc = encode_whole(codec, obj, out);
    if (rc == HD_PY_UNFIT)
        rc = hd_py_call_dumps(codec, obj, &dumped->type, &dumped->bytes);
    return rc;
}

PyObject *hd_py_load(struct hd_py_codec *codec, struct heddle_bytes type, struct heddle_bytes data)
{
    struct hd_slice tag = hd_slice(type.data, type.len);
    PyObject *bytes;
    PyObject *obj;

    if (codec->is_canonical && hd_slice_eq(tag, HD_S(HD_PY_TAG)))
        return hd_py_decode(codec, HD_PY_CANONICAL, hd_slice(data.data, data.len));
    bytes = PyBytes_FromStringAndSize(data.data, (Py_ssize_t)data.len);
    if (!bytes)
        return NULL;
    obj = hd_py_call_loads(codec, tag, bytes);
    Py_DECREF(bytes);
    return obj;
}

/* ---- methods ---------------------------------------------------------- */

static PyObject *pair_of(const struct hd_py_dumped *dumped, const struct hd_buf *out)
{
    if (dumped->type)
        return Py_BuildValue("(NN)", dumped->type, dumped->bytes);
    return Py_BuildValue("(sy#)", HD_PY_TAG, out->ptr, (Py_ssize_t)out->len);
}

static PyObject *dumps_typed(struct hd_py_codec *self, PyObject *obj)
{
    struct hd_py_dumped dumped;
    struct hd_buf out;
    PyObject *pair = NULL;

    hd_buf_init(&out, PY_SSIZE_T_MAX);
    if (hd_py_dump(self, obj, &out, &dumped) == 0)
        pair = pair_of(&dumped, &out);
    hd_buf_fini(&out);
    return pair;
}

/* The canonical text, also for a value that would be foreign or bytes as a whole. */
static PyObject *encode(struct hd_py_codec *self, PyObject *obj)
{
    struct hd_buf out;
    struct hd_py_enc enc = {.out = &out, .codec = self, .mode = HD_PY_CANONICAL};
    PyObject *bytes = NULL;

    hd_buf_init(&out, PY_SSIZE_T_MAX);
    if (hd_py_enc_value(&enc, obj) == 0)
        bytes = PyBytes_FromStringAndSize(out.ptr, (Py_ssize_t)out.len);
    hd_buf_fini(&out);
    return bytes;
}

static PyObject *decode(struct hd_py_codec *self, PyObject *text)
{
    Py_buffer view;
    PyObject *obj;

    if (PyObject_GetBuffer(text, &view, PyBUF_SIMPLE) != 0)
        return NULL;
    obj = hd_py_decode(self, HD_PY_CANONICAL, hd_slice(view.buf, (size_t)view.len));
    PyBuffer_Release(&view);
    return obj;
}

static PyObject *loads_typed(struct hd_py_codec *self, PyObject *pair)
{
    PyObject *type;
    PyObject *data;

    if (!PyTuple_Check(pair) && !PyList_Check(pair))
        return PyErr_Format(PyExc_TypeError, "loads_typed takes a pair (type, bytes)");
    if (PySequence_Fast_GET_SIZE(pair) != 2 || !PyUnicode_Check(PySequence_Fast_GET_ITEM(pair, 0)))
        return PyErr_Format(PyExc_TypeError, "loads_typed takes a pair (type, bytes)");
    type = PySequence_Fast_GET_ITEM(pair, 0);
    data = PySequence_Fast_GET_ITEM(pair, 1);
    if (self->is_canonical && PyUnicode_CompareWithASCIIString(type, HD_PY_TAG) == 0)
        return decode(self, data);
    return PyObject_CallOneArg(self->loads, pair);
}

/* ---- type ------------------------------------------------------------- */

static PyObject *codec_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"classes", "dumps_typed", "loads_typed", "canonical", NULL};
    struct hd_py_ext *ext = hd_py_ext_of(type);
    struct hd_py_codec *self;
    PyObject *classes;
    PyObject *dumps;
    PyObject *loads;
    int is_canonical = 1;

    if (!ext || !PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO|p:Codec", names, ext->classes_type,
                                             &classes, &dumps, &loads, &is_canonical))
        return NULL;
    self = (struct hd_py_codec *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->ext = ext;
    self->classes = (struct hd_py_classes *)Py_NewRef(classes);
    self->dumps = Py_NewRef(dumps);
    self->loads = Py_NewRef(loads);
    self->is_canonical = is_canonical;
    return (PyObject *)self;
}

/* A serializer holds its codec, and the codec the serializer's methods: a cycle to collect. */
static int codec_traverse(struct hd_py_codec *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->dumps);
    Py_VISIT(self->loads);
    return 0;
}

static int codec_clear(struct hd_py_codec *self)
{
    Py_CLEAR(self->dumps);
    Py_CLEAR(self->loads);
    return 0;
}

static void codec_dealloc(struct hd_py_codec *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    codec_clear(self);
    Py_XDECREF(self->classes);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"dumps_typed", (PyCFunction)dumps_typed, METH_O, "dumps_typed(obj) -> (type, bytes)"},
    {"loads_typed", (PyCFunction)loads_typed, METH_O, "loads_typed((type, bytes)) -> obj"},
    {"encode", (PyCFunction)encode, METH_O, "encode(obj) -> bytes of type hd1"},
    {"decode", (PyCFunction)decode, METH_O, "decode(bytes of type hd1) -> obj"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, codec_new},
    {Py_tp_dealloc, codec_dealloc},
    {Py_tp_traverse, codec_traverse},
    {Py_tp_clear, codec_clear},
    {Py_tp_methods, methods},
    {Py_tp_doc, "The canonical encoding, with a fallback serializer for other values."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "heddle._core.Codec",
    .basicsize = sizeof(struct hd_py_codec),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

int hd_py_codec_register(PyObject *module, struct hd_py_ext *ext)
{
    ext->codec_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return ext->codec_type ? PyModule_AddType(module, ext->codec_type) : -1;
}
