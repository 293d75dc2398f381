-- Online deployments that serve: what their record asks for, resolved, and how far they have come.
create table servings (
    workspace text not null,
    endpoint text not null,
    deployment text not null,
    -- Counts the changes of the plan; replicas of an older one are replaced.
    generation integer not null,
    plan text not null,
    -- The last one that was seen to answer; what serves on when a newer one fails.
    good_generation integer,
    good_plan text,
    settings text not null,
    target text not null,
    cluster text not null,
    state text not null,
    -- The operation that waits for that state to settle, and since when.
    operation text not null,
    begun_at integer not null,
    -- Replicas that ended by themselves, one after the other, and when the last did.
    failures integer not null default 0,
    failed_at integer not null default 0,
    created_by text not null,
    version integer not null default 1,
    primary key (workspace, endpoint, deployment)
);

-- Replicas: jobs of the kind `replica`, each of one deployment. A few stay after their end, for their logs.
create table replicas (
    job_seq integer primary key,
    workspace text not null,
    endpoint text not null,
    deployment text not null,
    generation integer not null,
    address text,
    ready integer not null default 0,
    -- When it first was.
    ready_at integer,
    -- Since when no router is to use it.
    draining_at integer,
    gone_at integer
);
create index replicas_by_deployment on replicas (workspace, endpoint, deployment, job_seq);
