-- Webhooks: what is still to be told to whom. A row is written with the change it tells of and goes when it was told.
create table deliveries (
    seq integer primary key autoincrement,
    -- Known to the receiver, the same at every try.
    id text not null,
    workspace text not null,
    -- The record of kind `webhooks` that asked for it.
    webhook text not null,
    body text not null,
    tries integer not null default 0,
    created_at integer not null,
    due_at integer not null
);
create index deliveries_by_webhook on deliveries (workspace, webhook, seq);
create index deliveries_by_time on deliveries (due_at);

-- Retention: what was deleted long enough ago is removed for good.
create index runs_by_deletion on runs (deleted_at) where deleted_at is not null;

-- Folders of artifacts whose rows are gone; each goes from here once it is gone from the disk.
create table leftovers (
    workspace text not null,
    path text not null,
    primary key (workspace, path)
);

-- The greatest number an experiment had that is gone, so that no other gets it.
create table spent_numbers (
    workspace text primary key,
    number integer not null
);
