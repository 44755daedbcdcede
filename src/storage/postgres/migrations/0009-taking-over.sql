-- Nodes that fell silent while they worked on it, each counted in `deaths`: one that comes back had only been stopped.
alter table messages add column blamed text[] not null default '{}';
create index messages_blamed on messages (run) where state = 'open' and blamed <> '{}';

create function take_blame_back(back text) returns void language sql as $$
  update messages set deaths = greatest(deaths - 1, 0), blamed = array_remove(blamed, back)
  where state = 'open' and blamed <> '{}' and back = any (blamed)
$$;

-- Takes a session that no living node holds, or any when it is forced to. One taken from a dead node counts against what
-- that one may have been working on. Returns also the living node that it was taken from.
drop function apply_claim(text, text);
create function apply_claim(wanted text, me text, forced boolean) returns jsonb language plpgsql as $$
declare
  row sessions;
  holder text;
  lives boolean;
begin
  select * into row from sessions where key = wanted;
  holder := nullif(row.node, me);
  lives := holder is not null and is_alive(holder);
  if lives and not forced then return null; end if;
  if row.node is distinct from me then
    update messages set deaths = deaths + 1, blamed = blamed || coalesce(holder, node) where run = (
      select run from messages where key = wanted and state = 'open' order by position limit 1)
      and not idle and not lives and (holder is not null or (node <> me and not is_alive(node)));
    -- One that is suspected has not begun yet; the others may begin now.
    update messages set idle = deaths > 0 where key = wanted and state = 'open' and idle <> (deaths > 0);
    insert into sessions (key, session_id, node, begun) values (wanted, '', me, false)
    on conflict (key) do update set node = me, epoch = nextval('epochs')
    returning * into row;
  end if;
  return jsonb_build_object('epoch', row.epoch, 'from', case when lives then holder end, 'suspects', (
    select coalesce(jsonb_agg(jsonb_build_object('run', run, 'deaths', deaths) order by position), '[]')
    from messages where key = wanted and state = 'open' and deaths > 0));
end $$;

-- As before; a claim says whom it was taken from, and an answer is taken here too.
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
  claim jsonb;
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
  if t ? 'claim' then
    claim := apply_claim(t->>'claim', me, coalesce((t->>'forced')::boolean, false));
    if claim->>'from' is not null then
      holders := jsonb_build_array(jsonb_build_object('key', t->>'claim', 'node', claim->>'from'));
    end if;
    return jsonb_build_object('claim', claim, 'raised', holders);
  end if;
  -- For the one node that makes the next attempt to deliver it.
  if t ? 'take' then
    update messages set state = 'unknown', answered_by = me where run = t->>'take' and state = 'waiting'
    returning jsonb_build_object('channel', channel, 'account', account) into answer;
    return jsonb_build_object('taken', answer);
  end if;
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

-- Locks first, all of them and in one order, so that two nodes never wait for each other. A group that was sent before,
-- with its answer lost on the way, gets the same answer again;
-- one that was held up on the way until a later one was done is not applied once more: nothing waits for its answer.
create or replace function commit_all(me text, batch bigint, names text[], runs text[], transactions jsonb, rules jsonb)
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
  if known.last_batch > batch then raise exception 'group % comes after group %', batch, known.last_batch; end if;
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

-- As before, under the same locks as everything else that changes a row.
create function archive_rows(wanted text[], times bigint[], me text) returns setof text language plpgsql as $$
declare
  name text;
begin
  for name in select 'key ' || w from unnest(wanted) as w order by 1 loop
    perform pg_advisory_xact_lock(hashtextextended(current_schema || chr(10) || name, 0));
  end loop;
  return query with gone as (
      delete from sessions s using unnest(wanted, times) as w (key, updated_at)
      where s.key = w.key and s.updated_at = w.updated_at and begun
        and (s.node is null or s.node = me or not is_alive(s.node))
      returning s.key as gone_key, row_record(s) as gone_record)
    insert into archived_sessions as a (key, record) select gone_key, gone_record from gone
    on conflict (key) do update set record = excluded.record returning a.key;
end $$;

create or replace function bring_back(wanted text) returns boolean language plpgsql as $$
declare
  found_row archived_sessions;
begin
  if exists (select from sessions where begun and lower(key) = lower(wanted)) then return false; end if;
  select * into found_row from archived_sessions where lower(key) = lower(wanted)
  order by key = wanted desc, key limit 1;
  if not found then return false; end if;
  perform pg_advisory_xact_lock(hashtextextended(current_schema || chr(10) || 'key ' || found_row.key, 0));
  if exists (select from sessions where begun and key = found_row.key) then return false; end if;
  delete from archived_sessions where key = found_row.key returning * into found_row;
  if not found then return false; end if;
  perform put_row(found_row.key, found_row.record);
  return true;
end $$;
