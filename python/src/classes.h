/*
 * The Python classes of the canonical encoding, looked up once from langchain_core and langgraph by
 * heddle/_classes.py and passed in one object. Any of them may be missing in an installation.
 */
#ifndef HD_PY_CLASSES_H
#define HD_PY_CLASSES_H

#include "base/slice.h"
#include "ext.h"

enum hd_py_kind {
    HD_PY_OTHER, /* not in the table */
    HD_PY_MESSAGE,
    HD_PY_SEND,
    HD_PY_COMMAND,
    HD_PY_INTERRUPT,
    HD_PY_OVERWRITE,
    HD_PY_DELTA,
    HD_PY_DATETIME,
    HD_PY_TIMEOUT,
    HD_PY_FOREIGN,
    HD_PY_KINDS
};

/* The values that a member of a message may hold, and when it is omitted. */
enum hd_py_member_rule {
    HD_PY_CONTENT,  /* str or list; always written */
    HD_PY_TEXT,     /* str; always written */
    HD_PY_OPT_TEXT, /* str, omitted when None */
    HD_PY_STATUS,   /* str, omitted when "success" */
    HD_PY_OPT_DICT, /* dict, omitted when empty */
    HD_PY_OPT_LIST, /* list, omitted when empty */
    HD_PY_OPT_ANY,  /* any value, omitted when None */
    HD_PY_TYPE,     /* the class's own type text; written as "type" */
    HD_PY_DEFAULT   /* a field of an older or newer class: must have its default, never written */
};

enum { HD_PY_MAX_MEMBERS = 16 };

struct hd_py_member {
    PyObject *name; /* interned */
    struct hd_slice text;
    enum hd_py_member_rule rule;
    PyObject *initial;  /* the default, for immutable ones; NULL for dict, list and required */
    unsigned char slot; /* its position in the instance's __dict__ */
};

struct hd_py_message {
    PyTypeObject *type;
    PyObject *tag; /* "human", "ai", … */
    struct hd_slice tag_text;
    bool is_ai;      /* the constructor rewrites tool calls */
    bool is_chunk;   /* always built by its constructor */
    bool may_bypass; /* verified: instances can be built without the constructor */
    bool has_extra;  /* instances carry a dict in __pydantic_extra__ */
    size_t count;
    struct hd_py_member members[HD_PY_MAX_MEMBERS]; /* in the order of the encoding */
    unsigned char by_slot[HD_PY_MAX_MEMBERS];       /* slot to index in members */
};

enum { HD_PY_MAX_MESSAGES = 24 };

struct hd_py_classes {
    PyObject_HEAD struct hd_py_ext *ext;
    PyTypeObject *types[HD_PY_KINDS]; /* NULL: not installed */
    PyObject *parse_datetime; /* None for a datetime out of range, ValueError for an invalid text */
    bool has_response_schema; /* Interrupt has the field */
    size_t message_count;
    struct hd_py_message messages[HD_PY_MAX_MESSAGES];
};

/* HD_PY_MESSAGE sets *message. Exact types only: subclasses are HD_PY_OTHER. */
enum hd_py_kind hd_py_classes_find(const struct hd_py_classes *classes, PyTypeObject *type,
                                   const struct hd_py_message **message);

/* By the text of "type"; NULL when unknown. */
const struct hd_py_message *hd_py_classes_message(const struct hd_py_classes *classes,
                                                  struct hd_slice tag);

#endif
