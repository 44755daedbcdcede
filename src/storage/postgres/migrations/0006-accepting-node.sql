-- Also which node accepted it: a stop ends what other nodes accepted before it, whoever holds the session now.
create or replace function stored(m messages) returns jsonb language sql stable as $$
  select jsonb_build_object(
    'message', m.message::text, 'body', m.body::text, 'reply_to', m.reply_to::text, 'account', m.account,
    'state', m.state, 'seq', m.seq, 'content', m.content::text, 'ended_at', m.answered_at,
    'reset_done', m.reset_done, 'deaths', m.deaths, 'orphaned', not is_alive(m.node), 'node', m.node,
    'holder', (select node from sessions s where s.key = m.key))
$$;
