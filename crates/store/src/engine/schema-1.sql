create table workspaces (
    name text primary key,
    id text not null,
    subscription text not null,
    resource_group text not null,
    body text not null,
    created_at integer not null
);

create table jobs (
    seq integer primary key autoincrement,
    workspace text not null,
    name text not null,
    -- The resource's properties as the client sent them.
    body text not null,
    -- What an agent is to run, every reference resolved.
    plan text not null,
    state text not null,
    phase text not null,
    status text not null,
    note text not null default '',
    kind text not null,
    experiment text not null,
    target text not null,
    -- What all its ranks need together, for the scheduler.
    cpu_milli integer not null,
    memory_bytes integer not null,
    gpus integer not null,
    archived integer not null default 0,
    priority integer not null,
    attempts integer not null default 0,
    max_retries integer not null,
    registers integer not null default 0,
    isolation text,
    created_by text not null,
    created_at integer not null,
    changed_at integer not null,
    version integer not null default 1
);
create unique index jobs_by_name on jobs (workspace, name);
create index jobs_by_phase on jobs (phase, priority desc, seq);
create index jobs_listed on jobs (workspace, seq desc);

create table events (
    id integer primary key autoincrement,
    job_seq integer not null,
    at integer not null,
    kind text not null,
    text text not null
);
create index events_by_job on events (job_seq, id);

create table assets (
    seq integer primary key autoincrement,
    workspace text not null,
    kind text not null,
    name text not null,
    version text not null,
    body text not null,
    hash text,
    archived integer not null default 0,
    created_by text not null,
    created_at integer not null,
    changed_at integer not null
);
create unique index assets_by_version on assets (workspace, kind, name, version);
create index assets_by_hash on assets (workspace, kind, hash) where hash is not null;
create index assets_listed on assets (workspace, kind, name, seq desc);

create table datastores (
    workspace text not null,
    name text not null,
    body text not null,
    secret blob,
    is_default integer not null default 0,
    created_at integer not null,
    changed_at integer not null,
    primary key (workspace, name)
);

create table computes (
    workspace text not null,
    name text not null,
    body text not null,
    created_at integer not null,
    changed_at integer not null,
    primary key (workspace, name)
);

create table nodes (
    name text primary key,
    boot_id text not null,
    facts text not null,
    seen_at integer not null
);

create table samples (
    node text not null,
    at integer not null,
    body text not null,
    primary key (node, at)
);

create table blob_metadata (
    workspace text not null,
    container text not null,
    path text not null,
    body text not null,
    primary key (workspace, container, path)
);
