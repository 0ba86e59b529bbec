/*
 * One list defines the error codes, their texts and the HTTP status each maps to.
 *
 * Functions return 0 or one of these (always negative). If a sentence helps the user, it is
 * returned beside the code in a struct heddle_error, written by the function that detects the
 * cause. The struct and the numbers are those of the public header.
 */
#ifndef HD_BASE_ERROR_H
#define HD_BASE_ERROR_H

#include <heddle.h>
#include <stdbool.h>

#include "base/compiler.h"

#define HD_ERRORS(X)                                                               \
    X(HD_ENOMEM, HEDDLE_ENOMEM, 503, "out of memory")                              \
    X(HD_ENOTFOUND, HEDDLE_ENOTFOUND, 404, "no such object")                       \
    X(HD_ECONFLICT, HEDDLE_ECONFLICT, 409, "changed by another writer")            \
    X(HD_EINVAL, HEDDLE_EINVAL, 422, "invalid argument")                           \
    X(HD_ELIMIT, HEDDLE_ELIMIT, 413, "over a configured limit")                    \
    X(HD_EIO, HEDDLE_EIO, 503, "input or output failed")                           \
    X(HD_EFULL, HEDDLE_EFULL, 507, "no space left on the device")                  \
    X(HD_ECORRUPT, HEDDLE_ECORRUPT, 500, "stored data is damaged")                 \
    X(HD_EVERSION, HEDDLE_EVERSION, 500, "written by a newer version")             \
    X(HD_EBUSY, HEDDLE_EBUSY, 503, "busy")                                         \
    X(HD_EUNAVAILABLE, HEDDLE_EUNAVAILABLE, 503, "the database cannot be reached") \
    X(HD_EEXISTS, HEDDLE_EEXISTS, 409, "exists already")                           \
    X(HD_EUNSUPPORTED, HEDDLE_EUNSUPPORTED, 501, "not supported")                  \
    X(HD_ECLOSED, HEDDLE_ECLOSED, 503, "closed")                                   \
    X(HD_EACCESS, HEDDLE_EACCESS, 403, "permission denied")                        \
    X(HD_ETAKEN, HEDDLE_ETAKEN, 503, "another server has taken over the thread")

enum {
#define X(name, code, http, text) name = code,
    HD_ERRORS(X)
#undef X
};

/*
 * A result of functions with a callback, beside 0 and the errors. 0: the callback is called once,
 * never before the function has returned. An error, or HD_READY: the callback is not called.
 * HD_READY means that the result was available at once; the function has written it to its last
 * argument.
 */
#define HD_READY 1

/* The fixed text of a code ("ok" for 0, "unknown error" for an unknown code). */
const char *hd_error_text(int err);

/* The symbolic name, such as "HD_ENOMEM". */
const char *hd_error_name(int err);

int hd_error_http_status(int err);

/* True when the same call may succeed later: the database is unreachable, locked or full. */
bool hd_error_is_transient(int err);

/*
 * Records a code with a sentence for the user, and returns the code, so that callers write `return
 * hd_error_set(...)`. Zero-initialise the struct; every function that takes one accepts NULL. The
 * first cause set wins, so outer layers may call this function without hiding the original cause.
 */
int hd_error_set(struct heddle_error *fault, int code, const char *fmt, ...) HD_PRINTF(3, 4);

/*
 * Error texts may contain files, folders, hosts and databases of this machine. A process that
 * serves clients hides them: hd_errors_hide_places(true), once, before it serves. Functions that
 * write such texts check hd_errors_are_hidden(). The log always contains them.
 */
void hd_errors_hide_places(bool hides);
bool hd_errors_are_hidden(void);

/*
 * Shortens absolute paths in `text`, in place, to their last part: "/srv/app/a.py" becomes
 * "…/a.py". A path counts when its first part is a folder of this machine, so that paths of URLs
 * and routes stay. Does nothing unless places are hidden.
 */
void hd_error_hide_paths(char *text);

#endif
