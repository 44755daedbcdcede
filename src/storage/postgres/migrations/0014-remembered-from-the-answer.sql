-- What is known of a message by its fingerprint or its request; null of a new one. Without an answer it is known however old
-- it is, with one for the time that is remembered, from the answer on.
create or replace function recall(of_fingerprint text, of_request text, digest text, remember_ms bigint) returns jsonb
language plpgsql stable as $$
declare
  since bigint := ms(clock_timestamp()) - remember_ms;
  known messages;
begin
  select * into known from messages where request_key = of_request
    and (state = 'open' or coalesce(answered_at, ms(stored_at)) > since);
  if found and known.request_digest is distinct from digest then return '{"kind": "conflict"}'; end if;
  if not found then
    select * into known from messages where fingerprint = of_fingerprint
      and (state = 'open' or coalesce(answered_at, ms(stored_at)) > since);
  end if;
  if not found then return null; end if;
  return jsonb_build_object('kind', 'duplicate', 'known', stored(known));
end $$;
