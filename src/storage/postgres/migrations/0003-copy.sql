-- Files of a home that was copied here (media, memory notes), by their path below it; a copy into a home writes them.
create table home_files (
  path text primary key,
  content bytea not null
);

-- Frame numbers: the row without a channel and an account says where accounts that have no row begin. A home forgets the
-- oldest of very many accounts and goes on behind the highest of their numbers.
create or replace function draw_seq(of_channel text, of_account text, many bigint) returns bigint language sql as $$
  insert into accounts as a (channel, account, next_seq)
  values (of_channel, of_account,
    many + coalesce((select next_seq from accounts where channel = '' and account = ''), 1))
  on conflict (channel, account) do update set next_seq = a.next_seq + many
  returning next_seq - many
$$;
