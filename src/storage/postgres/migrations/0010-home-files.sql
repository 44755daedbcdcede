-- Files of messages and notes of the memory tool, by their path below the home: nodes read and write them here.
alter table home_files add column changed_at timestamptz not null default clock_timestamp();
create index home_files_below on home_files (path collate "C");
drop table media;
