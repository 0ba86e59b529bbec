/* Maps the server's errors to our codes, and decides whether a retry may succeed. */
#include "store/postgres/backend_postgres.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    RETRY = 1, /* a retry may succeed */
    LOST = 2,  /* … but only on another connection */
    PLAIN = 4  /* … without prepared statements */
};

/* The first entry that `state` begins with counts. */
static const struct rule {
    const char *state;
    int err;
    unsigned flags;
} rules[] = {
    {HD_PG_MISMATCH, HD_ECONFLICT, 0},
    {HD_PG_DUPLICATE, HD_ECONFLICT, 0},
    {"40001", HD_EBUSY, RETRY}, /* serialization failure */
    {"40P01", HD_EBUSY, RETRY}, /* deadlock: this transaction was the victim */
    {"55P03", HD_EBUSY, 0},     /* lock timeout: has waited for the full time already */
    {"57014", HD_EBUSY, 0},     /* statement timeout or cancelled by an administrator */
    {"26000", HD_EUNAVAILABLE, RETRY | PLAIN}, /* no such prepared statement: another server */
    {"42P05", HD_EUNAVAILABLE, RETRY | PLAIN}, /* prepared already: a pooler's shared connection */
    {"25006", HD_EUNAVAILABLE, RETRY | LOST},  /* read only: the primary has moved */
    {"25P03", HD_EUNAVAILABLE, RETRY | LOST},  /* idle in transaction for too long */
    {"3D000", HD_EUNAVAILABLE, 0},             /* no such database */
    {"53100", HD_EFULL, 0},
    {"53200", HD_ENOMEM, 0},
    {"53300", HD_EUNAVAILABLE, RETRY | LOST}, /* too many connections */
    {"57P", HD_EUNAVAILABLE,
     RETRY | LOST},                        /* shutting down, starting, crashed, idle for too long */
    {"08", HD_EUNAVAILABLE, RETRY | LOST}, /* connection failure; also PgBouncer's errors */
    {"28", HD_EACCESS, 0},                 /* authentication */
    {"42501", HD_EACCESS, 0},              /* privileges */
    {"54", HD_ELIMIT, 0},                  /* such as a key too long for an index */
    {"42P01", HD_ECORRUPT, 0},             /* a table of ours is gone */
    {"42703", HD_ECORRUPT, 0},             /* a column of ours is gone */
    {"3F000", HD_ECORRUPT, 0},             /* the schema is gone */
    {"XX00", HD_ECORRUPT, 0},              /* damaged page or index, or a bug of the server */
};

static const struct rule *rule_of(const char *state)
{
    for (size_t i = 0; i < HD_COUNT(rules); i++) {
        if (strncmp(state, rules[i].state, strlen(rules[i].state)) == 0)
            return &rules[i];
    }
    return NULL;
}

static void fail_init(struct hd_pg_failure *failure, int err)
{
    memset(failure, 0, sizeof(*failure));
    failure->err = err;
    failure->tag = HD_PG_NO_TAG;
}

int hd_pg_fail(struct hd_pg_failure *failure, int err, const char *fmt, ...)
{
    va_list args;

    fail_init(failure, err);
    va_start(args, fmt);
    (void)vsnprintf(failure->text, sizeof(failure->text), fmt, args);
    va_end(args);
    return err;
}

/* Keeps the first line. */
static void set_text(struct hd_pg_failure *failure, const char *message)
{
    size_t len = message ? strcspn(message, "\r\n") : 0;

    if (len == 0)
        (void)snprintf(failure->text, sizeof(failure->text), "%s", hd_error_text(failure->err));
    else
        (void)snprintf(failure->text, sizeof(failure->text), "%.*s", (int)len, message);
}

int hd_pg_fail_state(struct hd_pg_failure *failure, const char *state, const char *message)
{
    const struct rule *rule = rule_of(state);

    fail_init(failure, rule ? rule->err : HD_EIO);
    if (rule) {
        failure->may_retry = rule->flags & RETRY;
        failure->is_lost = rule->flags & LOST;
        failure->needs_plain = rule->flags & PLAIN;
    }
    (void)snprintf(failure->state, sizeof(failure->state), "%.5s", state);
    set_text(failure, message);
    return failure->err;
}

/*
 * libpq does not return the SQLSTATE of a failed connection, but in verbose form it is in the
 * message, in any language: "FATAL:  28P01: sentence".
 */
static const char *find_state(const char *message)
{
    static const char state_chars[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    for (const char *p = strstr(message, ":  "); p; p = strstr(p + 1, ":  ")) {
        if (strspn(p + 3, state_chars) == 5 && p[8] == ':')
            return p + 3;
    }
    return NULL;
}

/* Without libpq's 'connection to server at "…", port … failed: ', of the last server it tried. */
static const char *find_reason(const char *message)
{
    static const char head[] = "connection to server";
    const char *last = message;

    for (const char *p = strstr(message, head); p; p = strstr(p + 1, head))
        last = p;
    if (last != message || strncmp(message, head, sizeof(head) - 1) == 0) {
        const char *reason = strstr(last, "failed: ");

        return reason ? reason + 8 : last;
    }
    return message;
}

int hd_pg_fail_conn(struct hd_pg_failure *failure, const PGconn *conn)
{
    const char *message = PQerrorMessage(conn);
    const char *state = find_state(message);

    if (state) {
        (void)hd_pg_fail_state(failure, state, state + 5 + strspn(state + 5, ": "));
    } else {
        fail_init(failure, HD_EUNAVAILABLE);
        failure->may_retry = true;
        set_text(failure, find_reason(message));
    }
    failure->is_lost = true;
    return failure->err;
}
