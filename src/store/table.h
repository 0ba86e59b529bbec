/*
 * The tables of the store, declared once. Backends create and address them
 * from these declarations; nothing else in the tree names a column.
 *
 * A row is an array of cells in column order. The first `key_count` columns
 * are the primary key, ordered column by column: TEXT by bytes, INT by value.
 */
#ifndef HD_STORE_TABLE_H
#define HD_STORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define HD_SCHEMA_VERSION 9
#define HD_MAX_COLUMNS 10
#define HD_MAX_INDEXES 3
#define HD_MAX_INDEX_COLUMNS 5

enum hd_table_id {
    HD_THREADS, /* the library's: checkpoints and the rows that belong to them */
    HD_CHECKPOINTS,
    HD_WRITES,
    HD_CHUNKS,
    HD_ASSISTANTS, /* the server's, through store/rows.h */
    HD_ASSISTANT_VERSIONS,
    HD_THREAD_INFO,
    HD_RUNS,
    HD_EVENT_PAGES,
    HD_ITEMS,
    HD_CRONS,
    HD_EXCHANGES,
    HD_PRINCIPALS,
    HD_PARTICIPANTS,
    HD_INVITATIONS,
    HD_API_KEYS,
    HD_VECTORS,
    HD_THREAD_TEXTS,
    HD_THREAD_WORDS,
    HD_SERVERS,
    HD_OUTBOX,
    HD_LINES,
    HD_HOLDS,
    HD_RUN_SLOTS,
    HD_ROOM,
    HD_ROOM_MESSAGES,
    HD_ROOM_CONTENTS,
    HD_ROOM_IDS,
    HD_ROOM_RUNS,
    HD_ROOM_CASCADES,
    HD_ROOM_READS,
    HD_ROOM_MENTIONS,
    HD_TABLE_COUNT
};

enum hd_column_type {
    HD_COL_TEXT, /* arbitrary bytes that are usually text */
    HD_COL_INT,
    HD_COL_BLOB
};

struct hd_column {
    const char *name;
    enum hd_column_type type;
    bool nullable;
};

/*
 * An ordered secondary index over some columns, including all key columns. A row whose first
 * indexed column is null is not in the index. A partial index has only the rows whose column
 * `greater` is greater than their column `lesser`, and costs the other rows nothing.
 */
struct hd_index {
    const char *name;
    unsigned column_count;
    unsigned columns[HD_MAX_INDEX_COLUMNS];
    int since; /* the schema version that added it; 0: the same as its table */
    bool is_partial;
    unsigned greater, lesser;
};

struct hd_table {
    const char *name;
    unsigned key_count;
    unsigned column_count;
    struct hd_column columns[HD_MAX_COLUMNS];
    unsigned index_count;
    struct hd_index indexes[HD_MAX_INDEXES];
    bool is_wide; /* rows are long: a backend may keep key and row apart */
    int since;    /* the schema version that added it */
};

extern const struct hd_table hd_tables[HD_TABLE_COUNT];

/* Columns, prefixed with the name of their table. */
enum { HD_THREADS_ID, HD_THREADS_EPOCH, HD_THREADS_CREATED, HD_THREADS_UPDATED };
enum {
    HD_CHECKPOINTS_THREAD,
    HD_CHECKPOINTS_NS,
    HD_CHECKPOINTS_ID,
    HD_CHECKPOINTS_PARENT,
    HD_CHECKPOINTS_RUN,
    HD_CHECKPOINTS_METADATA,
    HD_CHECKPOINTS_BODY
};
enum {
    HD_CHECKPOINTS_BY_RUN,  /* index: run, thread, ns, id */
    HD_CHECKPOINTS_BACKWARD /* index: thread, ns, id; only where parent > id (order.h) */
};
enum {
    HD_WRITES_THREAD,
    HD_WRITES_NS,
    HD_WRITES_CHECKPOINT,
    HD_WRITES_TASK,
    HD_WRITES_IDX,
    HD_WRITES_PATH,
    HD_WRITES_CHANNEL,
    HD_WRITES_TYPE,
    HD_WRITES_VALUE
};
/* The column "stream" holds the name of the chunk sequence (value.h). */
enum { HD_CHUNKS_THREAD, HD_CHUNKS_STREAM, HD_CHUNKS_SEQ, HD_CHUNKS_HASH, HD_CHUNKS_DATA };

/*
 * The server's tables. Times are microseconds since 1970, a `body` is a JSON object, and `rev`
 * grows with each change of its row: HD_OP_EXPECT compares it.
 */
enum {
    HD_ASSISTANTS_PRINCIPAL,
    HD_ASSISTANTS_ID,
    HD_ASSISTANTS_GRAPH,
    HD_ASSISTANTS_CREATED,
    HD_ASSISTANTS_UPDATED,
    HD_ASSISTANTS_VERSION, /* the one in use */
    HD_ASSISTANTS_NAME,
    HD_ASSISTANTS_BODY
};
enum {
    HD_ASSISTANT_VERSIONS_PRINCIPAL,
    HD_ASSISTANT_VERSIONS_ID,
    HD_ASSISTANT_VERSIONS_VERSION,
    HD_ASSISTANT_VERSIONS_CREATED,
    HD_ASSISTANT_VERSIONS_BODY
};
enum {
    HD_THREAD_INFO_PRINCIPAL,
    HD_THREAD_INFO_ID,
    HD_THREAD_INFO_REV,
    HD_THREAD_INFO_STATUS,
    HD_THREAD_INFO_CREATED,
    HD_THREAD_INFO_UPDATED,
    HD_THREAD_INFO_STATE_UPDATED,
    HD_THREAD_INFO_EXPIRES,   /* null: never */
    HD_THREAD_INFO_EVENT_SEQ, /* the greatest number an event of the thread may have */
    HD_THREAD_INFO_BODY
};
enum {
    HD_THREAD_INFO_BY_CREATED, /* index: principal, created_at, id */
    HD_THREAD_INFO_BY_EXPIRY,  /* index: expires_at, principal, id */
    HD_THREAD_INFO_BY_UPDATED  /* index: principal, updated_at, id */
};
enum {
    HD_RUNS_PRINCIPAL,
    HD_RUNS_THREAD,
    HD_RUNS_ID,
    HD_RUNS_REV,
    HD_RUNS_STATUS,
    HD_RUNS_CREATED,
    HD_RUNS_UPDATED,
    HD_RUNS_DUE, /* the run does not start before; null: the run has ended */
    HD_RUNS_BODY
};
enum {
    HD_RUNS_BY_STATUS, /* index: status, principal, thread, id */
    HD_RUNS_BY_RUN     /* index: id, principal, thread */
};
enum {
    HD_EVENT_PAGES_PRINCIPAL,
    HD_EVENT_PAGES_THREAD,
    HD_EVENT_PAGES_FIRST,
    HD_EVENT_PAGES_LAST,
    HD_EVENT_PAGES_RUN,
    HD_EVENT_PAGES_CREATED,
    HD_EVENT_PAGES_DATA
};
enum { HD_EVENT_PAGES_BY_AGE }; /* index: created_at, principal, thread, first */
enum {
    HD_ITEMS_PRINCIPAL,
    HD_ITEMS_NAMESPACE,
    HD_ITEMS_KEY,
    HD_ITEMS_CREATED,
    HD_ITEMS_UPDATED,
    HD_ITEMS_EXPIRES, /* null: never */
    HD_ITEMS_TTL,     /* how long it lives after each write or read, or null */
    HD_ITEMS_VALUE
};
enum { HD_ITEMS_BY_EXPIRY }; /* index: expires_at, principal, namespace, key */
enum {
    HD_CRONS_PRINCIPAL,
    HD_CRONS_ID,
    HD_CRONS_REV,
    HD_CRONS_NEXT, /* null: it does not run again */
    HD_CRONS_CREATED,
    HD_CRONS_BODY
};
enum { HD_CRONS_DUE }; /* index: next_at, principal, id */
/* The requests of a run to other servers and their responses, packed as chunks are. */
enum {
    HD_EXCHANGES_PRINCIPAL,
    HD_EXCHANGES_THREAD,
    HD_EXCHANGES_SEQ, /* grows with time */
    HD_EXCHANGES_RUN,
    HD_EXCHANGES_CREATED,
    HD_EXCHANGES_DATA
};
/* The identity of a principal: the source of its key, so that the key can be derived again. */
enum {
    HD_PRINCIPALS_ID,
    HD_PRINCIPALS_REV,
    HD_PRINCIPALS_KEY,    /* the name of the key it was derived with */
    HD_PRINCIPALS_ISSUER, /* the alias */
    HD_PRINCIPALS_SUBJECT,
    HD_PRINCIPALS_STATE, /* enum hd_principal_state */
    HD_PRINCIPALS_CREATED,
    HD_PRINCIPALS_BODY
};
/* The participants of a thread besides its owner. */
enum {
    HD_PARTICIPANTS_MEMBER, /* a principal, or that of an organisation */
    HD_PARTICIPANTS_THREAD,
    HD_PARTICIPANTS_OWNER,
    HD_PARTICIPANTS_ROLE, /* enum hd_role */
    HD_PARTICIPANTS_CREATED,
    HD_PARTICIPANTS_BODY
};
enum { HD_PARTICIPANTS_BY_THREAD }; /* index: owner, thread, member */
enum {
    HD_INVITATIONS_ID, /* the hash of its token */
    HD_INVITATIONS_REV,
    HD_INVITATIONS_OWNER,
    HD_INVITATIONS_THREAD,
    HD_INVITATIONS_ROLE,
    HD_INVITATIONS_LEFT, /* how often it can still be accepted */
    HD_INVITATIONS_CREATED,
    HD_INVITATIONS_EXPIRES, /* null: never */
    HD_INVITATIONS_BODY
};
enum {
    HD_INVITATIONS_BY_THREAD, /* index: owner, thread, id */
    HD_INVITATIONS_BY_EXPIRY  /* index: expires_at, id */
};
enum {
    HD_API_KEYS_ID,
    HD_API_KEYS_REV,
    HD_API_KEYS_HASH,
    HD_API_KEYS_CREATED,
    HD_API_KEYS_EXPIRES, /* null: never */
    HD_API_KEYS_REVOKED, /* null: it is valid */
    HD_API_KEYS_BODY
};

/* Embedding vectors of items, for searches: a row for each item that has any. */
enum {
    HD_VECTORS_PRINCIPAL,
    HD_VECTORS_NAMESPACE,
    HD_VECTORS_KEY,
    HD_VECTORS_UPDATED, /* that of the item; if they differ the vectors are out of date */
    HD_VECTORS_DIMS,
    HD_VECTORS_DATA /* float32, little endian: a vector of length 1 for each text of the item */
};
/*
 * The search index over the titles and messages of threads (search/thread_texts.h). It can be
 * rebuilt from the threads, so it is neither exported nor imported.
 */
enum {
    HD_THREAD_TEXTS_PRINCIPAL,
    HD_THREAD_TEXTS_ID,
    HD_THREAD_TEXTS_REV,  /* revision of the thread's record that was indexed; 0: none yet */
    HD_THREAD_TEXTS_LABEL /* the beginning of its first human message; may be empty */
};
enum {
    HD_THREAD_WORDS_PRINCIPAL,
    HD_THREAD_WORDS_ID,
    HD_THREAD_WORDS_WORD, /* case-folded */
    HD_THREAD_WORDS_REV
};
enum { HD_THREAD_WORDS_BY_WORD }; /* index: principal, word, id */

/*
 * Servers that use the database (cluster/server_row.h). A server that uses it alone has the slot
 * "". Of several servers each has its id, and the leader's token is also in the slot "".
 */
enum {
    HD_SERVERS_SLOT,
    HD_SERVERS_TOKEN, /* random, one for each start of a server */
    HD_SERVERS_BEAT,  /* grows while the server is alive */
    HD_SERVERS_STARTED,
    HD_SERVERS_BODY /* address, host, process, version (cluster/server_identity.h) */
};

/* Webhooks that are not delivered yet. */
enum {
    HD_OUTBOX_PRINCIPAL,
    HD_OUTBOX_THREAD,
    HD_OUTBOX_RUN,
    HD_OUTBOX_CREATED,
    HD_OUTBOX_ID, /* of the delivery (webhook/outbox.h) */
    HD_OUTBOX_URL,
    HD_OUTBOX_BODY /* packed */
};
enum {
    HD_OUTBOX_BY_AGE /* index: created_at, principal, thread, run */
};

/* Agents of a thread: one row for each root namespace (records/line.h). */
enum {
    HD_LINES_PRINCIPAL,
    HD_LINES_THREAD,
    HD_LINES_NS,
    HD_LINES_STATUS,
    HD_LINES_UPDATED,
    HD_LINES_BODY
};

/* Which server executes the runs of a thread, where several share a store (records/hold.h). */
enum {
    HD_HOLDS_PRINCIPAL,
    HD_HOLDS_THREAD,
    HD_HOLDS_TOKEN,  /* random, one for each claim; 0: unheld */
    HD_HOLDS_SERVER, /* the holder; null: unheld */
    HD_HOLDS_LAST    /* the holder, or the last one */
};
enum { HD_HOLDS_BY_SERVER }; /* index: server, principal, thread */

/* The runs in flight of an actor, counted over all servers of a store (records/run_slot.h). */
enum {
    HD_RUN_SLOTS_ACTOR,
    HD_RUN_SLOTS_SLOT,  /* from 1 to limits.runs */
    HD_RUN_SLOTS_TOKEN, /* random, one for each run */
    HD_RUN_SLOTS_PRINCIPAL,
    HD_RUN_SLOTS_THREAD,
    HD_RUN_SLOTS_RUN
};

/* Rooms: threads with chat messages (room/room.h). */
enum {
    HD_ROOM_PRINCIPAL,
    HD_ROOM_THREAD,
    HD_ROOM_REV,
    HD_ROOM_LAST_SEQ, /* of its messages */
    HD_ROOM_CHANGES,  /* edits, deletions and switches so far */
    HD_ROOM_UPDATED,
    HD_ROOM_BODY
};
enum {
    HD_ROOM_MESSAGES_PRINCIPAL,
    HD_ROOM_MESSAGES_THREAD,
    HD_ROOM_MESSAGES_SEQ, /* from 1 */
    HD_ROOM_MESSAGES_ID,
    HD_ROOM_MESSAGES_STATE,
    HD_ROOM_MESSAGES_VERSION, /* the current one; its text is in room_contents */
    HD_ROOM_MESSAGES_CHANGED, /* changes of the room at its last change; 0: never */
    HD_ROOM_MESSAGES_CREATED,
    HD_ROOM_MESSAGES_SENDER, /* principal, assistant, or name of a service */
    HD_ROOM_MESSAGES_BODY
};
enum {
    HD_ROOM_MESSAGES_BY_SENDER, /* index: principal, thread, sender, seq */
    HD_ROOM_MESSAGES_BY_STATE,  /* index: principal, thread, state, seq */
    HD_ROOM_MESSAGES_BY_CHANGE  /* index: principal, thread, changed, seq */
};
/* The text of each version of a message. */
enum {
    HD_ROOM_CONTENTS_PRINCIPAL,
    HD_ROOM_CONTENTS_THREAD,
    HD_ROOM_CONTENTS_MESSAGE,
    HD_ROOM_CONTENTS_VERSION,
    HD_ROOM_CONTENTS_CREATED,
    HD_ROOM_CONTENTS_CONTENT, /* JSON: a string or a list of content blocks */
    HD_ROOM_CONTENTS_BODY
};
/* Makes ids of messages unique in their room. */
enum {
    HD_ROOM_IDS_PRINCIPAL,
    HD_ROOM_IDS_THREAD,
    HD_ROOM_IDS_MESSAGE,
    HD_ROOM_IDS_SEQ, /* 0: the answer of a run that has not ended */
    HD_ROOM_IDS_HASH /* of the first request; or empty */
};
/* From message to run to answer. The status of a run is in its own row. */
enum {
    HD_ROOM_RUNS_PRINCIPAL,
    HD_ROOM_RUNS_THREAD,
    HD_ROOM_RUNS_RUN,
    HD_ROOM_RUNS_TRIGGER, /* the message that made it; empty: a plain run */
    HD_ROOM_RUNS_CREATED,
    HD_ROOM_RUNS_BODY
};
enum { HD_ROOM_RUNS_BY_TRIGGER }; /* index: principal, thread, trigger, run */
enum {
    HD_ROOM_CASCADES_PRINCIPAL,
    HD_ROOM_CASCADES_THREAD,
    HD_ROOM_CASCADES_ID,
    HD_ROOM_CASCADES_REV,
    HD_ROOM_CASCADES_STATUS,
    HD_ROOM_CASCADES_CREATED,
    HD_ROOM_CASCADES_UPDATED,
    HD_ROOM_CASCADES_BODY
};
enum {
    HD_ROOM_CASCADES_BY_CREATED, /* index: principal, thread, created_at, id */
    HD_ROOM_CASCADES_BY_STATUS   /* index: status, principal, thread, id */
};
/* How far each person has read. */
enum {
    HD_ROOM_READS_PRINCIPAL,
    HD_ROOM_READS_THREAD,
    HD_ROOM_READS_READER, /* a principal */
    HD_ROOM_READS_SEQ,
    HD_ROOM_READS_UPDATED,
    HD_ROOM_READS_BODY
};
/* Inboxes: messages that mention a person. */
enum {
    HD_ROOM_MENTIONS_MEMBER, /* the principal that is mentioned */
    HD_ROOM_MENTIONS_CREATED,
    HD_ROOM_MENTIONS_PRINCIPAL,
    HD_ROOM_MENTIONS_THREAD,
    HD_ROOM_MENTIONS_MESSAGE,
    HD_ROOM_MENTIONS_SEQ
};
enum { HD_ROOM_MENTIONS_BY_THREAD }; /* index: principal, thread, member, created_at, message */

struct hd_cell {
    enum hd_cell_kind { HD_CELL_NULL, HD_CELL_INT, HD_CELL_BYTES } kind;
    int64_t number;
    struct hd_slice bytes;
};

static inline struct hd_cell hd_cell_null(void)
{
    return (struct hd_cell){.kind = HD_CELL_NULL};
}

static inline struct hd_cell hd_cell_int(int64_t number)
{
    return (struct hd_cell){.kind = HD_CELL_INT, .number = number};
}

static inline struct hd_cell hd_cell_bytes(struct hd_slice bytes)
{
    return (struct hd_cell){.kind = HD_CELL_BYTES, .bytes = bytes};
}

/* Order of two cells of one column: null first, then by value or by bytes. */
int hd_cell_cmp(const struct hd_cell *a, const struct hd_cell *b);

/* Order of the first `count` cells. */
int hd_cells_cmp(const struct hd_cell *a, const struct hd_cell *b, size_t count);

#endif
