/*
 * Shared by the files of the SQLite driver:
 *
 *   sqlite_sql.c      SQL text from the declarations of the tables
 *   sqlite_conn.c     one connection: its settings, statements, waiting, errors
 *   sqlite_schema.c   checks that the file is a store, creates one in an empty file
 *   backend_sqlite.c  the driver: one writer, a few readers
 */
#ifndef HD_STORE_SQLITE_BACKEND_SQLITE_H
#define HD_STORE_SQLITE_BACKEND_SQLITE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "store/backend.h"

/* ---- sqlite_sql.c ----------------------------------------------------- */

/* Statements without parameters, numbered so that they can be shapes too. */
enum hd_sqlite_fixed {
    HD_SQLITE_BEGIN,
    HD_SQLITE_BEGIN_IMMEDIATE,
    HD_SQLITE_COMMIT,
    HD_SQLITE_ROLLBACK
};

/*
 * A number that determines the text of a statement: two operations (or two queries) of the same
 * shape differ only in their parameters. Never equal to one of enum hd_sqlite_fixed.
 */
uint64_t hd_sqlite_op_shape(const struct hd_op *op);
uint64_t hd_sqlite_query_shape(const struct hd_query *query);

/*
 * Append the text. Order of the parameters: Put and add: the row. Delete: key cells. Expect: the
 * new values, the key, the expected number; the statement changes a row, or without `set` finds
 * one, when the expectation holds. Query: prefix, low, high, after, limit, each if present.
 */
HD_MUST_CHECK int hd_sqlite_op_sql(struct hd_buf *out, const struct hd_op *op);
HD_MUST_CHECK int hd_sqlite_query_sql(struct hd_buf *out, const struct hd_query *query);

/* Appends CREATE TABLE and CREATE INDEX for one table, each closed by a semicolon. */
HD_MUST_CHECK int hd_sqlite_table_sql(struct hd_buf *out, const struct hd_table *table);
/* CREATE INDEX for the indexes that versions after `version` added to a table that it has. */
HD_MUST_CHECK int hd_sqlite_new_indexes_sql(struct hd_buf *out, const struct hd_table *table,
                                            int version);

/* The same for CREATE VIEW: heddle_<table>, without blobs and with times as text. */
HD_MUST_CHECK int hd_sqlite_view_sql(struct hd_buf *out, const struct hd_table *table);

/* ---- sqlite_conn.c ---------------------------------------------------- */

#define HD_SQLITE_STATEMENTS 128
#define HD_SQLITE_NAME_SIZE 128

struct hd_sqlite_conn {
    sqlite3 *db;
    char name[HD_SQLITE_NAME_SIZE]; /* the path as faults quote it: its end, when it is long */
    int timeout_ms;                 /* how long to wait for a lock */
    int64_t waiting_since_us;
    int restart_at; /* pages of log from which on a checkpoint waits for readers */
    bool is_broken; /* an error occurred that a new connection may not have */
    unsigned statement_count;
    unsigned next_victim;
    struct {
        uint64_t shape;
        sqlite3_stmt *stmt;
    } statements[HD_SQLITE_STATEMENTS];
};

enum hd_sqlite_role { HD_SQLITE_WRITER, HD_SQLITE_READER };

/* `flags` as sqlite3_open_v2() takes them. Settings come later, with hd_sqlite_conn_configure(). */
HD_MUST_CHECK int hd_sqlite_conn_open(struct hd_sqlite_conn **out, const char *path, int flags,
                                      int timeout_ms, struct heddle_error *fault);
void hd_sqlite_conn_close(struct hd_sqlite_conn *conn);

/* The settings of a connection, once the file is known to be a store. */
HD_MUST_CHECK int hd_sqlite_conn_configure(struct hd_sqlite_conn *conn, enum hd_sqlite_role role,
                                           bool is_relaxed, struct heddle_error *fault);

/* The path for faults, or another word for it when places are hidden. */
const char *hd_sqlite_name(const struct hd_sqlite_conn *conn);

/* Our code for the last failure on this connection, with a sentence "name: while …: cause". */
int hd_sqlite_fail(struct hd_sqlite_conn *conn, const char *doing, struct heddle_error *fault);

/* Runs SQL without parameters, ignoring rows. */
HD_MUST_CHECK int hd_sqlite_exec(struct hd_sqlite_conn *conn, const char *sql, const char *doing,
                                 struct heddle_error *fault);

/* The first column of the first row, or HD_ECORRUPT when there is no row. */
HD_MUST_CHECK int hd_sqlite_query_int(struct hd_sqlite_conn *conn, const char *sql, int64_t *out,
                                      struct heddle_error *fault);

/* Prepared statements that live as long as the connection. Reset them after use. */
HD_MUST_CHECK int hd_sqlite_op_statement(struct hd_sqlite_conn *conn, const struct hd_op *op,
                                         sqlite3_stmt **out, struct heddle_error *fault);
HD_MUST_CHECK int hd_sqlite_query_statement(struct hd_sqlite_conn *conn,
                                            const struct hd_query *query, sqlite3_stmt **out,
                                            struct heddle_error *fault);
HD_MUST_CHECK int hd_sqlite_run(struct hd_sqlite_conn *conn, enum hd_sqlite_fixed which,
                                struct heddle_error *fault);

/* Leaves a transaction that cannot be completed. False: it is still open; close the connection. */
bool hd_sqlite_abandon(struct hd_sqlite_conn *conn);

/* True when the path no longer leads to the file that is open. */
bool hd_sqlite_has_moved(struct hd_sqlite_conn *conn);

/* Borrows the bytes until the statement is reset. Returns SQLite's code. */
int hd_sqlite_bind(sqlite3_stmt *stmt, int at, enum hd_column_type type,
                   const struct hd_cell *cell);

/* ---- sqlite_schema.c -------------------------------------------------- */

#define HD_SQLITE_APPLICATION_ID 0x4864646c /* "Hddl" */

/*
 * Opens `path` as a connection that may write, creating the file and the tables when they are
 * missing, unless the file has version `enough`. On failure nothing was created or changed.
 */
HD_MUST_CHECK int hd_sqlite_open_file(struct hd_sqlite_conn **out, const char *path, int enough,
                                      int timeout_ms, struct heddle_error *fault);

/* Creates the tables that are missing in a file of an older version. */
HD_MUST_CHECK int hd_sqlite_upgrade(struct hd_sqlite_conn *conn, struct heddle_error *fault);

/* The same for a private database in memory. */
HD_MUST_CHECK int hd_sqlite_open_memory(struct hd_sqlite_conn **out, int timeout_ms,
                                        struct heddle_error *fault);

#endif
