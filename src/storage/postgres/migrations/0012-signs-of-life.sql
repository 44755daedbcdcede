-- As before; a node that fell silent before a message was stored has not worked on it: it is blamed for no such message.
create or replace function apply_claim(wanted text, me text, forced boolean) returns jsonb language plpgsql as $$
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
    update messages m set deaths = deaths + 1, blamed = blamed || coalesce(holder, m.node) where run = (
      select run from messages where key = wanted and state = 'open' order by position limit 1)
      and not idle and not lives and case when holder is null then m.node <> me and not is_alive(m.node)
        else m.node = holder or exists (select from nodes n where n.id = holder and n.heartbeat_at > m.stored_at) end;
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

-- As before; a commit is a sign of life too.
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
  update nodes set last_batch = batch, last_results = results, heartbeat_at = clock_timestamp() where id = me;
  return results;
end $$;
