-- Everything that writes goes through `commit_all`: a list of transactions that were asked for at the same moment becomes
-- one transaction of the database, in one round trip. As one statement it never holds a lock while its node hangs.

create function ms(at timestamptz) returns bigint language sql immutable
  return (extract(epoch from at) * 1000)::bigint;

create function is_alive(wanted text) returns boolean language sql stable as $$
  select exists (select from nodes where id = wanted and lease_until > clock_timestamp())
$$;

create function stored(m messages) returns jsonb language sql stable as $$
  select jsonb_build_object(
    'message', m.message::text, 'body', m.body::text, 'reply_to', m.reply_to::text, 'account', m.account,
    'state', m.state, 'seq', m.seq, 'content', m.content::text, 'ended_at', m.answered_at,
    'reset_done', m.reset_done, 'deaths', m.deaths, 'orphaned', not is_alive(m.node),
    'holder', (select node from sessions s where s.key = m.key))
$$;

-- A time for the next change: never before the newest row, so that the list shows the order of changes.
create function change_time() returns bigint language sql volatile as $$
  select greatest(ms(clock_timestamp()), (select updated_at from sessions where begun order by updated_at desc limit 1))
$$;

create function apply_row(c jsonb, may_begin boolean) returns void language plpgsql as $$
declare
  row sessions;
  fields jsonb := coalesce(c->'fields', '{}');
  next jsonb;
  removed text[] := array(select jsonb_array_elements_text(coalesce(c->'removed', '[]')));
begin
  select * into row from sessions where key = c->>'key';
  if (not found or not row.begun) and not may_begin then return; end if;
  if row.begun is distinct from true then
    fields := jsonb_build_object('sessionId', c->>'sessionId', 'owner', c->>'owner') || fields;
  elsif may_begin and row.owner is null and not (row.record ? 'lastAccountId')
      and row.record->'deliveryContext'->>'accountId' is null then
    fields := jsonb_build_object('owner', c->>'owner') || fields;
  end if;
  next := coalesce(c->'defaults', '{}') || case when row.begun then row_record(row) else '{}' end || fields;
  if c ? 'added' then
    next := next || jsonb_build_object('messages',
      coalesce((next->>'messages')::bigint, 0) + (c->'added'->>'messages')::bigint);
  end if;
  next := next - removed;
  if coalesce((c->>'touched')::boolean, false) or not (next ? 'updatedAt') then
    next := next || jsonb_build_object('updatedAt', change_time());
  end if;
  perform put_row(c->>'key', next);
end $$;

create function row_record(s sessions) returns jsonb language sql stable as $$
  select s.record || jsonb_build_object('sessionId', s.session_id, 'updatedAt', s.updated_at)
    || case when s.owner is null then '{}' else jsonb_build_object('owner', s.owner) end
$$;

create function put_row(wanted text, next jsonb) returns void language sql as $$
  insert into sessions (key, session_id, owner, updated_at, record)
  values (wanted, next->>'sessionId', next->>'owner', (next->>'updatedAt')::numeric::bigint,
    next - array['sessionId', 'owner', 'updatedAt'])
  on conflict (key) do update set session_id = excluded.session_id, owner = excluded.owner, begun = true,
    updated_at = excluded.updated_at, record = excluded.record, changed = nextval('changes')
$$;

-- The first of so many numbers that nothing else gets.
create function draw_seq(of_channel text, of_account text, many bigint) returns bigint language sql as $$
  insert into accounts as a (channel, account, next_seq) values (of_channel, of_account, 1 + many)
  on conflict (channel, account) do update set next_seq = a.next_seq + many
  returning next_seq - many
$$;

create function add_usage(in_scope text, at_time bigint, of_session text, of_model text, of_channel text, me text,
  s jsonb) returns void language sql as $$
  insert into usage as u values (in_scope, at_time, of_session, of_model, of_channel, me, (s->>'requests')::bigint,
    (s->>'tokens')::bigint, (s->>'input')::bigint, (s->>'output')::bigint, (s->>'cacheRead')::bigint,
    (s->>'cacheWrite')::bigint, (s->>'usd')::double precision, (s->>'unpriced')::bigint, (s->>'saved')::bigint)
  on conflict (scope, at, session_id, model, channel, node) do update set requests = u.requests + excluded.requests,
    tokens = u.tokens + excluded.tokens, input = u.input + excluded.input, output = u.output + excluded.output,
    cache_read = u.cache_read + excluded.cache_read, cache_write = u.cache_write + excluded.cache_write,
    usd = u.usd + excluded.usd, unpriced = u.unpriced + excluded.unpriced, saved = u.saved + excluded.saved
$$;

create function forget_over_limit(of_channel text, of_account text, most bigint) returns void language sql as $$
  delete from messages where run in (
    select run from messages
    where channel = of_channel and account = of_account and state in ('waiting', 'unknown') and not abandoned
    order by answer_position desc offset most)
$$;

-- Returns what the answer came to, or null when there is nothing to answer.
create function apply_answer(c jsonb, me text, rules jsonb) returns jsonb language plpgsql as $$
declare
  m messages;
begin
  select * into m from messages where run = c->>'run' and state = 'open';
  if not found then return null; end if;
  -- The node that answers makes the first attempt: from here on it may have been sent.
  update messages set state = 'unknown', answered_by = me, content = (c->>'content')::json, answer_code = c->>'code', body = null,
    answered_at = ms(clock_timestamp()), answer_position = nextval('changes'), seq = draw_seq(m.channel, m.account, 1)
  where run = m.run returning * into m;
  perform forget_over_limit(m.channel, m.account, (rules->>'outboxPerAccount')::bigint);
  return stored(m);
end $$;

create function apply_state(c jsonb, rules jsonb) returns void language plpgsql as $$
begin
  if c->>'value' is null then
    delete from channel_state where section = c->>'section' and key = c->>'key';
    return;
  end if;
  insert into channel_state (section, key, value) values (c->>'section', c->>'key', (c->>'value')::json)
  on conflict (section, key) do update set value = excluded.value, changed = nextval('changes');
  delete from channel_state where section = c->>'section' and key in (
    select key from channel_state where section = c->>'section'
    order by changed desc offset coalesce((c->>'limit')::bigint, (rules->>'stateEntries')::bigint));
end $$;

-- Changes other than answers; returns the node that a raised epoch was taken from.
create function apply_change(c jsonb, me text, rules jsonb) returns text language plpgsql as $$
declare
  holder text;
begin
  case c->>'kind'
    when 'begin-session' then perform apply_row(c, true);
    when 'change-session' then perform apply_row(c, false);
    when 'put-session' then perform put_row(c->>'key', c->'record');
    when 'delete-session' then
      delete from sessions where key = c->>'key' returning node into holder;
      delete from messages where key = c->>'key' and state <> 'open';
    when 'raise-epoch' then
      select node into holder from sessions where key = c->>'key';
      update sessions set epoch = nextval('epochs'), node = null where key = c->>'key';
    when 'delivery' then
      update messages set state = c->>'state' where run = c->>'run' and state <> 'open';
    when 'reset-done' then update messages set reset_done = true where run = c->>'run';
    when 'resumed' then update messages set idle = false where run = c->>'run';
    when 'paused' then update messages set idle = true, deaths = 0 where run = c->>'run';
    when 'spend' then
      perform add_usage('session', 0, c->>'sessionId', '', '', me, c->'spent');
      perform add_usage('day', ms(now()) / 86400000, '', '', '', me, c->'spent');
      perform add_usage('hour', ms(now()) / 3600000, '', c->>'model', c->>'channel', me, c->'spent');
      perform add_usage('session-hour', ms(now()) / 3600000, c->>'sessionId', '', '', me, c->'spent');
    when 'save' then
      insert into savings as s values (c->>'sessionId', (c->>'steps')::bigint, (c->>'messages')::bigint,
        (c->>'tokensSaved')::double precision, (c->>'netTokensSaved')::double precision, c->>'netBasis' = 'measured')
      on conflict (session_id) do update set steps = s.steps + excluded.steps, messages = s.messages + excluded.messages,
        tokens_saved = s.tokens_saved + excluded.tokens_saved,
        net_tokens_saved = s.net_tokens_saved + excluded.net_tokens_saved, measured = s.measured and excluded.measured;
    when 'forget-usage' then
      delete from usage where scope = 'session' and at = 0 and session_id = c->>'sessionId';
      delete from savings where session_id = c->>'sessionId';
    when 'set-state' then perform apply_state(c, rules);
  end case;
  return holder;
end $$;

-- What is known of a message by its fingerprint or its request, within the time that is remembered; null of a new one.
create function recall(of_fingerprint text, of_request text, digest text, remember_ms bigint) returns jsonb
language plpgsql stable as $$
declare
  since timestamptz := clock_timestamp() - remember_ms * interval '1 millisecond';
  known messages;
begin
  select * into known from messages where request_key = of_request and stored_at > since;
  if found and known.request_digest is distinct from digest then return '{"kind": "conflict"}'; end if;
  if not found then
    select * into known from messages where fingerprint = of_fingerprint and stored_at > since;
  end if;
  if not found then return null; end if;
  return jsonb_build_object('kind', 'duplicate', 'known', stored(known));
end $$;

-- An accepted message, or why it is none: a copy of one that is known, another request under a known key, a row that it
-- may not join.
create function apply_accept(a jsonb, me text, rules jsonb) returns jsonb language plpgsql as $$
declare
  known jsonb;
  row sessions;
begin
  known := recall(a->>'fingerprint', a->>'requestKey', a->>'requestDigest', (rules->>'rememberMs')::bigint);
  if known is not null then return known; end if;
  select * into row from sessions where key = a->>'key' and begun;
  if found and (a->>'joins' = 'none' or (a->>'joins' = 'own' and coalesce(row.owner, row.record->>'lastAccountId',
      row.record->'deliveryContext'->>'accountId') is distinct from a->>'joinsOwner')) then
    return '{"kind": "taken"}';
  end if;
  update messages set fingerprint = null where fingerprint = a->>'fingerprint';
  update messages set request_key = null where request_key = a->>'requestKey';
  if a ? 'session' then perform apply_row(a->'session', a->'session'->>'kind' = 'begin-session'); end if;
  perform apply_change(c, me, rules) from jsonb_array_elements(coalesce(a->'also', '[]')) as c;
  insert into messages (run, key, channel, account, node, accepted_at, fingerprint, request_key, request_digest, message,
    body)
  values (a->>'run', a->>'key', a->>'channel', a->>'account', me, (a->>'acceptedAt')::numeric::bigint, a->>'fingerprint',
    a->>'requestKey', a->>'requestDigest', (a->>'message')::json, (a->>'body')::json);
  select * into row from sessions where key = a->>'key';
  return jsonb_build_object('kind', 'fresh', 'holder', row.node);
end $$;

-- Takes a session that no living node holds. One taken from a dead node counts against what it may have been working on.
create function apply_claim(wanted text, me text) returns jsonb language plpgsql as $$
declare
  row sessions;
begin
  select * into row from sessions where key = wanted;
  if row.node is not null and row.node <> me and is_alive(row.node) then return null; end if;
  if row.node is distinct from me then
    update messages set deaths = deaths + 1 where run = (
      select run from messages where key = wanted and state = 'open' order by position limit 1)
      and not idle and (row.node is not null or (node <> me and not is_alive(node)));
    -- One that is suspected has not begun yet; the others may begin now.
    update messages set idle = deaths > 0 where key = wanted and state = 'open' and idle <> (deaths > 0);
    insert into sessions (key, session_id, node, begun) values (wanted, '', me, false)
    on conflict (key) do update set node = me, epoch = nextval('epochs')
    returning * into row;
  end if;
  return jsonb_build_object('epoch', row.epoch, 'suspects', (
    select coalesce(jsonb_agg(jsonb_build_object('run', run, 'deaths', deaths) order by position), '[]')
    from messages where key = wanted and state = 'open' and deaths > 0));
end $$;

create function apply_release(wanted text, held bigint) returns void language plpgsql as $$
begin
  if not exists (select from sessions where key = wanted and epoch = held) then return; end if;
  -- Foreseen: what is open is not to blame for it.
  update messages set idle = true where key = wanted and state = 'open';
  delete from sessions where key = wanted and epoch = held and not begun;
  update sessions set node = null where key = wanted and epoch = held;
end $$;

-- Null when the transcript has other entries than its writer knows.
create function apply_append(a jsonb) returns integer language plpgsql as $$
declare
  at integer;
begin
  insert into transcripts (session_id, header) values (a->>'sessionId', a->>'header') on conflict do nothing;
  update transcripts set entries = entries + jsonb_array_length(a->'lines')
  where session_id = a->>'sessionId' and entries = (a->>'after')::integer returning entries into at;
  if not found then return null; end if;
  insert into entries (session_id, position, id, parent, line)
  select a->>'sessionId', (a->>'after')::integer + number, l->>0, l->>1, l->>2
  from jsonb_array_elements(a->'lines') with ordinality as lines (l, number);
  return at;
end $$;

create function apply_one(t jsonb, me text, rules jsonb) returns jsonb language plpgsql as $$
declare
  c jsonb;
  answer jsonb;
  answered jsonb := '[]';
  holders jsonb := '[]';
  holder text;
begin
  if t ? 'epoch' and not exists (
      select from sessions where key = t->>'session' and epoch = (t->>'epoch')::bigint) then
    return '{"lost": true}';
  end if;
  if t ? 'append' and apply_append(t->'append') is null then return '{"behind": true}'; end if;
  if t ? 'accept' then return jsonb_build_object('accepted', apply_accept(t->'accept', me, rules)); end if;
  if t ? 'claim' then return jsonb_build_object('claim', apply_claim(t->>'claim', me)); end if;
  if t ? 'release' then perform apply_release(t->>'release', (t->>'held')::bigint); end if;
  for c in select * from jsonb_array_elements(coalesce(t->'changes', '[]')) loop
    if c->>'kind' = 'answer' then
      answer := apply_answer(c, me, rules);
      if answer is not null then answered := answered || jsonb_build_array(answer); end if;
    else
      holder := apply_change(c, me, rules);
      if holder is not null and holder <> me then
        holders := holders || jsonb_build_array(jsonb_build_object('key', c->>'key', 'node', holder));
      end if;
    end if;
  end loop;
  return jsonb_build_object('answered', answered, 'raised', holders);
end $$;

-- Locks first, all of them and in one order, so that two nodes never wait for each other. A group that was sent before,
-- with its answer lost on the way, gets the same answer again.
create function commit_all(me text, batch bigint, names text[], runs text[], transactions jsonb, rules jsonb)
returns text[] language plpgsql as $$
declare
  known nodes;
  name text;
  t jsonb;
  results text[] := '{}';
begin
  insert into nodes (id) values (me) on conflict do nothing;
  select * into known from nodes where id = me for update;
  if known.last_batch = batch then return known.last_results; end if;
  for name in
    select n from unnest(names) as n
    union select channel || chr(10) || account from messages where run = any (runs)
    order by 1
  loop
    perform pg_advisory_xact_lock(hashtextextended(current_schema || chr(10) || name, 0));
  end loop;
  for t in select * from jsonb_array_elements(transactions) loop
    results := results || apply_one(t, me, rules)::text;
  end loop;
  update nodes set last_batch = batch, last_results = results where id = me;
  return results;
end $$;

create function bring_back(wanted text) returns boolean language plpgsql as $$
declare
  found_row archived_sessions;
begin
  if exists (select from sessions where begun and lower(key) = lower(wanted)) then return false; end if;
  delete from archived_sessions where key = (
    select key from archived_sessions where lower(key) = lower(wanted) order by key = wanted desc, key limit 1)
  returning * into found_row;
  if not found then return false; end if;
  perform put_row(found_row.key, found_row.record);
  return true;
end $$;
