-- A node that holds a session keeps what it knows of it, so that a turn needs no look-ups: every result carries what the
-- transaction made of the rows that its node holds, and says which other node holds a row that was changed.

-- What the holder of a session knows of its row; null without one.
create function held_row(wanted text, me text) returns jsonb language sql stable as $$
  select jsonb_build_object('key', s.key, 'record', row_record(s), 'changed', s.changed,
    'entries', coalesce((select entries from transcripts t where t.session_id = s.session_id), 0))
  from sessions s where s.key = wanted and s.begun and s.node = me
$$;

create function totals_of(wanted text) returns jsonb language sql stable as $$
  select jsonb_build_object('sessionId', wanted,
    'spent', (select jsonb_build_object('requests', sum(requests), 'tokens', sum(tokens), 'input', sum(input),
        'output', sum(output), 'cacheRead', sum(cache_read), 'cacheWrite', sum(cache_write), 'usd', sum(usd),
        'unpriced', sum(unpriced), 'saved', sum(saved))
      from usage where scope = 'session' and at = 0 and session_id = wanted having count(*) > 0),
    'saved', (select jsonb_build_object('steps', steps, 'messages', messages, 'tokensSaved', tokens_saved,
        'netTokensSaved', net_tokens_saved, 'measured', measured)
      from savings where session_id = wanted))
$$;

-- Changes other than answers; returns the node that holds what was changed.
create or replace function apply_change(c jsonb, me text, rules jsonb) returns text language plpgsql as $$
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
  if c->>'kind' in ('begin-session', 'change-session', 'put-session') then
    select node into holder from sessions where key = c->>'key';
  end if;
  return holder;
end $$;

-- As before; and a session in which nothing else is open, and that no living node holds, goes to the node that accepts.
create or replace function apply_accept(a jsonb, me text, rules jsonb) returns jsonb language plpgsql as $$
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
  if row.begun and row.node is distinct from me and (row.node is null or not is_alive(row.node))
      and not exists (select from messages where key = a->>'key' and state = 'open' and run <> a->>'run') then
    update sessions set node = me, epoch = nextval('epochs') where key = a->>'key' returning * into row;
  end if;
  -- What another node accepted for it may still be on its way to this one, and comes before.
  return jsonb_build_object('kind', 'fresh', 'holder', row.node, 'others', exists (
      select from messages where key = a->>'key' and state = 'open' and node <> me))
    || case when row.node = me then jsonb_build_object('epoch', row.epoch) else '{}' end;
end $$;

create or replace function apply_one(t jsonb, me text, rules jsonb) returns jsonb language plpgsql as $$
declare
  c jsonb;
  answer jsonb;
  accepted jsonb;
  answered jsonb := '[]';
  holders jsonb := '[]';
  rows jsonb := '[]';
  delivered jsonb := '[]';
  spender text;
  changed_keys text[] := '{}';
  holder text;
begin
  if t ? 'epoch' and not exists (
      select from sessions where key = t->>'session' and epoch = (t->>'epoch')::bigint) then
    return '{"lost": true}';
  end if;
  if t ? 'append' and apply_append(t->'append') is null then return '{"behind": true}'; end if;
  if t ? 'accept' then
    accepted := apply_accept(t->'accept', me, rules);
    select jsonb_agg(held) into rows from held_row(t->'accept'->>'key', me) as held where held is not null;
    return jsonb_build_object('accepted', accepted, 'rows', coalesce(rows, '[]'));
  end if;
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
      if c->>'kind' in ('begin-session', 'change-session', 'put-session') then
        changed_keys := changed_keys || (c->>'key');
      elsif c->>'kind' = 'delivery' then
        delivered := delivered || coalesce((select jsonb_agg(jsonb_build_object('run', run, 'channel', channel,
          'account', account)) from messages where run = c->>'run' and state = c->>'state'), '[]');
      elsif c->>'kind' in ('spend', 'save') then
        spender := c->>'sessionId';
      end if;
    end if;
  end loop;
  if t ? 'append' and t ? 'session' then changed_keys := changed_keys || (t->>'session'); end if;
  select coalesce(jsonb_agg(held), '[]') into rows from (
    select held_row(key, me) as held from (select distinct unnest(changed_keys) as key) as keys) as found
  where held is not null;
  return jsonb_build_object('answered', answered, 'raised', holders, 'rows', rows, 'delivered', delivered)
    || case when spender is null then '{}' else jsonb_build_object('totals', totals_of(spender)) end;
end $$;

-- Conversations of clients that resend their history, by how it begins and by how far it came.
create index sessions_by_chat_root on sessions ((record->'chat'->>'root'), changed desc) where begun and record ? 'chat';
create index sessions_by_chat_last on sessions ((record->'chat'->>'last'), changed desc) where begun and record ? 'chat';
