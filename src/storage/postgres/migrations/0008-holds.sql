-- The node that has the connections of an account, of a service that allows one set of them.
alter table accounts add column node text;
create index accounts_of_node on accounts (node) where node is not null;
