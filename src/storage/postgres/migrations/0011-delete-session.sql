-- For good, whatever was written to its conversations until now: also what an earlier holder wrote after their transcripts
-- were removed. Returns the node that held it.
create function delete_session(wanted text) returns text language plpgsql as $$
declare
  row sessions;
  names text[];
begin
  delete from sessions where key = wanted returning * into row;
  delete from messages where key = wanted and state <> 'open';
  if row.begun then
    select array_agg(prefix || id) into names from (
        select row.session_id as id union all
        select old->>'sessionId' from jsonb_array_elements(coalesce(row.record->'archived', '[]')) as old
      ) as ids, unnest(array['', 'archived:']) as prefix;
    delete from transcripts where session_id = any (names);
    delete from blobs where session_id = any (names);
  end if;
  return row.node;
end $$;

-- As before; a delete takes the transcripts along.
create or replace function apply_change(c jsonb, me text, rules jsonb) returns text language plpgsql as $$
declare
  holder text;
begin
  case c->>'kind'
    when 'begin-session' then perform apply_row(c, true);
    when 'change-session' then perform apply_row(c, false);
    when 'put-session' then perform put_row(c->>'key', c->'record');
    when 'delete-session' then
      holder := delete_session(c->>'key');
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
