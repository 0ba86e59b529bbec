/*
 * Strings, numbers and base64 as JSON text.
 *
 * Strings are copied straight from Python's own storage (1, 2 or 4 bytes per character) into the
 * buffer: PyUnicode_AsUTF8 would leave a second copy of every non-ASCII string in the string
 * object. ASCII, the common case, is copied eight bytes at a time.
 */
#include "codec.h"

#include <stdint.h>

static const char hex_digits[] = "0123456789abcdef";

/* The largest JSON integers that every runtime reads exactly: 2^53 - 1. */
#define MAX_PLAIN_INT INT64_C(9007199254740991)

static int grow(struct hd_buf *out, size_t more)
{
    if (hd_buf_reserve(out, more) != 0) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static inline int reserve(struct hd_buf *out, size_t more)
{
    return out->cap - out->len >= more ? 0 : grow(out, more);
}

int hd_py_put_raw(struct hd_buf *out, const char *text, size_t len)
{
    if (reserve(out, len) != 0)
        return -1;
    memcpy(out->ptr + out->len, text, len);
    out->len += len;
    return 0;
}

/* ---- strings ---------------------------------------------------------- */

static char short_escape(uint32_t c)
{
    switch (c) {
    case '"':
        return '"';
    case '\\':
        return '\\';
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return 0;
    }
}

static inline bool needs_escape(uint32_t c)
{
    return c < 0x20 || c == '"' || c == '\\';
}

/* At most 6 bytes. */
static char *write_escape(char *to, uint32_t c)
{
    char letter = short_escape(c);

    *to++ = '\\';
    if (letter) {
        *to++ = letter;
        return to;
    }
    *to++ = 'u';
    *to++ = '0';
    *to++ = '0';
    *to++ = hex_digits[c >> 4];
    *to++ = hex_digits[c & 15];
    return to;
}

/* Reports whether any of the 8 bytes is below 0x20, '"' or '\\'; exact for ASCII. */
static inline bool block_needs_escape(uint64_t block)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t highs = UINT64_C(0x8080808080808080);
    uint64_t quotes = block ^ (ones * '"');
    uint64_t slashes = block ^ (ones * '\\');

    return (((block - ones * 0x20) | (quotes - ones) | (slashes - ones)) & highs) != 0;
}

static int put_ascii(struct hd_buf *out, const char *from, size_t len)
{
    const char *end = from + len;
    char *to;

    /* The common case needs len + 2 bytes; escapes reserve their own space below. */
    if (reserve(out, len + 2) != 0)
        return -1;
    to = out->ptr + out->len;
    *to++ = '"';
    while (from < end) {
        uint64_t block;

        while (end - from >= 8) {
            memcpy(&block, from, 8);
            if (block_needs_escape(block))
                break;
            memcpy(to, &block, 8);
            from += 8;
            to += 8;
        }
        /* A block with an escape in it, or the tail. */
        for (int i = 0; i < 8 && from < end; i++, from++) {
            if (!needs_escape((unsigned char)*from)) {
                *to++ = *from;
                continue;
            }
            out->len = (size_t)(to - out->ptr);
            if (reserve(out, (size_t)(end - from) + 8) != 0)
                return -1;
            to = write_escape(out->ptr + out->len, (unsigned char)*from);
        }
    }
    *to++ = '"';
    out->len = (size_t)(to - out->ptr);
    return 0;
}

static char *write_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    }
    return to;
}

static inline bool is_surrogate(uint32_t c)
{
    return c >= 0xd800 && c <= 0xdfff;
}

/* HD_PY_UNFIT at the first surrogate. */
static int put_wide(struct hd_buf *out, PyObject *str)
{
    const int kind = PyUnicode_KIND(str);
    const void *data = PyUnicode_DATA(str);
    const Py_ssize_t len = PyUnicode_GET_LENGTH(str);
    Py_ssize_t i = 0;

    if (reserve(out, 1) != 0)
        return -1;
    out->ptr[out->len++] = '"';
    while (i < len) {
        Py_ssize_t stop = len - i > 256 ? i + 256 : len;
        char *to;

        if (reserve(out, 256 * 6 + 1) != 0)
            return -1;
        to = out->ptr + out->len;
        for (; i < stop; i++) {
            uint32_t c = PyUnicode_READ(kind, data, i);

            if (is_surrogate(c))
                return HD_PY_UNFIT;
            to = needs_escape(c) ? write_escape(to, c) : write_utf8(to, c);
        }
        out->len = (size_t)(to - out->ptr);
    }
    /* The last block reserved the space for it. */
    if (reserve(out, 1) != 0)
        return -1;
    out->ptr[out->len++] = '"';
    return 0;
}

bool hd_py_has_surrogates(PyObject *str)
{
    Py_ssize_t len;

    if (PyUnicode_IS_ASCII(str) || PyUnicode_KIND(str) == PyUnicode_1BYTE_KIND)
        return false;
    len = PyUnicode_GET_LENGTH(str);
    for (Py_ssize_t i = 0; i < len; i++) {
        if (is_surrogate(PyUnicode_READ_CHAR(str, i)))
            return true;
    }
    return false;
}

int hd_py_put_key(struct hd_buf *out, PyObject *str)
{
    size_t start = out->len;
    int rc;

    if (PyUnicode_READY(str) < 0)
        return -1;
    if (PyUnicode_IS_ASCII(str))
        return put_ascii(out, PyUnicode_DATA(str), (size_t)PyUnicode_GET_LENGTH(str));
    rc = put_wide(out, str);
    if (rc != 0)
        out->len = start;
    return rc;
}

/* {"$":"utf16","v":BASE64}: UTF-8 cannot represent unpaired surrogates. */
static int put_utf16(struct hd_py_enc *enc, PyObject *str)
{
    PyObject *bytes;
    int rc;

    if (enc->mode == HD_PY_PLAIN) {
        PyErr_SetString(PyExc_ValueError,
                        "a string with unpaired surrogates cannot be stored here");
        return -1;
    }
    if (enc->depth >= HD_JSON_MAX_DEPTH)
        return HD_PY_TOO_DEEP;
    bytes = PyUnicode_AsEncodedString(str, "utf-16-le", "surrogatepass");
    if (!bytes)
        return -1;
    rc = HD_PY_PUT(enc->out, "{\"$\":\"utf16\",\"v\":");
    if (rc == 0)
        rc = hd_py_put_base64(enc->out, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    if (rc == 0)
        rc = HD_PY_PUT(enc->out, "}");
    Py_DECREF(bytes);
    return rc;
}

int hd_py_put_string(struct hd_py_enc *enc, PyObject *str)
{
    int rc = hd_py_put_key(enc->out, str);

    return rc == HD_PY_UNFIT ? put_utf16(enc, str) : rc;
}

/* ---- numbers ---------------------------------------------------------- */

static int put_int64(struct hd_buf *out, int64_t num)
{
    char digits[24];
    char *pos = digits + sizeof(digits);
    uint64_t rest = num < 0 ? 0 - (uint64_t)num : (uint64_t)num;

    do {
        *--pos = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (num < 0)
        *--pos = '-';
    return hd_py_put_raw(out, pos, (size_t)(digits + sizeof(digits) - pos));
}

/* Uses int.__repr__, so that an IntEnum gives its digits too. */
static int put_big(struct hd_py_enc *enc, PyObject *num)
{
    bool is_record = enc->mode == HD_PY_CANONICAL;
    PyObject *digits;
    int rc = 0;

    if (is_record && enc->depth >= HD_JSON_MAX_DEPTH)
        return HD_PY_TOO_DEEP;
    digits = PyLong_Type.tp_repr(num);
    if (!digits)
        return -1;
    if (is_record)
        rc = HD_PY_PUT(enc->out, "{\"$\":\"int\",\"v\":\"");
    if (rc == 0)
        rc = hd_py_put_raw(enc->out, PyUnicode_DATA(digits), (size_t)PyUnicode_GET_LENGTH(digits));
    if (rc == 0 && is_record)
        rc = HD_PY_PUT(enc->out, "\"}");
    Py_DECREF(digits);
    return rc;
}

int hd_py_put_long(struct hd_py_enc *enc, PyObject *num)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(num, &overflow);

    if (value == -1 && !overflow && PyErr_Occurred())
        return -1;
    if (overflow || value > MAX_PLAIN_INT || value < -MAX_PLAIN_INT)
        return put_big(enc, num);
    return put_int64(enc->out, value);
}

static int put_odd_double(struct hd_py_enc *enc, const char *name)
{
    int rc;

    if (enc->mode == HD_PY_PLAIN) {
        PyErr_Format(PyExc_ValueError, "the number %s cannot be stored here", name);
        return -1;
    }
    if (enc->depth >= HD_JSON_MAX_DEPTH)
        return HD_PY_TOO_DEEP;
    rc = HD_PY_PUT(enc->out, "{\"$\":\"float\",\"v\":\"");
    if (rc == 0)
        rc = hd_py_put_raw(enc->out, name, strlen(name));
    return rc == 0 ? HD_PY_PUT(enc->out, "\"}") : rc;
}

int hd_py_put_double(struct hd_py_enc *enc, double num)
{
    char *text;
    int rc;

    if (Py_IS_NAN(num))
        return put_odd_double(enc, "nan");
    if (Py_IS_INFINITY(num))
        return put_odd_double(enc, num > 0 ? "inf" : "-inf");
    if (num == 0.0 && copysign(1.0, num) < 0 && enc->mode == HD_PY_CANONICAL)
        return put_odd_double(enc, "-0");
    text = PyOS_double_to_string(num, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    if (!text)
        return -1;
    rc = hd_py_put_raw(enc->out, text, strlen(text));
    PyMem_Free(text);
    return rc;
}

/* ---- base64 ----------------------------------------------------------- */

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int hd_py_put_base64(struct hd_buf *out, const void *bytes, size_t len)
{
    const unsigned char *from = bytes;
    char *to;
    size_t i;

    if (len > SIZE_MAX / 2 || reserve(out, (len + 2) / 3 * 4 + 2) != 0)
        return len > SIZE_MAX / 2 ? (PyErr_NoMemory(), -1) : -1;
    to = out->ptr + out->len;
    *to++ = '"';
    for (i = 0; i + 2 < len; i += 3) {
        uint32_t group = (uint32_t)from[i] << 16 | (uint32_t)from[i + 1] << 8 | from[i + 2];

        *to++ = base64_digits[group >> 18];
        *to++ = base64_digits[group >> 12 & 63];
        *to++ = base64_digits[group >> 6 & 63];
        *to++ = base64_digits[group & 63];
    }
    if (i < len) {
        uint32_t group = (uint32_t)from[i] << 16 | (i + 1 < len ? (uint32_t)from[i + 1] << 8 : 0);

        *to++ = base64_digits[group >> 18];
        *to++ = base64_digits[group >> 12 & 63];
        *to++ = i + 1 < len ? base64_digits[group >> 6 & 63] : '=';
        *to++ = '=';
    }
    *to++ = '"';
    out->len = (size_t)(to - out->ptr);
    return 0;
}

static int base64_digit(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Strict: padded, without other characters or stray bits. -1 otherwise. */
static int unpack_base64(struct hd_slice text, unsigned char *to)
{
    size_t pad =
        text.len && text.ptr[text.len - 1] == '=' ? 1 + (text.ptr[text.len - 2] == '=') : 0;

    for (size_t i = 0; i < text.len; i += 4) {
        size_t digits = i + 4 == text.len ? 4 - pad : 4;
        uint32_t group = 0;

        for (size_t j = 0; j < 4; j++) {
            int bits = j < digits ? base64_digit((unsigned char)text.ptr[i + j]) : 0;

            if (bits < 0)
                return -1;
            group = group << 6 | (uint32_t)bits;
        }
        if (digits < 4 && (group & (digits == 3 ? 0xffu : 0xffffu)) != 0)
            return -1;
        *to++ = (unsigned char)(group >> 16);
        if (digits > 2)
            *to++ = (unsigned char)(group >> 8);
        if (digits > 3)
            *to++ = (unsigned char)group;
    }
    return 0;
}

PyObject *hd_py_base64_decode(struct hd_slice text, bool is_mutable)
{
    size_t pad = 0;
    PyObject *bytes;
    char *to;

    if (text.len % 4 != 0)
        goto refuse;
    if (text.len)
        pad = text.ptr[text.len - 1] == '=' ? 1 + (size_t)(text.ptr[text.len - 2] == '=') : 0;
    if (is_mutable)
        bytes = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(text.len / 4 * 3 - pad));
    else
        bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(text.len / 4 * 3 - pad));
    if (!bytes)
        return NULL;
    to = is_mutable ? PyByteArray_AS_STRING(bytes) : PyBytes_AS_STRING(bytes);
    if (unpack_base64(text, (unsigned char *)to) == 0)
        return bytes;
    Py_DECREF(bytes);
refuse:
    PyErr_SetString(PyExc_ValueError, "not base64");
    return NULL;
}
