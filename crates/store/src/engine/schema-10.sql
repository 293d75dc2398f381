-- Bytes that an attempt, or a part of it, was given before it began, by where they came from.
create table data_moved (
    job_seq integer not null,
    attempt integer not null,
    part integer not null,
    from_store integer not null,
    from_peers integer not null,
    from_cache integer not null,
    primary key (job_seq, attempt, part)
);

-- What nodes keep of fetched data, as they last told.
create table data_kept (
    cluster text not null,
    node text not null,
    entry text not null,
    source text not null,
    bytes integer not null,
    -- Nothing until it was taken.
    digest text not null,
    primary key (cluster, node, entry)
);
create index data_kept_entry on data_kept (cluster, entry);
create index data_kept_source on data_kept (source);
