-- How much may be held at once.
create table quotas (
    workspace text not null,
    -- Nothing for the workspace as a whole, `*` for everyone in it each, or who it is for.
    whom text not null,
    -- Nothing for all targets together.
    target text not null,
    -- Null is no limit.
    cpu_milli integer,
    memory_bytes integer,
    gpus integer,
    jobs integer,
    changed_by text not null,
    changed_at integer not null,
    primary key (workspace, whom, target)
);

-- What jobs that have left their nodes had used, by the hour in which they did, in core-milliseconds.
create table usage_hours (
    workspace text not null,
    person text not null,
    hour integer not null,
    used integer not null,
    primary key (workspace, person, hour)
);

-- Thousandths of a core that a job counts as, and since when it has a node.
alter table jobs add column weight integer not null default 0;
alter table jobs add column busy_since integer;
-- Where it stands among those of its priority that its node's agent holds.
alter table jobs add column turn integer not null default 0;
-- The pool it was sent to.
alter table jobs add column pool text not null default '';
create index jobs_waiting on jobs (cluster, workspace, created_by, priority desc, seq) where phase = 'queued';

-- Where a job that was sent to a pool may run, and what it would be there.
create table pool_choices (
    job_seq integer not null,
    position integer not null,
    target text not null,
    cluster text not null,
    plan text not null,
    primary key (job_seq, position)
);
