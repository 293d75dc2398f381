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
