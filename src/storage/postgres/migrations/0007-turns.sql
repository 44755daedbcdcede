-- How many turns a node may run at once: one that runs so many leaves new ones to others.
alter table nodes add column max_turns integer not null default 0;
