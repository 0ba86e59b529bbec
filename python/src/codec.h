/*
 * The canonical encoding (docs/encoding.md) for Python objects: a codec writes them as JSON bytes
 * and reads them back. Values that the encoding cannot express go through the wrapped serializer.
 */
#ifndef HD_PY_CODEC_H
#define HD_PY_CODEC_H

#include "base/buf.h"
#include "base/json.h"
#include "classes.h"

struct hd_py_codec {
    PyObject_HEAD struct hd_py_ext *ext;
    struct hd_py_classes *classes;
    PyObject *dumps;   /* the wrapped serializer's dumps_typed */
    PyObject *loads;   /* and loads_typed */
    bool is_canonical; /* false: all values go through the wrapped serializer */
};

enum hd_py_mode {
    HD_PY_CANONICAL,
    HD_PY_METADATA, /* as json.dumps where possible: any integer, keys converted to strings */
    HD_PY_PLAIN     /* only JSON; other objects raise TypeError */
};

struct hd_py_enc {
    struct hd_buf *out;
    struct hd_py_codec *codec; /* NULL in plain mode */
    enum hd_py_mode mode;
    int depth;
};

/* A result of encoders besides 0 and -1: no nesting level is left for this object. */
enum { HD_PY_TOO_DEEP = 1 };

int hd_py_enc_value(struct hd_py_enc *enc, PyObject *obj);
int hd_py_enc_record(struct hd_py_enc *enc, PyObject *obj, enum hd_py_kind kind,
                     const struct hd_py_message *message);
int hd_py_enc_message(struct hd_py_enc *enc, PyObject *obj, const struct hd_py_message *message);
int hd_py_enc_exception(struct hd_py_enc *enc, PyObject *obj);
/* The wrapped serializer's bytes as a foreign record. */
int hd_py_enc_foreign(struct hd_py_enc *enc, PyObject *obj);

/* The result of hd_py_enc_record and similar functions when the object does not fit the
 * encoding. */
enum { HD_PY_UNFIT = 2 };

/* text.c: JSON fragments. They reserve their own space; -1 with MemoryError when out of memory. */
int hd_py_put_raw(struct hd_buf *out, const char *text, size_t len);
int hd_py_put_string(struct hd_py_enc *enc, PyObject *str); /* a utf16 record if necessary */
int hd_py_put_key(struct hd_buf *out, PyObject *str); /* HD_PY_UNFIT: has unpaired surrogates */
int hd_py_put_long(struct hd_py_enc *enc, PyObject *num);
int hd_py_put_double(struct hd_py_enc *enc, double num);
int hd_py_put_base64(struct hd_buf *out, const void *bytes, size_t len); /* with quotes */
/* NULL with ValueError when the text is not base64. */
PyObject *hd_py_base64_decode(struct hd_slice text, bool is_mutable);
bool hd_py_has_surrogates(PyObject *str);

#define HD_PY_PUT(out, literal) hd_py_put_raw((out), (literal), sizeof(literal) - 1)

/*
 * The serialized form of an object: appended to `out`, or the wrapped serializer's output. Both
 * members are NULL when it is canonical and in `out`, from `start` to its end; otherwise the caller
 * owns them.
 */
struct hd_py_dumped {
    PyObject *type;  /* str */
    PyObject *bytes; /* bytes */
    size_t start;
};

int hd_py_dump(struct hd_py_codec *codec, PyObject *obj, struct hd_buf *out,
               struct hd_py_dumped *dumped);

/* Decodes the object. */
PyObject *hd_py_load(struct hd_py_codec *codec, struct heddle_bytes type, struct heddle_bytes data);

/* The type tag of the canonical encoding. */
#define HD_PY_TAG "hd1"

/* Checks the result of a wrapped dumps_typed: (str, bytes-like), the latter as new bytes. */
int hd_py_call_dumps(struct hd_py_codec *codec, PyObject *obj, PyObject **type, PyObject **bytes);
PyObject *hd_py_call_loads(struct hd_py_codec *codec, struct hd_slice type, PyObject *bytes);

/* decode.c */
struct hd_py_dec {
    struct hd_py_codec *codec; /* NULL in plain mode */
    enum hd_py_mode mode;
    bool is_key;        /* inside a set or a map's key: arrays become tuples */
    bool is_paused;     /* this decoder disabled the garbage collector */
    PyObject *keys[64]; /* recent member names, so that repeated ones share a string */
};

/*
 * Called around Python code while decoding. Before 3.12 the collector runs inside allocations: it
 * would scan a long history again and again while it is built, though none of it can be garbage. So
 * it is disabled, but never while other code may run.
 */
void hd_py_dec_leave(struct hd_py_dec *dec);
void hd_py_dec_return(struct hd_py_dec *dec);

PyObject *hd_py_dec_value(struct hd_py_dec *dec, hd_json_val val);
PyObject *hd_py_dec_record(struct hd_py_dec *dec, hd_json_val val, struct hd_slice kind);
PyObject *hd_py_dec_message(struct hd_py_dec *dec, hd_json_val val);
PyObject *hd_py_dec_opaque(struct hd_py_dec *dec, hd_json_val val);
/* Sets ValueError; always NULL. */
PyObject *hd_py_dec_refuse(const char *why);
PyObject *hd_py_decode(struct hd_py_codec *codec, enum hd_py_mode mode, struct hd_slice text);

/*
 * envelope.c: the checkpoint without its values. Members that are not plain go through the
 * serializer.
 */
int hd_py_enc_checkpoint(struct hd_py_codec *codec, PyObject *checkpoint, struct hd_buf *out);
/* A dict of channel to version. `what` names it in errors. */
int hd_py_enc_versions(struct hd_buf *out, PyObject *versions, const char *what);
int hd_py_enc_metadata(struct hd_py_codec *codec, PyObject *metadata, struct hd_buf *out);
PyObject *hd_py_dec_checkpoint(struct hd_py_codec *codec, struct heddle_bytes text);
PyObject *hd_py_dec_metadata(struct hd_py_codec *codec, struct heddle_bytes text);

#endif
