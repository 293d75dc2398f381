-- What a job's body says that lists and searches look for: its display name (`name`), its tags (`tag`) and its literal
-- inputs (`param`). Written with the body.
create table job_labels (
    job_seq integer not null,
    kind text not null,
    key text not null,
    value text not null,
    primary key (job_seq, kind, key)
) without rowid;

insert into job_labels (job_seq, kind, key, value)
    select seq, 'name', '', json_extract(body, '$.displayName') from jobs where json_type(body, '$.displayName') = 'text';
insert into job_labels (job_seq, kind, key, value)
    select j.seq, 'tag', t.key, case t.type when 'true' then 'True' when 'false' then 'False' else cast(t.atom as text) end
    from jobs j, json_each(j.body, '$.tags') t where t.atom is not null on conflict do nothing;
insert into job_labels (job_seq, kind, key, value)
    select j.seq, 'param', t.key,
        case json_type(t.value, '$.value') when 'true' then 'True' when 'false' then 'False' else cast(json_extract(t.value, '$.value') as text) end
    from jobs j, json_each(j.body, '$.inputs') t
    where t.type = 'object' and json_type(t.value, '$.value') in ('text', 'integer', 'real', 'true', 'false') on conflict do nothing;

-- Names of workspaces are compared without regard to case.
drop index audit_by_workspace;
create index audit_by_workspace on audit (lower(workspace), id);

-- Kubernetes clusters whose operator may call, and what it last told.
create table clusters (
    name text primary key,
    -- The token in use; older ones open nothing.
    generation integer not null,
    -- What the operator calls the facts it has, and the facts.
    digest text not null default '',
    facts text not null default '{}',
    -- 0 before it was first heard of.
    seen_at integer not null default 0,
    skew_ms integer not null default 0,
    created_at integer not null
);

-- Compute targets that lie on a cluster, and what became of their checks.
create table cluster_targets (
    workspace text not null,
    compute text not null,
    cluster text not null,
    -- As the operator is told of it.
    body text not null,
    state text not null,
    findings text not null,
    -- The check under way or last made, and the operation that waits for it.
    check_id text not null,
    operation text not null,
    checked_at integer not null,
    primary key (workspace, compute)
);
create index cluster_targets_by_cluster on cluster_targets (cluster);

-- The parts of attempts that run on a cluster, until the attempt is over.
create table gangs (
    attempt text primary key,
    body text not null
);

-- The cluster that runs a job; empty for this machine. What is asked of the queue is asked for one of them.
alter table jobs add column cluster text not null default '';
drop index jobs_by_phase;
create index jobs_by_phase on jobs (phase, cluster, priority desc, seq);
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
