-- As before, but a row whose time is still to come, which an operator wrote, is not the newest one: every later change
-- would have its time. A clock that is set back by less than an hour still turns no order round.
create or replace function change_time() returns bigint language sql volatile as $$
  select greatest(ms(clock_timestamp()), (select updated_at from sessions
    where begun and updated_at <= ms(clock_timestamp()) + 3600000 order by updated_at desc limit 1))
$$;
