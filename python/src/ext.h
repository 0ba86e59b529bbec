/*
 * Shared by all files of the extension: the module's state, the names it looks up, and the
 * conversion of core errors to Python exceptions.
 *
 * Every function here needs the GIL unless its comment states otherwise, and follows Python's
 * convention: NULL or -1 means that an exception is set.
 */
#ifndef HD_PY_EXT_H
#define HD_PY_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "heddle.h"

/* Attribute and method names, interned once. */
#define HD_PY_NAMES(X)                                    \
    X(arg, "arg")                                         \
    X(args, "args")                                       \
    X(call_soon_threadsafe, "call_soon_threadsafe")       \
    X(channel_values, "channel_values")                   \
    X(channel_versions, "channel_versions")               \
    X(create_future, "create_future")                     \
    X(done, "done")                                       \
    X(goto_, "goto")                                      \
    X(graph, "graph")                                     \
    X(id, "id")                                           \
    X(idle_timeout, "idle_timeout")                       \
    X(isoformat, "isoformat")                             \
    X(model_construct, "model_construct")                 \
    X(node, "node")                                       \
    X(record, "record")                                   \
    X(refresh_on, "refresh_on")                           \
    X(response_schema, "response_schema")                 \
    X(resume, "resume")                                   \
    X(run_timeout, "run_timeout")                         \
    X(seed, "seed")                                       \
    X(set_exception, "set_exception")                     \
    X(set_result, "set_result")                           \
    X(timeout, "timeout")                                 \
    X(update, "update")                                   \
    X(updated_channels, "updated_channels")               \
    X(v, "v")                                             \
    X(value, "value")                                     \
    X(versions_seen, "versions_seen")                     \
    X(ts, "ts")                                           \
    X(writes, "writes")                                   \
    X(__dict__, "__dict__")                               \
    X(__pydantic_extra__, "__pydantic_extra__")           \
    X(__pydantic_fields_set__, "__pydantic_fields_set__") \
    X(__pydantic_private__, "__pydantic_private__")

struct hd_py_names {
#define X(name, text) PyObject *name;
    HD_PY_NAMES(X)
#undef X
};

struct hd_py_mailbox;

/* The module's state. Objects keep a pointer to it: their type keeps the module alive. */
struct hd_py_ext {
    struct hd_py_names names;
    PyObject *make_error;       /* heddle._errors.make_error(code, text) */
    PyObject *get_running_loop; /* asyncio.get_running_loop */
    PyObject *empty_tuple;
    PyTypeObject *classes_type;
    PyTypeObject *codec_type;
    PyTypeObject *store_type;
    PyTypeObject *cursor_type;
    struct hd_py_mailbox *mailboxes; /* one per event loop with pending jobs */
};

/* The state, from a type of this module. */
struct hd_py_ext *hd_py_ext_of(PyTypeObject *type);

/* The exception object of a core error; `text` may be empty. */
PyObject *hd_py_error_new(struct hd_py_ext *ext, int code, const char *text);

/* Raises it; always returns NULL. */
PyObject *hd_py_error_raise(struct hd_py_ext *ext, const struct heddle_error *error);

/*
 * The UTF-8 bytes of an id. Appends the owner of the bytes to `keep` (a list). Invalid UTF-8 is
 * converted to surrogates and back.
 */
int hd_py_bytes_of_str(PyObject *str, const char *what, PyObject *keep, struct heddle_bytes *out);
PyObject *hd_py_str_of_bytes(struct heddle_bytes bytes);

/* Each type's file adds itself to the module. */
int hd_py_classes_register(PyObject *module, struct hd_py_ext *ext);
int hd_py_codec_register(PyObject *module, struct hd_py_ext *ext);
int hd_py_store_register(PyObject *module, struct hd_py_ext *ext);
int hd_py_cursor_register(PyObject *module, struct hd_py_ext *ext);

/* Module-level functions of store.c. */
PyObject *hd_py_open(PyObject *module, PyObject *url);
PyObject *hd_py_open_async(PyObject *module, PyObject *url);
PyObject *hd_py_wait_closed(PyObject *module, PyObject *unused);

#endif
