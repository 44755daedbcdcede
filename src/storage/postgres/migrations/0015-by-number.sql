-- As before; a row that an operator wrote may hold anything where its earlier conversations are listed.
create or replace function delete_session(wanted text) returns text language plpgsql as $$
declare
  row sessions;
  names text[];
begin
  delete from sessions where key = wanted returning * into row;
  delete from messages where key = wanted and state <> 'open';
  if row.begun then
    select array_agg(prefix || id) into names from (
        select row.session_id as id union all
        select old->>'sessionId' from jsonb_array_elements(
          case jsonb_typeof(row.record->'archived') when 'array' then row.record->'archived' else '[]' end) as old
      ) as ids, unnest(array['', 'archived:']) as prefix;
    delete from transcripts where session_id = any (names);
    delete from blobs where session_id = any (names);
  end if;
  return row.node;
end $$;

-- As before, but by number: answers that were copied here came in the order in which their messages were accepted.
create or replace function forget_over_limit(of_channel text, of_account text, most bigint) returns void language sql as $$
  delete from messages where run in (
    select run from messages
    where channel = of_channel and account = of_account and state in ('waiting', 'unknown') and not abandoned
    order by seq desc offset most)
$$;
