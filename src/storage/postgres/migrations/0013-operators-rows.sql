-- Rows that operators write by hand: a record is an object, and a field that is no number counts as none.
alter table sessions add constraint record_is_an_object check (jsonb_typeof(record) = 'object') not valid;

create or replace function row_record(s sessions) returns jsonb language sql stable as $$
  select case jsonb_typeof(s.record) when 'object' then s.record else '{}' end
    || jsonb_build_object('sessionId', s.session_id, 'updatedAt', s.updated_at)
    || case when s.owner is null then '{}' else jsonb_build_object('owner', s.owner) end
$$;

-- As before, but a count of messages that is no number counts as none.
create or replace function apply_row(c jsonb, may_begin boolean) returns void language plpgsql as $$
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
    next := next || jsonb_build_object('messages', (c->'added'->>'messages')::bigint
      + case jsonb_typeof(next->'messages') when 'number' then (next->>'messages')::numeric::bigint else 0 end);
  end if;
  next := next - removed;
  if coalesce((c->>'touched')::boolean, false) or not (next ? 'updatedAt') then
    next := next || jsonb_build_object('updatedAt', change_time());
  end if;
  perform put_row(c->>'key', next);
end $$;
