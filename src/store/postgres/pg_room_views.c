/*
 * The views `chat_messages` and `message_runs`: rooms in the columns that applications expect, for
 * people and reporting tools. The program itself never reads them.
 */
#include "store/postgres/backend_postgres.h"

#include <assert.h>
#include <stdio.h>

/* In the texts below, @ is the quoted name of the schema. */

/*
 * A member of a JSON object as text. NULL where PostgreSQL cannot represent it (\u0000): a view
 * must not fail because of one row. Not parallel safe: an exception block is a subtransaction.
 */
static const char json_text[] =
    "CREATE OR REPLACE FUNCTION @.json_text(bytes bytea, name text) RETURNS text"
    " LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$"
    "BEGIN RETURN convert_from(bytes, 'UTF8')::json ->> name;"
    " EXCEPTION WHEN others THEN RETURN NULL; END$$";

/* A content, a JSON string or a list of blocks: its text, without the other blocks. */
static const char chat_text[] =
    "CREATE OR REPLACE FUNCTION @.chat_text(bytes bytea) RETURNS text"
    " LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$"
    "DECLARE content json;"
    " BEGIN content := convert_from(bytes, 'UTF8')::json;"
    " IF json_typeof(content) = 'array' THEN RETURN (SELECT string_agg("
    "CASE json_typeof(block) WHEN 'string' THEN block #>> '{}'"
    " WHEN 'object' THEN block ->> 'text' END, '' ORDER BY n)"
    " FROM json_array_elements(content) WITH ORDINALITY AS blocks(block, n));"
    " END IF;"
    " RETURN content #>> '{}';"
    " EXCEPTION WHEN others THEN RETURN encode(bytes, 'escape'); END$$";

/* Microseconds since 1970 as a time; NULL for times that PostgreSQL does not have. */
static const char chat_time[] =
    "CREATE OR REPLACE FUNCTION @.chat_time(us bigint) RETURNS timestamptz"
    " LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$"
    "SELECT CASE WHEN us BETWEEN 0 AND 253402300799999999"
    " THEN to_timestamp(us / 1000000.0) END $$";

static const char chat_messages[] =
    "CREATE VIEW @.chat_messages AS SELECT"
    " @.readable(m.message_id) AS id,"
    " @.readable(m.thread_id) AS thread_id,"
    " CASE WHEN word.kind <> 'agent' THEN @.json_text(m.body, 'sender_id') END AS sender_id,"
    " CASE WHEN word.kind = 'agent' THEN @.readable(m.sender) END AS agent_id,"
    " CASE WHEN word.state <> 'deleted' THEN @.chat_text(c.content) END AS content,"
    " CASE WHEN word.state <> 'deleted' THEN coalesce(@.json_text(c.body, 'metadata'), '{}')"
    " ELSE '{}' END::json AS metadata,"
    " @.json_text(m.body, 'reply_to') AS parent_message_id,"
    " @.chat_time(m.created_at) AS created_at,"
    " @.chat_time(coalesce(@.json_text(m.body, 'updated_at')::bigint, m.created_at)) AS updated_at,"
    " word.state = 'deleted' AS is_deleted,"
    " @.readable(m.principal) AS principal"
    " FROM @.room_messages AS m"
    " LEFT JOIN @.room_contents AS c USING (principal, thread_id, message_id, version),"
    " LATERAL (SELECT @.json_text(m.body, 'kind') AS kind, @.readable(m.state) AS state OFFSET 0)"
    " AS word";

/* A run that was pruned had ended. */
static const char message_runs[] =
    "CREATE VIEW @.message_runs AS SELECT"
    " @.readable(m.run_id) AS id,"
    " @.json_text(m.body, 'answer') AS message_id,"
    " @.readable(m.run_id) AS run_id,"
    " @.json_text(m.body, 'assistant_id') AS assistant_id,"
    " @.json_text(m.body, 'runtime') AS runtime,"
    " @.readable(m.thread_id) AS thread_id,"
    " nullif(@.readable(m.trigger_id), '') AS trigger_message_id,"
    " @.json_text(m.body, 'head_after') AS checkpoint_id,"
    " CASE coalesce(@.readable(r.status), 'success') WHEN 'success' THEN 'completed'"
    " WHEN 'timeout' THEN 'error' ELSE @.readable(r.status) END AS status,"
    " @.chat_time(m.created_at) AS created_at,"
    " @.readable(m.principal) AS principal"
    " FROM @.room_runs AS m LEFT JOIN @.runs AS r USING (principal, thread_id, run_id)";

/* Functions come before the views that call them. */
static const char *const statements[] = {json_text, chat_text, chat_time, chat_messages,
                                         message_runs};

static void fill_schema(struct hd_pg_sql *sql, const char *statement, const char *schema)
{
    sql->len = 0;
    for (const char *at = statement; *at; at++) {
        size_t left = sizeof(sql->text) - sql->len;
        int len = *at == '@' ? snprintf(sql->text + sql->len, left, "\"%s\"", schema)
                             : snprintf(sql->text + sql->len, left, "%c", *at);

        assert(len > 0 && (size_t)len < left);
        sql->len += (size_t)len;
    }
}

int hd_pg_sql_create_room_views(const char *schema, hd_pg_emit emit, void *arg)
{
    struct hd_pg_sql sql;
    int err = 0;

    for (size_t i = 0; !err && i < HD_COUNT(statements); i++) {
        fill_schema(&sql, statements[i], schema);
        err = emit(arg, sql.text);
    }
    return err;
}
