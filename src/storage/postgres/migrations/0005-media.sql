-- Lines that name a file that came in: what looks for such names reads these lines only.
create function names_media(line text) returns boolean language sql immutable parallel safe as $$
  select line ~ 'media[/\\]+[0-9a-f]{32}'
$$;
create index entries_naming_media on entries (session_id, position) where names_media(line);
