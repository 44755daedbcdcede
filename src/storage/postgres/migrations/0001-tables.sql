-- What the gateway stores, readable with psql. Times that decide something are the database's own. Times called `_at` of
-- type bigint are milliseconds since 1970.

-- A number that only rises, for every key: it outlives a row that is deleted and begun again.
create sequence epochs;
-- The order in which rows and states were changed.
create sequence changes;

create table nodes (
  id text primary key,
  address text not null default '',
  version text not null default '',
  state text not null default 'live' check (state in ('live', 'stopping')),
  turns integer not null default 0,
  started_at timestamptz not null default now(),
  heartbeat_at timestamptz not null default now(),
  -- One lease for everything that the node holds.
  lease_until timestamptz not null default now(),
  -- The last group of transactions and what it came to: one that is sent again is not applied again.
  last_batch bigint not null default 0,
  last_results text[] not null default '{}'
);

-- One row per conversation; `record` has the fields of sessions.json that are no columns.
create table sessions (
  key text primary key,
  session_id text not null,
  owner text,
  updated_at bigint not null default (extract(epoch from clock_timestamp()) * 1000)::bigint,
  changed bigint not null default nextval('changes'),
  record jsonb not null default '{}',
  -- Writing for the session needs this number, and the node that has it.
  epoch bigint not null default nextval('epochs'),
  node text,
  -- False for a key that a node works on before its conversation begins.
  begun boolean not null default true
);
create unique index sessions_by_id on sessions (session_id) where begun;
create index sessions_folded on sessions (lower(key), changed desc) where begun;
create index sessions_recent on sessions (updated_at desc, changed desc) where begun;
create index sessions_recent_of_owner on sessions (
  coalesce(owner, record->>'lastAccountId', record->'deliveryContext'->>'accountId'), updated_at desc, changed desc
) where begun;
create index sessions_of_node on sessions (node) where node is not null;

-- Rows that were not used for long; their transcripts stay. Naming one brings it back.
create table archived_sessions (
  key text primary key,
  record jsonb not null,
  archived_at timestamptz not null default now()
);
create index archived_sessions_folded on archived_sessions (lower(key));

-- Inbox and outbox: one row per message, from acceptance to its delivered answer.
create table messages (
  run text primary key,
  position bigint generated always as identity,
  key text not null,
  channel text not null,
  account text not null,
  -- The node that accepted it.
  node text not null,
  state text not null default 'open' check (state in ('open', 'waiting', 'unknown', 'delivered')),
  accepted_at bigint not null,
  -- By the database's clock.
  stored_at timestamptz not null default clock_timestamp(),
  -- Null once a copy of it is no longer recognised.
  fingerprint text unique,
  request_key text unique,
  request_digest text,
  message json not null,
  -- Text and attachments; gone once it is answered.
  body json,
  -- Where the answer goes instead.
  reply_to json,
  content json,
  answer_code text,
  answered_at bigint,
  answer_position bigint,
  -- The node that answered it and makes the first attempt to deliver it.
  answered_by text,
  seq bigint not null default 0,
  abandoned boolean not null default false,
  reset_done boolean not null default false,
  deaths integer not null default 0,
  -- It is to be resumed and work on it has not begun: an unforeseen end is not its fault.
  idle boolean not null default false
);
create index messages_open on messages (key, position) where state = 'open';
create index messages_undelivered on messages (channel, account, answer_position)
  where state in ('waiting', 'unknown') and not abandoned;
create index messages_numbered on messages (channel, account, seq) where state <> 'open';
create index messages_of_session on messages (key);
create index messages_by_age on messages (stored_at) where state <> 'open';
create index messages_failed on messages (answer_code) where answer_code is not null;

-- The next number of a frame.
create table accounts (
  channel text not null,
  account text not null,
  next_seq bigint not null default 1,
  primary key (channel, account)
);

-- Transcripts: the exact lines of the file format, in their order.
create table transcripts (
  -- One that was archived is called `archived:` and its id.
  session_id text primary key,
  header text not null,
  entries integer not null default 0
);
create table entries (
  session_id text not null references transcripts on delete cascade on update cascade,
  position integer not null,
  id text not null,
  parent text,
  line text not null,
  primary key (session_id, position)
);
create index entries_by_id on entries (session_id, id);
create table blobs (
  session_id text not null,
  id text not null,
  content text not null,
  primary key (session_id, id)
);
create table media (
  id text primary key,
  name text not null,
  mime_type text not null,
  content bytea not null,
  created_at timestamptz not null default now()
);

-- Costs: of a session, of a day, of an hour by model and channel, of an hour by session. `at` counts days or hours.
create table usage (
  scope text not null check (scope in ('session', 'day', 'hour', 'session-hour')),
  at bigint not null,
  session_id text not null default '',
  model text not null default '',
  channel text not null default '',
  -- Each node adds to rows of its own: a row that all of them add to would make their commits wait in a line.
  node text not null default '',
  requests bigint not null default 0,
  tokens bigint not null default 0,
  input bigint not null default 0,
  output bigint not null default 0,
  cache_read bigint not null default 0,
  cache_write bigint not null default 0,
  usd double precision not null default 0,
  unpriced bigint not null default 0,
  saved bigint not null default 0,
  primary key (scope, at, session_id, model, channel, node)
);
create table savings (
  session_id text primary key,
  steps bigint not null,
  messages bigint not null,
  tokens_saved double precision not null,
  net_tokens_saved double precision not null,
  measured boolean not null
);

create table channel_state (
  section text not null,
  key text not null,
  value json not null,
  changed bigint not null default nextval('changes'),
  primary key (section, key)
);
create index channel_state_by_age on channel_state (section, changed);
