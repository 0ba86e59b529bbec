CREATE VIEW chat_messages AS
SELECT m.message_id AS id, m.thread_id,
       CASE WHEN m.body ->> 'kind' <> 'agent' THEN m.body ->> 'sender_id' END AS sender_id,
       CASE WHEN m.body ->> 'kind' = 'agent' THEN m.sender END AS agent_id,
       CASE WHEN m.state = 'deleted' THEN NULL
            WHEN json_type(c.content) = 'array' THEN
                (SELECT group_concat(CASE b.type WHEN 'text' THEN b.value
                     WHEN 'object' THEN b.value ->> 'text' END, '')
                 FROM json_each(c.content) AS b)
            ELSE c.content ->> '$' END AS content,
       CASE WHEN m.state = 'deleted' THEN '{}'
            ELSE coalesce(c.body -> 'metadata', '{}') END AS metadata,
       m.body ->> 'reply_to' AS parent_message_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ',
           coalesce(m.body ->> 'updated_at', m.created_at) / 1e6, 'unixepoch')
           AS updated_at,
       m.state = 'deleted' AS is_deleted, m.principal
FROM room_messages AS m LEFT JOIN room_contents AS c
     USING (principal, thread_id, message_id, version);
CREATE VIEW heddle_api_keys AS
SELECT key_id,
       rev,
       hash,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', expires_at / 1e6, 'unixepoch') AS expires_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', revoked_at / 1e6, 'unixepoch') AS revoked_at,
       body
FROM api_keys;
CREATE VIEW heddle_assistant_versions AS
SELECT principal,
       assistant_id,
       version,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       body
FROM assistant_versions;
CREATE VIEW heddle_assistants AS
SELECT principal,
       assistant_id,
       graph_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') AS updated_at,
       version,
       name,
       body
FROM assistants;
CREATE VIEW heddle_checkpoints AS
SELECT substr(thread_id, 1, instr(thread_id, ':') - 1) AS principal,
       substr(thread_id, instr(thread_id, ':') + 1) AS thread_id,
       checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id, metadata
FROM checkpoints;
CREATE VIEW heddle_crons AS
SELECT principal,
       cron_id,
       rev,
       strftime('%Y-%m-%dT%H:%M:%fZ', next_at / 1e6, 'unixepoch') AS next_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       body
FROM crons;
CREATE VIEW heddle_event_pages AS
SELECT principal,
       thread_id,
       first_seq,
       last_seq,
       run_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at
FROM event_pages;
CREATE VIEW heddle_exchanges AS
SELECT principal,
       thread_id,
       seq,
       run_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at
FROM exchanges;
CREATE VIEW heddle_holds AS
SELECT principal,
       thread_id,
       token,
       server,
       last_server
FROM holds;
CREATE VIEW heddle_invitations AS
SELECT invitation_id,
       rev,
       principal,
       thread_id,
       role,
       uses_left,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', expires_at / 1e6, 'unixepoch') AS expires_at,
       body
FROM invitations;
CREATE VIEW heddle_items AS
SELECT principal,
       namespace,
       key,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') AS updated_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', expires_at / 1e6, 'unixepoch') AS expires_at,
       ttl_us,
       value
FROM items;
CREATE VIEW heddle_lines AS
SELECT principal,
       thread_id,
       checkpoint_ns,
       status,
       strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') AS updated_at,
       body
FROM lines;
CREATE VIEW heddle_outbox AS
SELECT principal,
       thread_id,
       run_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       delivery_id,
       url
FROM outbox;
CREATE VIEW heddle_participants AS
SELECT member,
       thread_id,
       principal,
       role,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       body
FROM participants;
CREATE VIEW heddle_principals AS
SELECT principal,
       rev,
       key_id,
       issuer,
       subject,
       state,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       body
FROM principals;
CREATE VIEW heddle_room AS
SELECT principal,
       thread_id,
       rev,
       last_seq,
       changes,
       strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') AS updated_at,
       body
FROM room;
CREATE VIEW heddle_room_cascades AS
SELECT principal,
       thread_id,
       cascade_id,
       rev,
       status,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') AS updated_at,
       body
FROM room_cascades;
CREATE VIEW heddle_room_contents AS
SELECT principal,
       thread_id,
       message_id,
       version,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       content,
       body
FROM room_contents;
CREATE VIEW heddle_room_ids AS
SELECT principal,
       thread_id,
       message_id,
       seq,
       hash
FROM room_ids;
CREATE VIEW heddle_room_mentions AS
SELECT member,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       principal,
       thread_id,
       message_id,
       seq
FROM room_mentions;
CREATE VIEW heddle_room_messages AS
SELECT principal,
       thread_id,
       seq,
       message_id,
       state,
       version,
       changed,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       sender,
       body
FROM room_messages;
CREATE VIEW heddle_room_reads AS
SELECT principal,
       thread_id,
       reader,
       seq,
       strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') AS updated_at,
       body
FROM room_reads;
CREATE VIEW heddle_room_runs AS
SELECT principal,
       thread_id,
       run_id,
       trigger_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       body
FROM room_runs;
CREATE VIEW heddle_run_slots AS
SELECT actor,
       slot,
       token,
       principal,
       thread_id,
       run_id
FROM run_slots;
CREATE VIEW heddle_runs AS
SELECT principal,
       thread_id,
       run_id,
       rev,
       status,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') AS updated_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', due_at / 1e6, 'unixepoch') AS due_at,
       body
FROM runs;
CREATE VIEW heddle_servers AS
SELECT slot,
       token,
       beat,
       strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1e6, 'unixepoch') AS started_at,
       body
FROM servers;
CREATE VIEW heddle_thread_info AS
SELECT principal,
       thread_id,
       rev,
       status,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') AS updated_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', state_updated_at / 1e6, 'unixepoch') AS state_updated_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', expires_at / 1e6, 'unixepoch') AS expires_at,
       event_seq,
       body
FROM thread_info;
CREATE VIEW heddle_thread_texts AS
SELECT principal,
       thread_id,
       rev,
       label
FROM thread_texts;
CREATE VIEW heddle_thread_words AS
SELECT principal,
       thread_id,
       word,
       rev
FROM thread_words;
CREATE VIEW heddle_threads AS
SELECT substr(t.thread_id, 1, instr(t.thread_id, ':') - 1) AS principal,
       substr(t.thread_id, instr(t.thread_id, ':') + 1) AS thread_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.updated_at / 1e6, 'unixepoch') AS updated_at,
       (SELECT count(*) FROM checkpoints AS c WHERE c.thread_id = t.thread_id)
           AS checkpoints
FROM threads AS t;
CREATE VIEW heddle_vectors AS
SELECT principal,
       namespace,
       key,
       strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') AS updated_at,
       dims
FROM vectors;
CREATE VIEW message_runs AS
SELECT m.run_id AS id, m.body ->> 'answer' AS message_id, m.run_id,
       m.body ->> 'assistant_id' AS assistant_id, m.body ->> 'runtime' AS runtime,
       m.thread_id, nullif(m.trigger_id, '') AS trigger_message_id,
       m.body ->> 'head_after' AS checkpoint_id,
       CASE coalesce(r.status, 'success') WHEN 'success' THEN 'completed'
            WHEN 'timeout' THEN 'error' ELSE r.status END AS status,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.created_at / 1e6, 'unixepoch') AS created_at,
       m.principal
FROM room_runs AS m LEFT JOIN runs AS r USING (principal, thread_id, run_id);
CREATE TABLE api_keys (
    key_id TEXT NOT NULL,
    rev INTEGER NOT NULL,
    hash TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    body TEXT NOT NULL,
    PRIMARY KEY (key_id)) WITHOUT ROWID;
CREATE TABLE assistant_versions (
    principal TEXT NOT NULL,
    assistant_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, assistant_id, version)) WITHOUT ROWID;
CREATE TABLE assistants (
    principal TEXT NOT NULL,
    assistant_id TEXT NOT NULL,
    graph_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, assistant_id)) WITHOUT ROWID;
CREATE TABLE checkpoints (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT,
    run_id TEXT,
    metadata TEXT NOT NULL,
    checkpoint BLOB NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE chunks (
    thread_id TEXT NOT NULL,
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (thread_id, stream, seq));
CREATE TABLE crons (
    principal TEXT NOT NULL,
    cron_id TEXT NOT NULL,
    rev INTEGER NOT NULL,
    next_at INTEGER,
    created_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, cron_id)) WITHOUT ROWID;
CREATE TABLE event_pages (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (principal, thread_id, first_seq));
CREATE TABLE exchanges (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (principal, thread_id, seq));
CREATE TABLE holds (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    token INTEGER NOT NULL,
    server TEXT,
    last_server TEXT NOT NULL,
    PRIMARY KEY (principal, thread_id)) WITHOUT ROWID;
CREATE TABLE invitations (
    invitation_id TEXT NOT NULL,
    rev INTEGER NOT NULL,
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    role INTEGER NOT NULL,
    uses_left INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    body TEXT NOT NULL,
    PRIMARY KEY (invitation_id)) WITHOUT ROWID;
CREATE TABLE items (
    principal TEXT NOT NULL,
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    ttl_us INTEGER,
    value TEXT NOT NULL,
    PRIMARY KEY (principal, namespace, key));
CREATE TABLE lines (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL,
    status TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, thread_id, checkpoint_ns)) WITHOUT ROWID;
CREATE TABLE outbox (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    delivery_id TEXT NOT NULL,
    url TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (principal, thread_id, run_id));
CREATE TABLE participants (
    member TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    role INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (member, thread_id, principal)) WITHOUT ROWID;
CREATE TABLE principals (
    principal TEXT NOT NULL,
    rev INTEGER NOT NULL,
    key_id TEXT NOT NULL,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    state INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal)) WITHOUT ROWID;
CREATE TABLE room (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    rev INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    changes INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, thread_id)) WITHOUT ROWID;
CREATE TABLE room_cascades (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    cascade_id TEXT NOT NULL,
    rev INTEGER NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, thread_id, cascade_id)) WITHOUT ROWID;
CREATE TABLE room_contents (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    content TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, thread_id, message_id, version));
CREATE TABLE room_ids (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (principal, thread_id, message_id)) WITHOUT ROWID;
CREATE TABLE room_mentions (
    member TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (member, created_at, principal, thread_id, message_id)) WITHOUT ROWID;
CREATE TABLE room_messages (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    state TEXT NOT NULL,
    version INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    sender TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, thread_id, seq)) WITHOUT ROWID;
CREATE TABLE room_reads (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    reader TEXT NOT NULL,
    seq INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, thread_id, reader)) WITHOUT ROWID;
CREATE TABLE room_runs (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    trigger_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, thread_id, run_id)) WITHOUT ROWID;
CREATE TABLE run_slots (
    actor TEXT NOT NULL,
    slot INTEGER NOT NULL,
    token INTEGER NOT NULL,
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    PRIMARY KEY (actor, slot)) WITHOUT ROWID;
CREATE TABLE runs (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    rev INTEGER NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    due_at INTEGER,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, thread_id, run_id));
CREATE TABLE servers (
    slot TEXT NOT NULL,
    token INTEGER NOT NULL,
    beat INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (slot)) WITHOUT ROWID;
CREATE TABLE thread_info (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    rev INTEGER NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    state_updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    event_seq INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, thread_id));
CREATE TABLE thread_texts (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    rev INTEGER NOT NULL,
    label TEXT NOT NULL,
    PRIMARY KEY (principal, thread_id)) WITHOUT ROWID;
CREATE TABLE thread_words (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    word TEXT NOT NULL,
    rev INTEGER NOT NULL,
    PRIMARY KEY (principal, thread_id, word)) WITHOUT ROWID;
CREATE TABLE threads (
    thread_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (thread_id)) WITHOUT ROWID;
CREATE TABLE vectors (
    principal TEXT NOT NULL,
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    dims INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (principal, namespace, key));
CREATE TABLE writes (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    idx INTEGER NOT NULL,
    task_path TEXT NOT NULL,
    channel TEXT NOT NULL,
    type TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)) WITHOUT ROWID;
CREATE INDEX checkpoints_backward ON checkpoints (thread_id, checkpoint_ns, checkpoint_id) WHERE parent_checkpoint_id > checkpoint_id;
CREATE INDEX checkpoints_by_run ON checkpoints (run_id, thread_id, checkpoint_ns, checkpoint_id) WHERE run_id IS NOT NULL;
CREATE INDEX crons_due ON crons (next_at, principal, cron_id) WHERE next_at IS NOT NULL;
CREATE INDEX event_pages_by_age ON event_pages (created_at, principal, thread_id, first_seq);
CREATE INDEX holds_by_server ON holds (server, principal, thread_id) WHERE server IS NOT NULL;
CREATE INDEX invitations_by_expiry ON invitations (expires_at, invitation_id) WHERE expires_at IS NOT NULL;
CREATE INDEX invitations_by_thread ON invitations (principal, thread_id, invitation_id);
CREATE INDEX items_by_expiry ON items (expires_at, principal, namespace, key) WHERE expires_at IS NOT NULL;
CREATE INDEX outbox_by_age ON outbox (created_at, principal, thread_id, run_id);
CREATE INDEX participants_by_thread ON participants (principal, thread_id, member);
CREATE INDEX room_cascades_by_created ON room_cascades (principal, thread_id, created_at, cascade_id);
CREATE INDEX room_cascades_by_status ON room_cascades (status, principal, thread_id, cascade_id);
CREATE INDEX room_mentions_by_thread ON room_mentions (principal, thread_id, member, created_at, message_id);
CREATE INDEX room_messages_by_change ON room_messages (principal, thread_id, changed, seq);
CREATE INDEX room_messages_by_sender ON room_messages (principal, thread_id, sender, seq);
CREATE INDEX room_messages_by_state ON room_messages (principal, thread_id, state, seq);
CREATE INDEX room_runs_by_trigger ON room_runs (principal, thread_id, trigger_id, run_id);
CREATE INDEX runs_by_run ON runs (run_id, principal, thread_id);
CREATE INDEX runs_by_status ON runs (status, principal, thread_id, run_id);
CREATE INDEX thread_info_by_created ON thread_info (principal, created_at, thread_id);
CREATE INDEX thread_info_by_expiry ON thread_info (expires_at, principal, thread_id) WHERE expires_at IS NOT NULL;
CREATE INDEX thread_info_by_updated ON thread_info (principal, updated_at, thread_id);
CREATE INDEX thread_words_by_word ON thread_words (principal, word, thread_id);
